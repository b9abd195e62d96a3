"""Reads what an operator sees, again and again, at a cost that does not grow with the tables."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

from google.cloud.spanner_v1.database import Database

from spanner_schema.model.schema import Schema
from watcher.model.errors import NotWatchableError
from watcher.overview.assembly import assemble
from watcher.overview.copies import Proofs, ReadProofs, add_proofs, no_proofs
from watcher.overview.counts import count_index, count_left
from watcher.overview.measurements import Measurements, Measuring, find_safe_end
from watcher.overview.reader import StaleReader
from watcher.overview.stored import (
    Columns,
    StoredState,
    read_own_columns,
    read_stored_state,
)
from watcher.overview.values import Overview, Sample
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.queries import QueryClient
from watcher.spanner.read_options import Priority, ReadOptions, write_tag
from watcher.tables.discovery import find_watched_table
from watcher.tables.schema_reader import read_epoch

STALENESS_SECONDS = 10.0
COUNT_SECONDS = 15.0
SHARE_OF_TIME = 10
"""Counting takes no more than one part in so many of the time."""
SAMPLES_MAX = 120
OUTAGE_SECONDS = 5.0
EXACT_SECONDS_MAX = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactCounts:
    """A table, counted whole, in rows: its index, what of it may be cleared (None where it has no
    index), and for each consumer that backfills it what is left, and all there is."""

    table: str
    at: int
    rows: int | None
    clearable: int | None
    backfills: Mapping[str, tuple[int, int]]


class Observer:
    """Reads one database. Not more than one ``read`` at a time.

    Reads are ``staleness_seconds`` old and yield to others; schema, errors and counts are read
    every ``count_seconds`` at most.
    """

    def __init__(
        self,
        database: Database,
        address: DatabaseAddress,
        positions_table: str,
        staleness_seconds: float = STALENESS_SECONDS,
        count_seconds: float = COUNT_SECONDS,
        read_proofs: ReadProofs = no_proofs,
    ) -> None:
        self._database = database
        self._address = address
        self._positions_table = positions_table
        self._staleness = round(staleness_seconds * 1_000_000)
        self._count_seconds = count_seconds
        self._read_proofs = read_proofs
        self._proofs: Proofs = {}
        self._queries = QueryClient(
            address, ReadOptions(Priority.LOW, tag=write_tag("page")), OUTAGE_SECONDS
        )
        self._columns: Columns = {}
        self._measured: Measurements | None = None
        self._measure_after = 0.0
        self._history: dict[str, deque[Sample]] = {}

    def read(self) -> Overview:
        """Everything now; counts may be older. Raises what the client and watcher raise."""
        now, reader = self._open()
        measured = self._measured if time.monotonic() < self._measure_after else None
        if measured is None:
            self._columns = read_own_columns(reader, self._positions_table)
        state = read_stored_state(reader, self._positions_table, self._columns)
        if measured is None:
            measured = self._measure(reader, state)
            self._proofs = self._read_proofs()
        history = {table: tuple(samples) for table, samples in self._history.items()}
        overview = assemble(str(self._address), now, state, measured, history)
        return add_proofs(overview, self._proofs)

    def _measure(self, reader: StaleReader, state: StoredState) -> Measurements:
        """A round of measurements, and when the next one is due."""
        started = time.monotonic()
        schema = read_epoch(self._queries.stream, reader.at).schema
        measuring = Measuring(reader, schema, state, self._positions_table)
        measured = self._measured = measuring.measure(self._columns)
        self._record(measured)
        ended = time.monotonic()
        pause = max(self._count_seconds, (SHARE_OF_TIME - 1) * (ended - started))
        self._measure_after = ended + pause
        return measured

    def count_exactly(self, table: str) -> ExactCounts:
        """Counts a table whole, within a minute. Raises TableNotFoundError, NotWatchableError for
        one that has neither an index nor a backfill, DeadlineExceeded."""
        _, reader = self._open(EXACT_SECONDS_MAX)
        columns = read_own_columns(reader, self._positions_table)
        state = read_stored_state(reader, self._positions_table, columns)
        schema = read_epoch(self._queries.stream, reader.at).schema
        backfills = count_backfills(reader, schema, state, table)
        rows = clearable = None
        try:
            watched = find_watched_table(schema, table, self._database.name)
        except NotWatchableError:
            if not backfills:
                raise
        else:
            rows, clearable = count_index(reader, watched, find_safe_end(watched, state)[1])
        return ExactCounts(
            table=table, at=reader.at, rows=rows, clearable=clearable, backfills=backfills
        )

    def _open(self, seconds_max: float = 30.0) -> tuple[int, StaleReader]:
        """Spanner's time, and a reader some seconds before it."""
        now = self._queries.fetch_read_timestamp()
        at, directed = now - self._staleness, self._address.directed_read
        return now, StaleReader(self._database, at, seconds_max, directed)

    def _record(self, measured: Measurements) -> None:
        """Keeps the counts of shards; a table whose shards are others begins anew."""
        for index in measured.indexes:
            rows = tuple(each.count.rows for each in index.shards)
            samples = self._history.get(index.table)
            if samples is None or len(samples[-1].rows) != len(rows):
                samples = self._history[index.table] = deque(maxlen=SAMPLES_MAX)
            samples.append(Sample(measured.at, rows))


def count_backfills(
    reader: StaleReader, schema: Schema, state: StoredState, table: str
) -> dict[str, tuple[int, int]]:
    """For each consumer that backfills a table: the rows that are left, and all rows."""
    counts = {}
    for (consumer, name), progress in state.backfills.items():
        if name != table:
            continue
        left = count_left(reader, schema, name, progress, None)
        whole = count_left(reader, schema, name, replace(progress, after=None), None)
        if left is not None and whole is not None:
            counts[consumer] = (left.rows, whole.rows)
    return counts
