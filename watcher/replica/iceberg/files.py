"""The files of an Iceberg table: data files, and files of position deletes."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestEntry
from pyroaring import BitMap

from watcher.replica.iceberg.position_deletes import DeletedRows, Gone, decode_deletes
from watcher.replica.iceberg.schemas import FIELD_ID
from watcher.replica.stores.stored_files import BATCH_ROWS, explain_damage, explain_store
from watcher.replica.writing.live_files import RowIndexes
from watcher.replica.writing.new_files import Partition


@dataclass(frozen=True, slots=True)
class IcebergFile:
    """A data file of a version: its entry in a manifest, and the rows that are gone."""

    entry: ManifestEntry
    vector: DeletedRows | None

    @property
    def path(self) -> str:
        """As ``DataFile.path``."""
        return self.entry.data_file.file_path

    @property
    def size(self) -> int:
        """As ``DataFile.size``."""
        return self.entry.data_file.file_size_in_bytes

    @property
    def partition(self) -> Partition:
        """As ``DataFile.partition``: its values."""
        record = self.entry.data_file.partition
        return tuple(record[index] for index in range(len(record)))

    @property
    def rows(self) -> int:
        """As ``DataFile.rows``."""
        return self.entry.data_file.record_count


class IcebergFiles:
    """Reads and writes the files of one table, by pyiceberg's ``FileIO``."""

    compression = "zstd"

    def __init__(self) -> None:
        self._io: FileIO | None = None
        self._folder = ""
        self._deletes: dict[str, Gone] = {}

    def use(self, io: FileIO, folder: str) -> None:
        """The ``FileIO`` of the table, and where its new data files are."""
        self._io, self._folder = io, folder

    @property
    def io(self) -> FileIO:
        """That of the table."""
        assert self._io is not None, "use comes first"
        return self._io

    @contextmanager
    def _reading(self, path: str) -> Iterator[IO[bytes]]:
        """A file of the table."""
        with explain_store(path), explain_damage(path), self.io.new_input(path).open() as stream:
            yield cast("IO[bytes]", stream)

    def iterate_rows(
        self, file: IcebergFile, schema: pa.Schema, names: Sequence[str]
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """As ``RowFiles.iterate_rows``. Columns are found by their IDs; one that the file does not
        have is NULL."""
        wanted = pa.schema([schema.field(name) for name in names])
        with self._reading(file.path) as stream:
            parquet = pq.ParquetFile(stream)
            there = {field.metadata[FIELD_ID]: field.name for field in parquet.schema_arrow}
            start = 0
            columns = [there[f.metadata[FIELD_ID]] for f in wanted if f.metadata[FIELD_ID] in there]
            for batch in parquet.iter_batches(BATCH_ROWS, columns=columns, use_threads=False):
                yield start, arrange(batch, wanted, there)
                start += batch.num_rows

    def read_rows(self, file: IcebergFile, schema: pa.Schema, rows: NDArray[np.int64]) -> pa.Table:
        """As ``SomeRows.read_rows``. Columns as in ``iterate_rows``."""
        with self._reading(file.path) as stream:
            parquet = pq.ParquetFile(stream)
            groups = range(parquet.num_row_groups)
            counts = [parquet.metadata.row_group(number).num_rows for number in groups]
            where = RowIndexes.find(counts, rows)
            there = {field.metadata[FIELD_ID]: field.name for field in parquet.schema_arrow}
            part = parquet.read_row_groups(where.groups, use_threads=False)
        batches = part.take(pa.array(where.indexes)).to_batches()
        return pa.Table.from_batches([arrange(each, schema, there) for each in batches], schema)

    def read_vector(self, vector: DeletedRows | None) -> BitMap:
        """As ``RowFiles.read_vector``."""
        gone = BitMap()
        if vector is not None:
            for name in vector.files:
                gone |= self.read_deletes(name).get(vector.path, BitMap())
        return gone

    def read_deletes(self, path: str) -> Gone:
        """The rows that a file of deletes names."""
        if path not in self._deletes:
            with self._reading(path) as stream:
                self._deletes[path] = decode_deletes(stream)
        return self._deletes[path]

    def keep_deletes(self, paths: Iterable[str]) -> None:
        """Forgets what other files of deletes have."""
        self._deletes = {path: self._deletes[path] for path in paths if path in self._deletes}

    def write(self, suffix: str, content: bytes) -> str:
        """Writes a new file: its path."""
        path = f"{self._folder}/{uuid.uuid4()}{suffix}"
        with explain_store(path), self.open_new(path) as stream:
            stream.write(content)
        return path

    def name_data_file(self, folder: str = "") -> str:
        """As ``FileMaker.name_data_file``."""
        return f"{self._folder}/{folder}{uuid.uuid4()}.parquet"

    def open_new(self, path: str) -> IO[bytes]:
        """As ``FileMaker.open_new``."""
        with explain_store(path):
            return cast("IO[bytes]", self.io.new_output(path).create())

    def finish(self, path: str) -> int:
        """As ``FileMaker.finish``: it is safe since it was closed."""
        with explain_store(path):
            return len(self.io.new_input(path))

    def remove(self, path: str) -> None:
        """As ``FileMaker.remove``."""
        if self.io.new_input(path).exists():
            self.io.delete(path)


def arrange(batch: pa.RecordBatch, wanted: pa.Schema, there: dict[bytes, str]) -> pa.RecordBatch:
    """A batch with the columns that are wanted, in their order."""
    columns = [
        batch.column(there[field.metadata[FIELD_ID]]).cast(field.type)
        if field.metadata[FIELD_ID] in there
        else pa.nulls(batch.num_rows, field.type)
        for field in wanted
    ]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)
