"""The snapshot capture: a whole table at one timestamp, in the parts that Spanner makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from watcher.captures import statements
from watcher.captures.poll import PollCapture
from watcher.spanner.conditions import Condition
from watcher.spanner.partitions import Params, Partition, Types
from watcher.spanner.sql import quoted
from watcher.tables.values import WatchedTable
from watcher.window import Slice, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSlice(Slice):
    """A part of a table that anyone can read, anywhere, while Spanner keeps the transaction."""

    partition: Partition


@dataclass(frozen=True)
class SnapshotCapture:
    """Reads a table as it was at a window's end, whenever its rows changed. Picklable.

    ``condition`` leaves rows out; ``partitions_max`` is a hint to Spanner, 0 is none. With
    ``data_boost`` Spanner reads on machines of its own, for a price of its own.
    """

    poll: PollCapture
    condition: Condition | None = None
    data_boost: bool = False
    partitions_max: int = 0

    @property
    def schema(self) -> pa.Schema:
        """That of the poll capture."""
        return self.poll.schema

    def plan(self, window: Window) -> Sequence[SnapshotSlice]:
        """The parts of the table: one call. Raises VersionExpiredError."""
        found = self.poll.queries.stream.partition(
            self._sql, self._params, self._types, window.end, self.partitions_max
        )
        return [
            SnapshotSlice(table=self._table.name, window=window, shards=None, partition=part)
            for part in found
        ]

    def read(self, part: SnapshotSlice) -> Iterator[pa.RecordBatch]:
        """The rows of a part. Raises VersionExpiredError, UnavailableError."""
        results = self.poll.queries.stream.part(
            self._sql, self._params, self._types, part.partition, self.data_boost
        )
        yield from self.poll.batches(results)

    @cached_property
    def _table(self) -> WatchedTable:
        """Partitions are of the table, never of an index."""
        return replace(self.poll.table, index=None)

    @cached_property
    def _sql(self) -> str:
        columns = ", ".join(quoted(name) for name, _ in statements.selected(self._table))
        where = f" WHERE {self.condition.sql}" if self.condition is not None else ""
        return f"SELECT {columns} FROM {quoted(self._table.name)}{where}"  # noqa: S608

    @property
    def _params(self) -> Params:
        return self.condition.params if self.condition is not None else {}

    @property
    def _types(self) -> Types:
        return self.condition.types if self.condition is not None else {}
