"""Data files of a Delta table that are written anew, without the rows that are gone, in steps:
between two of them the table may change.

A new file has the rows of the old ones in their order. So a row that goes meanwhile is found in it
by counting, and the new file gets a deletion vector of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyroaring import BitMap

from watcher.model.errors import ReplicaError
from watcher.replica.delta_actions import name_data_file
from watcher.replica.delta_files import TableFiles, mask_rows
from watcher.replica.delta_snapshot import LiveFile
from watcher.replica.delta_stats import FileStatistics

GROUP_ROWS = 131_072


@dataclass(slots=True)
class Source:
    """A file of so many ``rows`` that is written anew: ``gone`` are those that its vector removes,
    ``start`` the number of its first row among all that are written."""

    file: LiveFile
    rows: int
    gone: BitMap
    start: int = 0


@dataclass(slots=True)
class NewFile:
    """A file that was written: its rows, from the number ``start`` on."""

    path: str
    start: int
    size: int = 0
    statistics: FileStatistics = field(default_factory=FileStatistics)

    @property
    def rows(self) -> int:
        """How many it has."""
        return self.statistics.rows


class FileRewrite:
    """The rewrite of some files of a version, into files of about ``file_bytes``. ``read`` and
    ``written`` count bytes of old and of new files; those of old ones by their rows."""

    def __init__(
        self, files: TableFiles, schema: pa.Schema, sources: Sequence[Source], file_bytes: int
    ) -> None:
        self._files = files
        self._schema = schema
        self._file_bytes = file_bytes
        self.sources = sources
        self.new: list[NewFile] = []
        self.read = 0.0
        self.written = 0
        self._stream: pa.NativeFile | None = None

    def steps(self) -> Iterator[tuple[NewFile, pa.Table]]:
        """Writes a group of rows at a time: the file that it is in, and the rows. At the end
        everything is written, and safe. Raises OSError, ReplicaError."""
        writer: pq.ParquetWriter | None = None
        start = 0
        for rows in self._iterate_groups():
            if writer is None:
                writer = self._open(start)
            new = self.new[-1]
            writer.write_table(rows, GROUP_ROWS)
            new.statistics.add(rows)
            start += rows.num_rows
            if self._stream is not None and self._stream.tell() >= self._file_bytes:
                self._close(writer)
                writer = None
            yield new, rows
        if writer is not None:
            self._close(writer)

    def check(self) -> None:
        """Raises ReplicaError unless every row that is there was written: steps that have failed do
        not go on, and a file may have other rows than its statistics say."""
        expected = sum(source.rows - len(source.gone) for source in self.sources)
        written = sum(new.rows for new in self.new)
        if written != expected:
            names = ", ".join(source.file.path for source in self.sources)
            raise ReplicaError(
                f"a rewrite of {names} has {written} rows, and not the {expected} that are there by"
                " the table's log: nothing is replaced"
            )

    def abandon(self) -> None:
        """Removes what was written, which no version has."""
        if self._stream is not None:
            self._stream.close()
        for new in self.new:
            self._files.remove(new.path)

    def place(self, rows: Mapping[str, BitMap]) -> Mapping[str, BitMap]:
        """Where rows of the old files are in the new ones; those that were gone before are not."""
        parts = [np.empty(0, np.int64)]
        for source in self.sources:
            later = to_array(rows.get(source.file.path, BitMap()) - source.gone)
            parts.append(source.start + later - np.searchsorted(to_array(source.gone), later))
        numbers = np.concatenate(parts)
        placed = {}
        for new in self.new:
            inside = numbers[(numbers >= new.start) & (numbers < new.start + new.rows)]
            placed[new.path] = BitMap((inside - new.start).astype(np.uint32))
        return placed

    def _iterate_groups(self) -> Iterator[pa.Table]:
        """The rows that are there, so many at a time as a group has."""
        held: list[pa.RecordBatch] = []
        start = written = 0
        names = self._schema.names
        for source in self.sources:
            source.start = start
            for first, batch in self._files.iterate_rows(source.file, self._schema, names):
                kept = batch.filter(pa.array(mask_rows(source.gone, first, batch.num_rows)))
                self.read += source.file.size * batch.num_rows / source.rows
                start += kept.num_rows
                held.append(kept)
                if start - written >= GROUP_ROWS:
                    rows = pa.Table.from_batches(held, self._schema)
                    yield rows.slice(0, GROUP_ROWS)
                    written += GROUP_ROWS
                    held = rows.slice(GROUP_ROWS).to_batches()
        if start > written:
            yield pa.Table.from_batches(held, self._schema)

    def _open(self, start: int) -> pq.ParquetWriter:
        self.new.append(NewFile(name_data_file(), start))
        self._stream = self._files.open_new(self.new[-1].path)
        return pq.ParquetWriter(self._stream, self._schema, compression="snappy")

    def _close(self, writer: pq.ParquetWriter) -> None:
        assert self._stream is not None, "a writer writes into it"
        writer.close()
        self._stream.close()
        self._stream = None
        self.new[-1].size = self._files.finish(self.new[-1].path)
        self.written += self.new[-1].size


def to_array(rows: BitMap) -> NDArray[np.int64]:
    """Rows in their order."""
    return np.array(rows.to_array(), np.int64)
