"""What costs more to read, and is read less often: schema, retention, errors, counts."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from google.api_core.exceptions import (
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
)

from spanner_schema.model.names import list_user_tables
from spanner_schema.model.schema import Schema
from watcher.consumers.clearing.bounds import find_slowest
from watcher.consumers.states import StoredError
from watcher.model.errors import ConfigurationError, NotWatchableError, TableNotFoundError
from watcher.model.log_events.running import BACKFILL_NOT_COUNTED
from watcher.overview.counts import ROWS_BEHIND_MAX, count_behind, count_left, count_shards
from watcher.overview.reader import StaleReader
from watcher.overview.retention import find_stream_retention
from watcher.overview.stored import (
    Columns,
    StoredState,
    read_last_errors,
    read_version_retention,
)
from watcher.overview.values import Count, IndexOverview
from watcher.tables.discovery import find_watched_table
from watcher.tables.values import WatchedTable

LOG = logging.getLogger("watcher.overview")
TABLES_MAX = 200
"""The indexes of no more tables are counted, so that a round ends."""

REFUSED = (DeadlineExceeded, FailedPrecondition, InvalidArgument, NotFound)
"""What Spanner says of one table, such as that its index is gone meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """Everything as of ``at``, in microseconds since 1970. ``notes`` say by table why it was not
    counted."""

    at: int
    schema: Schema
    version_retention_seconds: int
    errors: Mapping[str, StoredError]
    tables: Mapping[str, WatchedTable]
    notes: Mapping[str, str]
    behind: Mapping[tuple[str, str], Count] = field(default_factory=dict)
    left: Mapping[tuple[str, str], Count] = field(default_factory=dict)
    indexes: tuple[IndexOverview, ...] = ()

    def find_stream_retention(self, table: str) -> int | None:
        """As ``retention.find_stream_retention``."""
        return find_stream_retention(self.schema, table)


class Measuring:
    """One round of measurements at the timestamp of a reader."""

    def __init__(
        self, reader: StaleReader, schema: Schema, state: StoredState, positions_table: str
    ) -> None:
        self._reader = reader
        self._schema = schema
        self._state = state
        self._positions_table = positions_table
        self._tables, self._notes = find_tables(schema, state, reader.database.name)

    def measure(self, columns: Columns) -> Measurements:
        """Reads and counts everything."""
        behind, left = self._count_behind(), self._count_left()
        indexes = tuple(
            index
            for table in self._tables.values()
            if (index := self._count_index(table)) is not None
        )
        return Measurements(
            at=self._reader.at,
            schema=self._schema,
            version_retention_seconds=read_version_retention(self._reader),
            errors=read_last_errors(self._reader, self._positions_table, columns),
            tables=self._tables,
            notes=self._notes,
            behind=behind,
            left=left,
            indexes=indexes,
        )

    def _count_behind(self) -> dict[tuple[str, str], Count]:
        counts: dict[tuple[str, int], Count] = {}
        behind: dict[tuple[str, str], Count] = {}
        for position in self._state.positions:
            table = self._tables.get(position.table)
            if table is None or position.table in self._notes:
                continue
            counted = (position.table, position.micros)
            try:
                if counted not in counts:
                    counts[counted] = count_behind(self._reader, table, position.micros)
            except REFUSED as error:
                self._notes[position.table] = f"not counted: {error.message}"
            else:
                behind[position.consumer, position.table] = counts[counted]
        return behind

    def _count_left(self) -> dict[tuple[str, str], Count]:
        left = {}
        for (consumer, table), progress in self._state.backfills.items():
            try:
                count = count_left(self._reader, self._schema, table, progress, ROWS_BEHIND_MAX)
            except REFUSED as error:
                BACKFILL_NOT_COUNTED.log(LOG, table=table, error=error.message)
                continue
            if count is not None:
                left[consumer, table] = count
        return left

    def _count_index(self, table: WatchedTable) -> IndexOverview | None:
        if table.name in self._notes:
            return None
        slowest, safe = find_safe_end(table, self._state)
        try:
            shards, clearable = count_shards(self._reader, table, safe)
        except REFUSED as error:
            self._notes[table.name] = f"not counted: {error.message}"
            return None
        return IndexOverview(
            table=table.name,
            index=table.index,
            counted_at=self._reader.at,
            shards=shards,
            clearable=clearable,
            slowest_consumer=slowest,
            clears=table.change_sets is not None
            or table.processed_column is not None
            or table.clears_by_null,
        )


def find_tables(
    schema: Schema, state: StoredState, database_name: str
) -> tuple[dict[str, WatchedTable], dict[str, str]]:
    """The tables that can be polled, those of consumers first, and why others cannot."""
    watched = list(dict.fromkeys(position.table for position in state.positions))
    others = [name for name in list_user_tables(schema) if name not in watched]
    tables: dict[str, WatchedTable] = {}
    notes: dict[str, str] = {}
    for name in [*watched, *others]:
        if len(tables) == TABLES_MAX:
            notes[name] = f"not counted: only the indexes of {TABLES_MAX} tables are"
            continue
        try:
            tables[name] = find_watched_table(schema, name, database_name)
        except (NotWatchableError, TableNotFoundError) as error:
            notes[name] = str(error)
    return tables, notes


def find_safe_end(table: WatchedTable, state: StoredState) -> tuple[str | None, int | None]:
    """The consumer that clearing of a table waits for, and up to where it may clear; None without
    consumers."""
    try:
        slowest = find_slowest(table, state.positions, state.selections)
    except ConfigurationError:
        return None, None
    return slowest.consumer, slowest.micros
