"""How far a table may be cleared, by what its consumers have delivered: rule 2 of
docs/protocol.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.positions import (
    Position,
    Positions,
    SpannerPositions,
    check_owner,
    consumers_table,
    create_own_tables,
)
from watcher.consumers.positions.cleared import write_cleared
from watcher.consumers.positions.reader import RowReader
from watcher.consumers.positions.selections import SELECTION_COLUMN, read_selections
from watcher.consumers.positions.tables import Columns, is_complete, read_own_columns
from watcher.model.errors import ConfigurationError
from watcher.model.window import BEGINNING
from watcher.spanner.dialects import SqlDialect, find_dialect
from watcher.spanner.timestamps import to_micros
from watcher.spanner.transactions import run_optimistically
from watcher.tables.selection import Selection
from watcher.tables.values import WatchedTable


@dataclass(frozen=True, slots=True)
class Slowest:
    """The consumer that clearing of a table waits for. ``micros`` is everything that it has
    delivered; ``registered`` is False when it polls the table but has no position in it yet."""

    consumer: str
    micros: int
    registered: bool = True


@dataclass(frozen=True, slots=True)
class Fence:
    """The instance that clears: it must own the lease of its consumer."""

    consumer: str
    owner: str


class Bounds(Protocol):
    """Says up to where may be cleared."""

    def read(self, table: WatchedTable) -> Slowest:
        """The slowest consumer now. Raises ConfigurationError when there is none: then nothing is
        known to be delivered."""
        ...

    def announce(self, table: WatchedTable, margin: int, end: int) -> tuple[int, Slowest]:
        """How far the table may be cleared, ``end`` at most, and the slowest consumer. From now on
        a registration takes it into account. Raises LeaseLostError when another instance has taken
        over."""
        ...


class KnownPositions:
    """Bounds by positions alone, for those that are not kept in Spanner: one process clears behind
    itself."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions

    def read(self, table: WatchedTable) -> Slowest:
        """As ``Bounds.read``."""
        return find_slowest(table, self._positions.list_all(), {})

    def announce(self, table: WatchedTable, margin: int, end: int) -> tuple[int, Slowest]:
        """As ``Bounds.announce``; nobody else can register."""
        slowest = self.read(table)
        return limit_safe_end(slowest, margin, end), slowest


class SharedPositions:
    """Bounds by the positions and selections in Spanner; cleared-to is written there."""

    def __init__(self, positions: SpannerPositions, fence: Fence | None) -> None:
        self._database = positions.database
        self._name = positions.table
        self._fence = fence
        self._tables_exist = False

    def read(self, table: WatchedTable) -> Slowest:
        """As ``Bounds.read``; makes no table."""
        columns = read_own_columns(self._database, self._name)
        # One look at INFORMATION_SCHEMA a clearing: what is complete needs not be made.
        self._tables_exist = is_complete(columns, self._name, find_dialect(self._database).dialect)
        with self._database.snapshot(multi_use=True) as snapshot:
            return self._find_slowest(snapshot, table, columns)

    def announce(self, table: WatchedTable, margin: int, end: int) -> tuple[int, Slowest]:
        """As ``Bounds.announce``; one read-write transaction, so that a consumer registers before
        it, and is seen, or after it, and sees cleared-to.

        A clearer that was frozen after this does no harm: cleared-to never goes back.
        """
        self._create_tables()

        sql = find_dialect(self._database)

        def write(transaction: Transaction) -> tuple[int, Slowest]:
            if self._fence is not None:
                fence = self._fence
                check_owner(transaction, self._name, fence.consumer, fence.owner, sql)
            slowest = self._find_slowest(transaction, table, None)
            safe = limit_safe_end(slowest, margin, end)
            if safe > BEGINNING:
                write_cleared(transaction, self._name, names_to_announce(table), safe, sql)
            return safe, slowest

        return run_optimistically(self._database, write)

    def _create_tables(self) -> None:
        """From here on every table and column is there: a selection that is stored is seen."""
        if not self._tables_exist:
            create_own_tables(self._database, self._name)
            self._tables_exist = True

    def _find_slowest(
        self, reader: RowReader, table: WatchedTable, columns: Columns | None
    ) -> Slowest:
        """What an older release has not made (``columns`` None: everything is there) is empty."""
        consumers = (consumers_table(self._name), SELECTION_COLUMN)
        sql = find_dialect(self._database)
        positions: list[Position] = []
        selections: dict[str, Selection] = {}
        if columns is None or (self._name, "Position") in columns:
            positions = read_positions(reader, self._name, sql)
        if columns is None or consumers in columns:
            selections = read_selections(reader, self._name, sql)
        return find_slowest(table, positions, selections)


def make_bounds(positions: Positions, fence: Fence | None) -> Bounds:
    """The bounds that positions give. Raises ConfigurationError for a fence without leases."""
    if isinstance(positions, SpannerPositions):
        return SharedPositions(positions, fence)
    if fence is not None:
        raise ConfigurationError("leases need positions that are kept in Spanner")
    return KnownPositions(positions)


def read_positions(reader: RowReader, positions_table: str, sql: SqlDialect) -> list[Position]:
    """Every position that there is."""
    columns = sql.quote_all(("Consumer", "WatchedTable", "Position"))
    rows = reader.execute_sql(f"SELECT {columns} FROM {sql.quote(positions_table)}")  # noqa: S608
    return [Position(row[0], row[1], to_micros(row[2])) for row in rows]


def find_slowest(
    table: WatchedTable, positions: Sequence[Position], selections: Mapping[str, Selection]
) -> Slowest:
    """The consumer that has delivered least of a table. Raises ConfigurationError without any."""
    awaited = list_awaited(table, positions, selections)
    if not awaited:
        raise ConfigurationError(
            f"no consumer of {table.name} is registered, so nothing is known to be"
            " delivered; start one first (spanner-watcher watch, or a Spark query with the"
            " option consumer)"
        )
    return min(awaited, key=lambda each: (each.micros, each.consumer))


def list_awaited(
    table: WatchedTable, positions: Sequence[Position], selections: Mapping[str, Selection]
) -> list[Slowest]:
    """Everybody who has to deliver before a table is cleared.

    Readers of change streams read nothing from an index, so that they hold up no clearing. Change
    sets are shared by tables that are not all known here: every position counts, and every polling
    consumer. Else a consumer that polls the table but has not registered it has read
    nothing of it, and starts at the beginning: rows that were written before the table was
    watchable may be older than its positions in other tables.
    """
    streamed = {name for name, each in selections.items() if each.streamed}
    selections = {name: each for name, each in selections.items() if name not in streamed}
    positions = [each for each in positions if each.consumer not in streamed]
    if table.change_sets is not None:
        least = find_least_positions(positions)
        slowest = {consumer: Slowest(consumer, micros) for consumer, micros in least.items()}
        polling = list(selections)
    else:
        slowest = {
            each.consumer: Slowest(each.consumer, each.micros)
            for each in positions
            if each.table == table.name
        }
        polling = [name for name, each in selections.items() if each.includes(table.name)]
    unregistered = {name: Slowest(name, BEGINNING, registered=False) for name in polling}
    return list((unregistered | slowest).values())


def find_least_positions(positions: Sequence[Position]) -> dict[str, int]:
    """The least position of each consumer, over all its tables."""
    least: dict[str, int] = {}
    for each in positions:
        least[each.consumer] = min(least.get(each.consumer, each.micros), each.micros)
    return least


def limit_safe_end(slowest: Slowest, margin: int, end: int) -> int:
    """Where clearing ends, ``end`` at most, all in microseconds."""
    return min(max(slowest.micros - margin, BEGINNING), end)


def names_to_announce(table: WatchedTable) -> tuple[str, ...]:
    """The tables whose rows may be missed: with change sets, theirs and that of the rows."""
    sets = table.change_sets
    return (table.name,) if sets is None else (sets.table, table.name)
