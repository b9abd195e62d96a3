"""How a window is read: the contract of captures, and of what a watcher watches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from watcher.captures.statements import COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN
from watcher.model.change import Shape
from watcher.model.window import Slice, Window
from watcher.planning.sources import PlannedSource
from watcher.tables.values import WatchedTable

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "COMMIT_TIMESTAMP_COLUMN",
    "SHARD_ID_COLUMN",
    "Capture",
    "Changed",
    "Source",
    "StreamRows",
    "TableRows",
]

SliceOfCapture = TypeVar("SliceOfCapture", bound=Slice)


class Capture(Protocol[SliceOfCapture]):
    """One way to read what a window holds: ``plan`` divides it into slices, ``read`` reads a slice.

    The two need nothing of each other but the slice. So a capture and its slices are picklable:
    one process plans, any number of others read, in any order, and again after a failure. The same
    slice gives the same rows as long as Spanner keeps the versions of the window's end.

    Captures of one table give ``TableRows``: ``PollCapture`` (the newest version of each row that
    changed in the window), ``KeyRangeCapture`` and ``SnapshotCapture`` (the whole table as it was
    at the window's end). ``ChangeStreamCapture`` gives ``StreamRows``: every change of many tables.
    """

    def plan(self, window: Window) -> Sequence[SliceOfCapture]:
        """Slices that together hold each row of a window once; none for an empty window, unless the
        capture reads whole tables. Makes one call to Spanner at most.

        Raises VersionExpiredError or StreamExpiredError where the plan itself is read at a
        timestamp that Spanner no longer keeps.
        """
        ...

    def read(self, part: SliceOfCapture) -> Iterator[Changed]:
        """What a slice holds, in batches of some megabytes, as of the window's end.

        Past version garbage collection tables are read strongly instead, which a log line says.
        Raises VersionExpiredError where that is no longer possible because batches were handed out,
        StreamExpiredError for a change stream, UnavailableError when Spanner does not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows of one table in one window, as Arrow columns: what a capture hands to a sink.

    With ``backfill`` they are rows as they were at the window's end, whenever they changed.
    ``outside``: which of them the table's filter leaves out, so that they have a key and no other
    values; None where such rows are not among them.
    """

    table: WatchedTable
    window: Window
    batch: pa.RecordBatch
    backfill: bool = False
    outside: pa.Array | None = None

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
        counts = self.batch.column("table").value_counts().to_pylist()
        return {each["values"]: each["counts"] for each in counts}


Changed = TableRows | StreamRows


class Source(PlannedSource, Protocol):
    """Everything that one watcher watches, read at one timestamp: a window is a consistent cut."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        ...

    @property
    def read_by_schema(self) -> bool:
        """True when a window must be read with the schema that is valid at its end. The records of
        a change stream describe their own columns."""
        ...

    def read(self, windows: Mapping[str, Window]) -> Iterator[Changed]:
        """What changed in every window."""
        ...
