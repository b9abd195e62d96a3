"""Data files of a copy that are written anew, without the rows that are gone, in steps:
between two of them the table may change.

A new file has the rows of the old ones in their order. So a row that goes meanwhile is found in it
by counting, and is marked as gone there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyroaring import BitMap

from watcher.model.errors import ReplicaError
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
    """The rewrite of some files of a version, into files of about ``file_bytes``. ``read`` and
    ``written`` count bytes of old and of new files; those of old ones by their rows."""

    def __init__(
        self,
        files: RewrittenFiles[F, M],
        schema: pa.Schema,
        sources: Sequence[Source[F]],
        file_bytes: int,
    ) -> None:
        self._files = files
        self._schema = schema
        self._new = NewFiles(files, schema, file_bytes)
        self.sources = sources
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
        for rows in group_rows(self._iterate_kept(), self._schema):
            yield self._new.write(rows), rows
        self._new.finish()

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
                yield kept


def to_array(rows: BitMap) -> NDArray[np.int64]:
    """Rows in their order."""
    return np.array(rows.to_array(), np.int64)
