"""The files of a Delta table with deletion vectors: data files, and the vectors beside them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from numpy.typing import NDArray
from pyarrow.fs import FileSelector, FileType, LocalFileSystem
from pyroaring import BitMap

from watcher.model.errors import ReplicaError
from watcher.process.private_files import sync_file
from watcher.replica.delta.actions import name_data_file
from watcher.replica.delta.deletion_vectors import (
    INLINE,
    VectorDescriptor,
    read_inline,
    read_stored,
    stored_size,
)
from watcher.replica.delta.partitions import fill_partition
from watcher.replica.delta.snapshot import LiveFile, Snapshot
from watcher.replica.stores.stored_files import (
    PARQUET_FORMAT,
    explain_damage,
    explain_store,
    open_file_system,
    scan_dataset,
    write_whole,
)
from watcher.replica.writing.live_files import RowIndexes, mask_rows


class TableFiles:
    """Reads and writes the files in a table's folder."""

    compression = "snappy"

    def __init__(self, path: str) -> None:
        self._files, base = open_file_system(path)
        self._base = PurePosixPath(base)

    def scan(self, snapshot: Snapshot, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a version, without those that its vectors remove. Raises OSError for a file
        that is gone, ReplicaError for a torn one."""
        schema = snapshot.schema
        for file in snapshot.files.values():
            gone = self.read_vector(file.vector)
            for start, batch in self.iterate_rows(file, schema, names):
                yield batch.filter(pa.array(mask_rows(gone, start, batch.num_rows)))

    def iterate_rows(
        self, file: LiveFile, schema: pa.Schema, names: Sequence[str]
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """All rows of a data file in their order, in batches; with each the number of its first
        row."""
        dataset = ds.dataset([self._locate(file)], schema, PARQUET_FORMAT, self._files)
        start = 0
        wanted = pa.schema([schema.field(name) for name in names])
        for batch in scan_dataset(dataset, names):
            yield start, fill_partition(batch, file.add, wanted)
            start += batch.num_rows

    def read_rows(self, file: LiveFile, schema: pa.Schema, rows: NDArray[np.int64]) -> pa.Table:
        """Some rows of a data file, in their order: only the groups that have one are read."""
        dataset = ds.dataset([self._locate(file)], schema, PARQUET_FORMAT, self._files)
        (fragment,) = dataset.get_fragments()
        where = RowIndexes.find([group.num_rows for group in fragment.row_groups], rows)
        with explain_store(file.path), explain_damage(file.path):
            part = fragment.subset(row_group_ids=where.groups).to_table(schema=schema)
        chosen_rows = part.take(pa.array(where.indexes))
        return pa.Table.from_batches(
            [fill_partition(each, file.add, schema) for each in chosen_rows.to_batches()], schema
        )

    def count_rows(self, file: LiveFile) -> int:
        """The rows of a data file, as its footer has it."""
        dataset = ds.dataset([self._locate(file)], format=PARQUET_FORMAT, filesystem=self._files)
        return int(dataset.count_rows())

    def read_vector(self, vector: VectorDescriptor | None) -> BitMap:
        """The rows that are gone. Raises OSError where the file is gone, ReplicaError where it is
        torn."""
        if vector is None:
            return BitMap()
        if vector.kind == INLINE:
            return read_inline(vector)
        path = str(self._base / vector.path)
        with explain_store(path), self._files.open_input_file(path) as stream:
            return read_stored(stream.read_at(stored_size(vector), vector.offset), vector, path)

    def write(self, path: PurePosixPath, content: bytes) -> None:
        """Writes a file, whole or not at all, into the table's folder or one in it."""
        target = self._base / path
        self._make_folder(target.parent)
        write_whole(self._files, target.parent, target.name, content)

    def _make_folder(self, folder: PurePosixPath) -> None:
        if isinstance(self._files, LocalFileSystem):
            # Whoever may read the table may read it.
            Path(folder).mkdir(parents=True, exist_ok=True)

    def remove_files(
        self,
        folder: PurePosixPath,
        suffix: str,
        kept: Collection[PurePosixPath],
        before: int,
        partitioned: bool = False,
    ) -> None:
        """Removes files in a folder of the table that are older than a time, but for some; with
        ``partitioned`` also in those of its partitions."""
        full_path = self._base / folder
        with explain_store(str(full_path)):
            selector = FileSelector(str(full_path), allow_not_found=True, recursive=partitioned)
            for info in self._files.get_file_info(selector):
                if info.type != FileType.File or not info.base_name.endswith(suffix):
                    continue
                name = PurePosixPath(info.path).relative_to(full_path)
                inside = all("=" in each for each in name.parent.parts)
                if inside and folder / name not in kept and info.mtime_ns // 1_000 < before:
                    self._files.delete_file(info.path)

    def name_data_file(self, folder: str = "") -> str:
        """As ``FileMaker.name_data_file``."""
        return name_data_file(folder)

    def open_new(self, path: str) -> pa.NativeFile:
        """As ``FileMaker.open_new``."""
        full_path = self._base / unquote(path)
        self._make_folder(full_path.parent)
        with explain_store(path):
            return self._files.open_output_stream(str(full_path))

    def finish(self, path: str) -> int:
        """As ``FileMaker.finish``."""
        full_path = str(self._base / unquote(path))
        with explain_store(full_path):
            if isinstance(self._files, LocalFileSystem):
                sync_file(Path(full_path))
            return int(self._files.get_file_info(full_path).size)

    def remove(self, path: str) -> None:
        """As ``FileMaker.remove``."""
        full_path = str(self._base / unquote(path))
        if self._files.get_file_info(full_path).type == FileType.File:
            self._files.delete_file(full_path)

    def _locate(self, file: LiveFile) -> str:
        name = unquote(file.path)
        if "://" in name or name.startswith("/"):
            raise ReplicaError(f"the data file {name} is not in the folder of its table")
        return str(self._base / name)
