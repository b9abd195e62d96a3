"""New data files of a copy, written one after another, a group of rows at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from watcher.replica.writing.statistics import FileStatistics

GROUP_ROWS = 131_072
"""A reader holds a group of rows at a time."""


Partition = tuple[Any, ...]
"""The values of a partition, as the format has them; () without partitions."""


class FileMaker(Protocol):
    """Where a format keeps its data files, and how."""

    @property
    def compression(self) -> str:
        """How columns are compressed."""
        ...

    def name_data_file(self, folder: str = "") -> str:
        """A path that no other data file has, in a folder of a partition."""
        ...

    def open_new(self, path: str) -> pa.NativeFile | IO[bytes]:
        """A new data file, to be written piece by piece: ``finish`` makes it safe."""
        ...

    def finish(self, path: str) -> int:
        """Makes a file that was written as safe as a commit that names it: its size in bytes.
        Raises OSError where it is gone."""
        ...

    def remove(self, path: str) -> None:
        """Removes a data file that no version has, if it is there."""
        ...


@dataclass(slots=True)
class NewFile:
    """A file that was written: its rows, from the number ``start`` on."""

    path: str
    start: int
    size: int = 0
    partition: Partition = ()
    statistics: FileStatistics = field(default_factory=FileStatistics)

    @property
    def rows(self) -> int:
        """How many it has."""
        return self.statistics.rows


class NewFiles:
    """Files of about ``file_bytes`` each. ``written`` counts the bytes of those that are whole."""

    def __init__(self, files: FileMaker, schema: pa.Schema, file_bytes: int) -> None:
        self._files = files
        self._schema = schema
        self._file_bytes = file_bytes
        self._writer: pq.ParquetWriter | None = None
        self._stream: pa.NativeFile | IO[bytes] | None = None
        self._rows = 0
        self.listed: list[NewFile] = []
        self.written = 0

    def write(self, rows: pa.Table, folder: str = "", partition: Partition = ()) -> NewFile:
        """Adds a group, whose columns that are not written are left out: the file that it is in;
        a new one is of the partition, in its folder."""
        writer = self._writer or self._open(folder, partition)
        new = self.listed[-1]
        rows = rows.select(self._schema.names)
        writer.write_table(rows, GROUP_ROWS)
        new.statistics.add(rows)
        self._rows += rows.num_rows
        if self._stream is not None and self._stream.tell() >= self._file_bytes:
            self.finish()
        return new

    def finish(self) -> None:
        """Makes what was written whole, and safe."""
        if self._writer is None or self._stream is None:
            return
        self._writer.close()
        self._stream.close()
        self._writer = self._stream = None
        new = self.listed[-1]
        new.size = self._files.finish(new.path)
        self.written += new.size

    def abandon(self) -> None:
        """Removes what was written, which no version has."""
        # A writer that is given up ends its file, for which the stream must be open.
        self._writer = None
        if self._stream is not None:
            self._stream.close()
        for new in self.listed:
            self._files.remove(new.path)

    def _open(self, folder: str, partition: Partition) -> pq.ParquetWriter:
        path = self._files.name_data_file(folder)
        self.listed.append(NewFile(path, self._rows, partition=partition))
        self._stream = self._files.open_new(self.listed[-1].path)
        compression = self._files.compression
        self._writer = pq.ParquetWriter(self._stream, self._schema, compression=compression)
        return self._writer


def group_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Rows, so many at a time as a group has."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        while count >= GROUP_ROWS:
            rows = pa.Table.from_batches(held, schema)
            yield rows.slice(0, GROUP_ROWS)
            held = rows.slice(GROUP_ROWS).to_batches()
            count -= GROUP_ROWS
    if count:
        yield pa.Table.from_batches(held, schema)
