"""All that is stored under the names of consumers, read and changed in one transaction: what keeps
out who held a name before, and what goes to other names. Rules 3, 4 and 13 of docs/protocol.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, KeyRange, KeySet, param_types
from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.positions.fences import FOREVER, NameFence, check_name, is_alive
from watcher.consumers.positions.own_names import (
    backfills_table,
    consumers_table,
    divisions_table,
    members_table,
)
from watcher.consumers.positions.reader import RowReader
from watcher.consumers.positions.selections import (
    SELECTION_COLUMN,
    parse_selection,
    unite_selections,
)
from watcher.consumers.positions.tables import Columns, own_tables, read_names, select_of_consumer
from watcher.consumers.states import Command, State
from watcher.model.errors import ConfigurationError, DivisionChangedError, LeaseHeldError
from watcher.model.window import BEGINNING
from watcher.spanner.dialects import SqlDialect
from watcher.spanner.timestamps import to_datetime, to_micros
from watcher.tables.parts import count_parts, find_parts, parse_part_name
from watcher.tables.selection import Selection

STRICTEST = (Command.STOP, Command.PAUSE, Command.DRAIN)


@dataclass(frozen=True, slots=True)
class StoredPosition:
    """A position, and how far rows may have been handed over above it: rule 8 of docs/protocol.md;
    None: as far as goes without a plan."""

    position: int
    reached: int | None


@dataclass(frozen=True, slots=True)
class StoredConsumer:
    """A consumer: its positions by table, which tables it polls, as text, what operators ask of it,
    and whether an instance holds its name. ``exists``: it has a state; ``ours`` are the product's
    own tables, which nobody polls; ``fence`` keeps instances from its name."""

    name: str
    positions: Mapping[str, StoredPosition] = field(default_factory=dict)
    selection: str | None = None
    command: Command | None = None
    alive: bool = False
    exists: bool = False
    ours: tuple[str, ...] = ()
    fence: NameFence | None = None

    def read_selection(self) -> Selection | None:
        """Which tables it polls. Raises CheckpointError for what cannot be read."""
        if self.selection is None:
            return None
        return parse_selection(self.selection, self.name, self.ours)


@dataclass(frozen=True, slots=True)
class MovedConsumer:
    """What goes to another name beside positions."""

    selection: Selection | None
    command: Command | None


class StoredRows:
    """The rows as one transaction or snapshot sees them."""

    def __init__(
        self,
        reader: RowReader,
        positions_table: str,
        sql: SqlDialect,
        columns: Columns | None = None,
    ) -> None:
        """``columns`` are those that there are: what an older release has not made is as if it were
        empty. None: all of them."""
        self._reader = reader
        self._table = positions_table
        self._sql = sql
        self._columns = columns
        self._consumers = consumers_table(positions_table)
        self._backfills = backfills_table(positions_table)
        self._divisions = divisions_table(positions_table)

    def _has(self, table: str, column: str) -> bool:
        return self._columns is None or (table, column) in self._columns

    def _select(self, table: str, columns: Sequence[str], consumer: str) -> list[Any]:
        query = select_of_consumer(self._sql, table, columns, consumer)
        return list(self._reader.execute_sql(*query))

    def read_names(self) -> set[str]:
        """The names of all consumers that have a state or a position."""
        return read_names(self._reader, self._table, self._sql, self._columns)

    def read_positions(self, consumer: str) -> dict[str, StoredPosition]:
        """The positions of a consumer by table."""
        if not self._has(self._table, "Position"):
            return {}
        planned = self._has(self._table, "PlannedEnd")
        columns = ("WatchedTable", "Position", *(("PlannedEnd",) if planned else ()))
        return {
            row[0]: StoredPosition(
                to_micros(row[1]), to_micros(row[2]) if planned and row[2] is not None else None
            )
            for row in self._select(self._table, columns, consumer)
        }

    def read(self, consumer: str) -> StoredConsumer:
        """What is stored of a consumer."""
        positions = self.read_positions(consumer)
        if not self._has(self._consumers, "Owner"):
            return StoredConsumer(consumer, positions)
        q = self._sql.quote
        added = (SELECTION_COLUMN, "Reason")
        selection, reason = (q(n) if self._has(self._consumers, n) else "NULL" for n in added)
        text = (
            f"SELECT {is_alive(self._sql)}, {selection}, {q('Command')}, {q('Owner')}, {reason}"  # noqa: S608
            f" FROM {q(self._consumers)} WHERE {q('Consumer')} = @consumer"
        )
        bound = self._sql.bind(text, {"consumer": (consumer, param_types.STRING)})
        for alive, selected, command, owner, why in self._reader.execute_sql(*bound):
            asked, ours = Command(command) if command else None, own_tables(self._table)
            fence = NameFence.parse(owner, why)
            return StoredConsumer(
                consumer, positions, selected, asked, bool(alive), True, ours, fence
            )
        return StoredConsumer(consumer, positions)

    def read_group(self, consumer: str) -> tuple[StoredConsumer, ...]:
        """What is stored of a consumer, and of its parts; nothing where there is none."""
        known = self.read_names()
        names = (*({consumer} & known), *find_parts(consumer, known))
        return tuple(map(self.read, names))

    def read_divisions(self, shared: str) -> dict[str, str]:
        """How the tables of a shared consumer are divided; empty for one that is whole."""
        rows = self._select(self._divisions, ("WatchedTable", "Division"), shared)
        return {row[0]: row[1] for row in rows}

    # Who may not go on.

    def check_division(self, consumer: str) -> None:
        """Raises an error for who would run as the whole of a consumer that is divided, or as a
        part of one that is not divided so: an instance that was frozen while others have merged,
        divided or unregistered the consumer. In the transaction that takes a name, or says that an
        instance is there."""
        part = parse_part_name(consumer)
        if part is not None:
            self.check_divided(part[0], part[1].of)
        elif self.read_divisions(consumer):
            raise ConfigurationError(
                f"consumer '{consumer}' is divided into parts: start it with 'parts' as before, or"
                f" stop all its instances and run: spanner-watcher ctl merge {consumer}"
            )

    def check_divided(self, shared: str, of: int) -> None:
        """Raises DivisionChangedError unless a consumer is divided into so many parts."""
        stored = self.read_divisions(shared)
        if {count_parts(each) for each in stored.values()} != {of}:
            raise DivisionChangedError(
                f"consumer '{shared}' is not divided into {of} parts, or not any more: it was"
                " merged, divided in another way, or unregistered since this instance began; start"
                " it again"
            )

    def check_ended(self, stored: StoredConsumer) -> None:
        """Raises LeaseHeldError while an instance runs as a consumer, or a backfill of it is not
        done: its positions cannot be moved to other names; ConsumerMovedError where they are
        already."""
        check_name(stored.name, stored.fence)
        if stored.alive:
            raise LeaseHeldError(
                f"an instance runs as consumer '{stored.name}'; stop it first: spanner-watcher ctl"
                f" stop {stored.name}"
            )
        self.check_filled(stored)

    def check_filled(self, stored: StoredConsumer) -> None:
        """Raises LeaseHeldError while a backfill of a consumer is not done."""
        if self._select(self._backfills, ("WatchedTable",), stored.name):
            raise LeaseHeldError(
                f"a backfill of consumer '{stored.name}' is not done; start it as before and let"
                " it end"
            )


class MovedRows(StoredRows):
    """The rows as a read-write transaction changes them."""

    def __init__(
        self,
        transaction: Transaction,
        positions_table: str,
        sql: SqlDialect,
        columns: Columns | None = None,
    ) -> None:
        super().__init__(transaction, positions_table, sql, columns)
        self._transaction = transaction

    def write_state(self, consumers: Iterable[str], moved: MovedConsumer) -> None:
        """Gives consumers that nobody runs the selection and the command of another one. Nobody
        owns their leases from now on."""
        state = ("Consumer", "State", SELECTION_COLUMN, "Command", "UpdatedAt")
        columns = (*state, "Owner", "LeaseUntil")
        selection = moved.selection.to_text() if moved.selection is not None else None
        command = str(moved.command) if moved.command is not None else None
        values = (str(State.NOT_STARTED), selection, command, COMMIT_TIMESTAMP, None, None)
        rows = [(name, *values) for name in consumers]
        if rows:
            self._transaction.insert_or_update(self._consumers, columns, rows)

    def write_positions(self, consumer: str, positions: Mapping[str, StoredPosition]) -> None:
        """Gives a consumer positions, with how far rows were handed over above them."""
        columns = ("Consumer", "WatchedTable", "Position", "PlannedEnd", "UpdatedAt")
        rows = [
            (
                consumer,
                table,
                to_datetime(each.position),
                None if each.reached is None else to_datetime(each.reached),
                COMMIT_TIMESTAMP,
            )
            for table, each in positions.items()
        ]
        if rows:
            self._transaction.insert_or_update(self._table, columns, rows)

    def write_divisions(self, shared: str, divisions: Mapping[str, str]) -> None:
        """How the tables of a shared consumer are divided."""
        columns = ("Consumer", "WatchedTable", "Division", "UpdatedAt")
        rows = [(shared, table, each, COMMIT_TIMESTAMP) for table, each in divisions.items()]
        if rows:
            self._transaction.insert_or_update(self._divisions, columns, rows)

    def fence(self, consumer: str, fence: NameFence) -> None:
        """From now on no instance can take a name, or go on with it."""
        columns = ("Consumer", "State", "Owner", "LeaseUntil", "Reason", "UpdatedAt")
        row = (consumer, str(State.STOPPED), fence.kind, FOREVER, fence.to_text(), COMMIT_TIMESTAMP)
        self._transaction.insert_or_update(self._consumers, columns, [row])

    def open_name(self, consumer: str) -> None:
        """Instances may take a name that was fenced."""
        columns = ("Consumer", "State", "Owner", "LeaseUntil", "Reason")
        row = (consumer, str(State.NOT_STARTED), None, None, None)
        self._transaction.update(self._consumers, columns, [row])

    def remove(self, consumer: str, tables: Sequence[str], whole: bool) -> None:
        """Removes positions and backfills in these tables; as a ``whole``, all backfills and the
        state too: clearing would wait for a consumer that polls and has no position."""
        keys = KeySet(keys=[[consumer, table] for table in tables])
        if tables:
            self._transaction.delete(self._table, keys)
        if self._has(self._backfills, "Progress"):
            of_consumer = KeyRange(start_closed=[consumer], end_closed=[consumer])
            all_tables = KeySet(ranges=[of_consumer])
            self._transaction.delete(self._backfills, all_tables if whole else keys)
        if whole and self._has(self._consumers, "Owner"):
            self._transaction.delete(self._consumers, KeySet(keys=[[consumer]]))

    def move_away(self, stored: StoredConsumer, tables: Sequence[str]) -> None:
        """Removes positions of a consumer that go to other names, and its state when it has no
        other."""
        left = stored.positions.keys() - set(tables)
        self.remove(stored.name, tables, whole=not left)
        if left:
            self.end_lease(stored.name)

    def end_lease(self, consumer: str) -> None:
        """Nobody owns a consumer's lease any more: an instance whose lease has run out, and that
        was frozen meanwhile, is refused at its next renewal."""
        if not self._has(self._consumers, "Owner"):
            return
        q = self._sql.quote
        text = (
            f"UPDATE {q(self._consumers)} SET {q('Owner')} = NULL,"  # noqa: S608 (quoted)
            f" {q('LeaseUntil')} = NULL WHERE {q('Consumer')} = @consumer"
        )
        bound = self._sql.bind(text, {"consumer": (consumer, param_types.STRING)})
        self._transaction.execute_update(*bound)

    def delete_division(self, shared: str, tables: Sequence[str] | None = None) -> None:
        """A consumer is divided no more, or (``tables``) these tables of it are not. Who held a
        part, or is about to take one, is refused from now on."""
        if not self._has(self._divisions, "Division"):
            return
        whole = KeySet(ranges=[KeyRange(start_closed=[shared], end_closed=[shared])])
        named = KeySet(keys=[[shared, table] for table in tables or ()])
        self._transaction.delete(self._divisions, whole if tables is None else named)
        if tables is None:
            self._transaction.delete(members_table(self._table), whole)


def merge_states(consumers: Iterable[StoredConsumer]) -> MovedConsumer:
    """What several consumers are as one, but for their positions: every table that one of them
    polls is polled, and the strictest command stands."""
    each = list(consumers)
    commands = {one.command for one in each}
    selections = [one.read_selection() for one in each]
    return MovedConsumer(
        unite_selections(selection for selection in selections if selection),
        next((c for c in STRICTEST if c in commands), None),
    )


def merge_positions(
    consumers: Sequence[StoredConsumer], unplanned: int
) -> dict[str, StoredPosition]:
    """Where the parts of a consumer are together: the least position in each table, and how far any
    part may have handed rows over.

    What was handed over without a plan reaches ``unplanned`` microseconds above a position at most.
    Who has no position in a table has delivered nothing of it.
    """
    tables = {table for each in consumers for table in each.positions}
    return {
        table: merge_position([each.positions.get(table) for each in consumers], unplanned)
        for table in tables
    }


def merge_position(positions: Iterable[StoredPosition | None], unplanned: int) -> StoredPosition:
    """As ``merge_positions``, in one table; None is a part without a position."""
    each = [position or StoredPosition(BEGINNING, BEGINNING) for position in positions]
    return StoredPosition(
        min(one.position for one in each),
        max(p.position + unplanned if p.reached is None else p.reached for p in each),
    )
