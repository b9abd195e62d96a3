"""The snapshot capture: a whole table at one timestamp, in the parts that Spanner makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from watcher.captures import TableRows, statements
from watcher.captures.poll import PollCapture
from watcher.model.window import TableSlice, Window
from watcher.spanner.partitions import QueryPartition
from watcher.spanner.sql import Statement

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSlice(TableSlice):
    """A part of a table that anyone can read, anywhere, while Spanner keeps the transaction."""

    partition: QueryPartition


@dataclass(frozen=True)
class SnapshotCapture:
    """The ``Capture`` of a table as it was at a window's end, whenever its rows changed.

    With ``data_boost`` Spanner reads on machines of its own, for a price of its own.
    """

    poll: PollCapture
    data_boost: bool = False

    @property
    def schema(self) -> pa.Schema:
        """That of the poll capture."""
        return self.poll.schema

    def plan(self, window: Window) -> Sequence[SnapshotSlice]:
        """As ``Capture.plan``: Spanner's partitions, by one call. Raises VersionExpiredError."""
        stream = self.poll.queries.stream
        # assumes: partitions-cover-rows
        partitions = stream.partition(self._statement, window.end)
        name = self.poll.table.name
        return [SnapshotSlice(window, name, partition=each) for each in partitions]

    def read(self, part: SnapshotSlice) -> Iterator[TableRows]:
        """As ``Capture.read``, never strongly: raises VersionExpiredError, UnavailableError."""
        results = self.poll.queries.stream.read_partition(
            self._statement, part.partition, self.data_boost
        )
        return self.poll.decode_rows(results, part.window, backfill=True)

    def read_first(self, window: Window, rows: int) -> Iterator[TableRows]:
        """At most so many rows of the table, any, in one query. Raises VersionExpiredError."""
        statement = statements.limit_rows(self._statement, rows)
        results = self.poll.queries.stream.query(statement, window.end)
        return self.poll.decode_rows(results, window, backfill=True)

    @cached_property
    def _statement(self) -> Statement:
        """Spanner partitions reads of a table, never of an index."""
        return statements.select_table(self.poll.table, self.poll.stamps)
