"""How a window's rows are found: ``plan(window)`` gives slices, ``read(slice)`` batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from watcher.captures.statements import COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN
from watcher.change import Shape
from watcher.tables.values import WatchedTable
from watcher.window import Slice, Window

__all__ = [
    "COMMIT_TIMESTAMP_COLUMN",
    "SHARD_ID_COLUMN",
    "Capture",
    "Changed",
    "Look",
    "Rows",
    "Source",
    "StreamRows",
]


class Capture(Protocol):
    """Turns windows into rows. Picklable: executors call ``read`` in other processes."""

    @property
    def schema(self) -> pa.Schema:
        """Columns of every batch: the table's, then ``_commit_timestamp``, ``_shard_id``."""
        ...

    def plan(self, window: Window) -> Sequence[Slice]:
        """The slices of a window; none for an empty window. Reads nothing."""
        ...

    def read(self, part: Slice) -> Iterator[pa.RecordBatch]:
        """The rows of a slice, as they were at the window's end."""
        ...


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one table in one window, as Arrow columns: what a source hands to a sink.

    With ``backfill`` they are rows as they were at the window's end, whenever they changed.
    """

    table: WatchedTable
    window: Window
    batch: pa.RecordBatch
    backfill: bool = False

    @property
    def counts(self) -> Mapping[str, int]:
        """How many rows each table has."""
        return {self.table.name: self.batch.num_rows}


@dataclass(frozen=True, slots=True)
class StreamRows:
    """Changes of a change stream in one window, as Arrow columns: a row a change, of any table (the
    columns are those of ``watcher.captures.change_stream.rows.CHANGES``)."""

    window: Window
    batch: pa.RecordBatch
    shapes: tuple[Shape, ...]

    @property
    def counts(self) -> Mapping[str, int]:
        """How many changes each table has."""
        found = self.batch.column("table").value_counts().to_pylist()
        return {each["values"]: each["counts"] for each in found}


Changed = Rows | StreamRows


class Source(Protocol):
    """Everything that one watcher watches, read at one timestamp: a window is a consistent cut."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        ...

    @property
    def read_by_schema(self) -> bool:
        """True when a window must be read with the schema that is valid at its end. The records of
        a change stream tell their own columns."""
        ...

    def look(self, starts: Mapping[str, int], at: int | None = None) -> Look:
        """What changed since each table's position, as of now or of a timestamp: a cheap call.

        A row that is deleted between two timestamps is there at one and not at the other: a window
        that ends earlier than the look must be looked at again, at its own end.
        """
        ...

    def cut(self, windows: Mapping[str, Window], max_rows: int) -> int:
        """An end at which the windows hold about ``max_rows`` rows, or their own end."""
        ...

    def read(self, windows: Mapping[str, Window]) -> Iterator[Changed]:
        """What changed in every window."""
        ...


@dataclass(frozen=True, slots=True)
class Look:
    """``end`` is a timestamp at which a strong read was served; ``changed`` the tables that have
    rows between their start and it."""

    end: int
    changed: frozenset[str]
