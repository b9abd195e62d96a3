"""Data files of a copy that are written anew, without the rows that are gone, in steps:
between two of them the table may change.

A new file has the rows of the old ones in their order, or sorted. So a row that goes meanwhile is
found in it by counting, and is marked as gone there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyroaring import BitMap

from watcher.model.errors import ReplicaError
from watcher.replica.copies import NewValues
from watcher.replica.writing.arranged_rows import Arrangement, hold_rows, sort_rows
from watcher.replica.writing.live_files import F, F_contra, M, M_contra, RowFiles, mask_rows
from watcher.replica.writing.new_files import FileMaker, NewFile, NewFiles, group_rows


class RewrittenFiles(RowFiles[F_contra, M_contra], FileMaker, Protocol[F_contra, M_contra]):
    """The files of a table whose files are written anew."""


@dataclass(slots=True)
class Source(Generic[F]):
    """A file of so many ``rows`` that is written anew: ``gone`` are those that are gone,
    ``start`` the number of its first row among all that are written."""

    file: F
    rows: int
    gone: BitMap
    start: int = 0


class FileRewrite(Generic[F, M]):
    """The rewrite of some files of one partition of a version. ``read`` and ``written`` count bytes
    of old and of new files; those of old ones by their rows."""

    def __init__(
        self,
        files: RewrittenFiles[F, M],
        schema: pa.Schema,
        sources: Sequence[Source[F]],
        arrangement: Arrangement,
        values: NewValues | None = None,
    ) -> None:
        """``values``: those of columns that the files do not have."""
        self._values = values
        self._files = files
        self._schema = schema
        self._layout = arrangement.layout
        kept = arrangement.choose_written(schema)
        self._new = NewFiles(files, kept, arrangement.layout.file_bytes)
        self._orders: list[NDArray[np.int64]] = []
        self.sources = sources
        self.partition = sources[0].file.partition
        self._folder = arrangement.name_folder(self.partition)
        self.read = 0.0

    @property
    def new(self) -> Sequence[NewFile]:
        """The new files."""
        return self._new.listed

    @property
    def written(self) -> int:
        """The bytes of those that are whole."""
        return self._new.written

    def steps(self) -> Iterator[tuple[NewFile, pa.Table]]:
        """Writes a group of rows at a time: the file that it is in, and the rows. At the end
        everything is written, and safe. Raises OSError, ReplicaError."""
        for rows in self._group_rows():
            yield self._new.write(rows, self._folder, self.partition), rows
            if self._layout.sort_by:
                self._new.finish()
        self._new.finish()

    def _group_rows(self) -> Iterator[pa.Table]:
        """The rows of a group, or, if they are sorted, of a file."""
        if not self._layout.sort_by:
            yield from group_rows(self._iterate_kept(), self._schema)
            return
        start = 0
        for rows in hold_rows(self._iterate_kept(), self._schema, self._layout.file_bytes):
            order = sort_rows(rows, self._layout.sort_by)
            self._orders.append(start + order)
            start += rows.num_rows
            yield rows.take(pa.array(order))

    def run(self) -> None:
        """Does all steps at once. Raises OSError, ReplicaError."""
        for _ in self.steps():
            pass
        self.check()

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
        self._new.abandon()

    def map_rows(self, rows: Mapping[str, BitMap]) -> Mapping[str, BitMap]:
        """Where rows of the old files are in the new ones; those that were gone before are not."""
        parts = [np.empty(0, np.int64)]
        for source in self.sources:
            later = to_array(rows.get(source.file.path, BitMap()) - source.gone)
            parts.append(source.start + later - np.searchsorted(to_array(source.gone), later))
        numbers = np.concatenate(parts)
        if self._orders:
            order = np.concatenate(self._orders)
            positions = np.empty_like(order)
            positions[order] = np.arange(len(order))
            numbers = positions[numbers]
        moved = {}
        for new in self.new:
            inside = numbers[(numbers >= new.start) & (numbers < new.start + new.rows)]
            moved[new.path] = BitMap((inside - new.start).astype(np.uint32))
        return moved

    def _iterate_kept(self) -> Iterator[pa.RecordBatch]:
        """The rows that are there."""
        start = 0
        for source in self.sources:
            source.start = start
            batches = self._files.iterate_rows(source.file, self._schema, self._schema.names)
            for first, batch in batches:
                kept = batch.filter(pa.array(mask_rows(source.gone, first, batch.num_rows)))
                self.read += source.file.size * batch.num_rows / source.rows
                start += kept.num_rows
                yield kept if self._values is None else self._values.fill(kept)


def group_sources(sources: Iterable[Source[F]]) -> Iterable[Sequence[Source[F]]]:
    """Files by their partitions: a new one has rows of one."""
    parts: dict[Hashable, list[Source[F]]] = {}
    for source in sources:
        parts.setdefault(source.file.partition, []).append(source)
    return parts.values()


def to_array(rows: BitMap) -> NDArray[np.int64]:
    """Rows in their order."""
    return np.array(rows.to_array(), np.int64)
