"""Positions in tables of a Spanner database: which several machines share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, KeySet, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from watcher.captures.progress import BackfillProgress
from watcher.consumers.positions.cleared import read_cleared
from watcher.consumers.positions.own_names import backfills_table, consumers_table
from watcher.consumers.positions.selections import SELECTION_COLUMN, store_selection
from watcher.consumers.positions.switches import check_still_in_index
from watcher.consumers.positions.tables import create_own_tables, select_of_consumer
from watcher.consumers.positions.values import (
    TABLE,
    BackfillMove,
    Move,
    Position,
    Positions,
    Registered,
    Registration,
    apply_moves,
    check_backfills,
    plan_registration,
)
from watcher.model.errors import LeaseLostError
from watcher.spanner.dialects import SqlDialect, find_dialect
from watcher.spanner.timestamps import to_datetime, to_micros
from watcher.spanner.transactions import run_optimistically

POSITION_COLUMNS = ("Consumer", "WatchedTable", "Position", "UpdatedAt")
PLAN_COLUMNS = ("Consumer", "WatchedTable", "PlannedEnd")
BACKFILL_COLUMNS = ("Consumer", "WatchedTable", "Progress")


def check_owner(
    transaction: Transaction,
    positions_table: str,
    consumer: str,
    owner: str | None,
    sql: SqlDialect,
) -> None:
    """Raises LeaseLostError unless this instance holds the consumer's lease; ``owner`` None has
    none to be checked. In the transaction of the write that it fences."""
    if owner is None:
        return
    table = consumers_table(positions_table)
    rows = transaction.execute_sql(*select_of_consumer(sql, table, ("Owner",), consumer))
    demand_owner(consumer, owner, {row[0] for row in rows})


def demand_owner(consumer: str, owner: str, found: Set[str | None]) -> None:
    """Raises LeaseLostError unless the instance is the one that the stored lease names."""
    if found != {owner}:
        raise taken_over(consumer)


def taken_over(consumer: str) -> LeaseLostError:
    """The error of an instance whose lease is another's."""
    return LeaseLostError(
        f"another instance has taken over the consumer '{consumer}', or it was unregistered; this"
        " one stops"
    )


class SpannerPositions(Positions):
    """Positions in tables of a Spanner database, which are made when they are not there."""

    unplanned_micros = 30_000_000  # a commit less for almost every window of who keeps up

    def __init__(self, database: Database, table: str = TABLE) -> None:
        self._database = database
        self._name = table
        self._backfills = backfills_table(table)

    @property
    def database(self) -> Database:
        """The database that keeps the positions."""
        return self._database

    @property
    def sql(self) -> SqlDialect:
        """How statements are written for it."""
        return find_dialect(self._database)

    @property
    def table(self) -> str:
        """The name of the table of positions."""
        return self._name

    def create(self) -> None:
        """Creates the product's own tables where they are missing. Several at once may try."""
        create_own_tables(self._database, self._name)

    def load(self, consumer: str, table: str) -> Position | None:
        """As ``Positions.load``."""
        micros = self.load_all(consumer).get(table)
        return None if micros is None else Position(consumer, table, micros)

    def register(self, registration: Registration, owner: str | None = None) -> Registered:
        """As ``Positions.register``; the transaction reads how far each table was cleared, so that
        nothing above a new position was cleared or will be."""

        def register(transaction: Transaction) -> Registered:
            check_owner(transaction, self._name, registration.consumer, owner, self.sql)
            if owner is not None:  # who has no lease has no state to store it in
                name, selection = registration.consumer, registration.selection
                check_still_in_index(transaction, self._name, name, selection, self.sql)
                store_selection(transaction, self._name, name, selection)
            return self.register_in(transaction, registration)

        return run_optimistically(self._database, register)

    def register_in(self, transaction: Transaction, registration: Registration) -> Registered:
        """``register`` as a part of a transaction."""
        consumer = registration.consumer
        stored = self._read(transaction, consumer)
        cleared = read_cleared(transaction, self._name, registration.tables_cleared, self.sql)
        plan = plan_registration(registration, stored, cleared)
        if plan.moved:
            rows = [(consumer, table, at) for table, at in plan.moved.items()]
            self._write(transaction, rows)
            self.plan_ends_in(transaction, consumer, plan.moved)
            self._write_backfills(transaction, consumer, plan.backfills.items())
        if plan.ended:
            ended = KeySet(keys=[[consumer, table] for table in sorted(plan.ended)])
            transaction.delete(self._backfills, ended)
        return plan

    def save_all(
        self,
        moves: Sequence[Move],
        owner: str | None = None,
        backfills: Sequence[BackfillMove] = (),
        consumer: str | None = None,
    ) -> None:
        """As ``Positions.save_all``; one read-write transaction."""
        if not moves and not backfills:
            return
        name = consumer or moves[0].position.consumer

        def save(transaction: Transaction) -> None:
            if moves:
                self._move(transaction, name, moves, owner)
            else:
                check_owner(transaction, self._name, name, owner, self.sql)
            if backfills:
                self._move_backfills(transaction, name, backfills, owner)

        run_optimistically(self._database, save)

    def _move(
        self, transaction: Transaction, consumer: str, moves: Sequence[Move], owner: str | None
    ) -> None:
        read = self._read_owned(transaction, consumer, owner)
        stored = {(consumer, table): at for table, at in read.items()}
        if owner is not None and all(
            stored.get((consumer, m.position.table)) == m.position.micros for m in moves
        ):
            return  # a commit of ours whose answer was lost, tried again
        apply_moves(stored, moves)
        self._write(
            transaction, [(m.position.consumer, m.position.table, m.position.micros) for m in moves]
        )

    def _move_backfills(
        self,
        transaction: Transaction,
        consumer: str,
        moves: Sequence[BackfillMove],
        owner: str | None,
    ) -> None:
        stored = self._read_backfills(transaction, consumer)
        if owner is not None and all(stored.get(m.table) == m.progress for m in moves):
            return  # as in _move
        check_backfills(consumer, stored, moves)
        under_way = [(m.table, m.progress) for m in moves if m.progress is not None]
        self._write_backfills(transaction, consumer, under_way)
        done = [[consumer, m.table] for m in moves if m.progress is None]
        if done:
            transaction.delete(self._backfills, KeySet(keys=done))

    def _write(self, transaction: Transaction, rows: Iterable[tuple[str, str, int]]) -> None:
        values = [(c, table, to_datetime(micros), COMMIT_TIMESTAMP) for c, table, micros in rows]
        transaction.insert_or_update(self._name, POSITION_COLUMNS, values)

    def _write_backfills(
        self, transaction: Transaction, consumer: str, items: Iterable[tuple[str, BackfillProgress]]
    ) -> None:
        rows = [(consumer, table, progress.to_text()) for table, progress in items]
        if rows:
            transaction.insert_or_update(self._backfills, BACKFILL_COLUMNS, rows)

    def _read(self, transaction: Transaction, consumer: str) -> dict[str, int]:
        columns = ("WatchedTable", "Position")
        query = select_of_consumer(self.sql, self._name, columns, consumer)
        rows = transaction.execute_sql(*query)
        return {row[0]: to_micros(row[1]) for row in rows}

    def _read_owned(
        self, transaction: Transaction, consumer: str, owner: str | None
    ) -> dict[str, int]:
        """``check_owner`` and the positions in one query: every window that is saved asks both."""
        if owner is None:
            return self._read(transaction, consumer)
        q = self.sql.quote
        text = (
            f"SELECT c.{q('Owner')}, p.{q('WatchedTable')}, p.{q('Position')}"  # noqa: S608 (quoted)
            f" FROM {q(consumers_table(self._name))} AS c LEFT JOIN {q(self._name)} AS p"
            f" ON p.{q('Consumer')} = @consumer WHERE c.{q('Consumer')} = @consumer"
        )
        query = self.sql.bind(text, {"consumer": (consumer, param_types.STRING)})
        rows = list(transaction.execute_sql(*query))
        demand_owner(consumer, owner, {row[0] for row in rows})
        return {row[1]: to_micros(row[2]) for row in rows if row[1] is not None}

    def _read_backfills(
        self, transaction: Transaction, consumer: str
    ) -> dict[str, BackfillProgress]:
        columns = ("WatchedTable", "Progress")
        query = select_of_consumer(self.sql, self._backfills, columns, consumer)
        rows = transaction.execute_sql(*query)
        return {row[0]: BackfillProgress.from_text(row[1]) for row in rows}

    def plan_ends(
        self, consumer: str, ends: Mapping[str, int | None], owner: str | None = None
    ) -> None:
        """As ``Positions.plan_ends``."""

        def plan(transaction: Transaction) -> None:
            check_owner(transaction, self._name, consumer, owner, self.sql)
            self.plan_ends_in(transaction, consumer, ends)

        run_optimistically(self._database, plan)

    def plan_ends_in(
        self, transaction: Transaction, consumer: str, ends: Mapping[str, int | None]
    ) -> None:
        """``plan_ends`` as a part of a transaction."""
        rows = [
            (consumer, table, to_datetime(end) if end is not None else None)
            for table, end in ends.items()
        ]
        if rows:
            transaction.update(self._name, PLAN_COLUMNS, rows)

    def load_planned_ends(self, consumer: str) -> dict[str, int]:
        """As ``Positions.load_planned_ends``."""
        planned = f" AND {self.sql.quote('PlannedEnd')} IS NOT NULL"
        columns = ("WatchedTable", "PlannedEnd")
        query = select_of_consumer(self.sql, self._name, columns, consumer, planned)
        with self._database.snapshot() as snapshot:
            rows = snapshot.execute_sql(*query)
            return {row[0]: to_micros(row[1]) for row in rows}

    def remove(self, consumer: str, tables: Sequence[str], owner: str | None = None) -> None:
        """As ``Positions.remove``."""
        keys = KeySet(keys=[[consumer, table] for table in tables])

        def remove(transaction: Transaction) -> None:
            check_owner(transaction, self._name, consumer, owner, self.sql)
            transaction.delete(self._name, keys)
            transaction.delete(self._backfills, keys)

        if tables:
            run_optimistically(self._database, remove)

    def load_all(self, consumer: str) -> dict[str, int]:
        """As ``Positions.load_all``."""
        with self._database.snapshot() as snapshot:
            return self._read(snapshot, consumer)

    def load_selection(self, consumer: str) -> str | None:
        """As ``Positions.load_selection``."""
        table = consumers_table(self._name)
        query = select_of_consumer(self.sql, table, (SELECTION_COLUMN,), consumer)
        with self._database.snapshot() as snapshot:
            return next((row[0] for row in snapshot.execute_sql(*query)), None)

    def load_backfills(self, consumer: str) -> dict[str, BackfillProgress]:
        """As ``Positions.load_backfills``."""
        with self._database.snapshot() as snapshot:
            return self._read_backfills(snapshot, consumer)

    def list_all(self) -> tuple[Position, ...]:
        """As ``Positions.list_all``, by consumer and table."""
        q = self.sql.quote_all
        text = (
            f"SELECT {q(POSITION_COLUMNS[:3])} FROM {q([self._name])}"  # noqa: S608 (quoted)
            f" ORDER BY {q(POSITION_COLUMNS[:2])}"
        )
        with self._database.snapshot() as snapshot:
            rows = snapshot.execute_sql(text)
            return tuple(Position(row[0], row[1], to_micros(row[2])) for row in rows)
