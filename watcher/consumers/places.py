"""What is stored of a consumer beside its lease, read, written and removed in a transaction that
moves it to other names: dividing a consumer into parts, and merging them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, KeySet, param_types
from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.positions.fences import end_lease
from watcher.consumers.positions.own_names import backfills_table, consumers_table
from watcher.consumers.positions.reader import RowReader
from watcher.consumers.positions.selections import (
    SELECTION_COLUMN,
    parse_selection,
    unite_selections,
)
from watcher.consumers.positions.tables import own_tables, select_of_consumer
from watcher.consumers.states import Command, State
from watcher.errors import LeaseHeldError
from watcher.spanner.dialects import SqlDialect
from watcher.spanner.timestamps import to_micros
from watcher.tables.selection import Selection
from watcher.window import BEGINNING

STRICTEST = (Command.STOP, Command.PAUSE, Command.DRAIN)


@dataclass(frozen=True, slots=True)
class Place:
    """A position, and how far rows may have been handed over above it: rule 8 of docs/protocol.md;
    None: as far as goes without a plan."""

    position: int
    reached: int | None


@dataclass(frozen=True, slots=True)
class Stored:
    """A consumer as it goes to another name: its places by table, the tables that it polls, and
    what operators ask of it. ``exists``: it has a state."""

    places: Mapping[str, Place] = field(default_factory=dict)
    selection: Selection | None = None
    command: Command | None = None
    exists: bool = False


def read_places(
    reader: RowReader, positions_table: str, consumer: str, sql: SqlDialect
) -> dict[str, Place]:
    """The places of a consumer by table."""
    columns = ("WatchedTable", "Position", "PlannedEnd")
    rows = reader.execute_sql(*select_of_consumer(sql, positions_table, columns, consumer))
    return {
        row[0]: Place(to_micros(row[1]), to_micros(row[2]) if row[2] is not None else None)
        for row in rows
    }


def read_stored(reader: RowReader, positions_table: str, consumer: str, sql: SqlDialect) -> Stored:
    """What is stored of a consumer."""
    places = read_places(reader, positions_table, consumer, sql)
    columns = (SELECTION_COLUMN, "Command")
    query = select_of_consumer(sql, consumers_table(positions_table), columns, consumer)
    for text, command in reader.execute_sql(*query):
        ours = own_tables(positions_table)
        selection = parse_selection(text, consumer, ours) if text is not None else None
        return Stored(places, selection, Command(command) if command else None, exists=True)
    return Stored(places)


def merge_stored(parts: Sequence[Stored], unplanned: int) -> Stored:
    """What the parts of a consumer are together: their states, the least position in each table,
    and how far any part may have handed rows over.

    What was handed over without a plan reaches ``unplanned`` microseconds above a position at most.
    Who has no position in a table has delivered nothing of it.
    """
    tables = {table for part in parts for table in part.places}
    return replace(
        merge_states(parts),
        places={
            table: merge_places([part.places.get(table) for part in parts], unplanned)
            for table in tables
        },
    )


def merge_states(consumers: Sequence[Stored]) -> Stored:
    """Every table that one of them polls is polled, and the strictest command stands."""
    commands = {each.command for each in consumers}
    return Stored(
        selection=unite_selections(each.selection for each in consumers if each.selection),
        command=next((c for c in STRICTEST if c in commands), None),
    )


def merge_places(places: Iterable[Place | None], unplanned: int) -> Place:
    """As ``merge_stored``, in one table; None is a part without a position."""
    each = [place or Place(BEGINNING, BEGINNING) for place in places]
    return Place(
        min(place.position for place in each),
        max(p.position + unplanned if p.reached is None else p.reached for p in each),
    )


def write_state(
    transaction: Transaction, positions_table: str, consumers: Iterable[str], stored: Stored
) -> None:
    """Gives consumers that nobody runs the selection and the command of another one. Nobody owns
    their leases from now on."""
    state = ("Consumer", "State", SELECTION_COLUMN, "Command", "UpdatedAt")
    columns = (*state, "Owner", "LeaseUntil")
    selection = stored.selection.to_text() if stored.selection is not None else None
    command = str(stored.command) if stored.command is not None else None
    values = (str(State.NOT_STARTED), selection, command, COMMIT_TIMESTAMP, None, None)
    rows = [(name, *values) for name in consumers]
    if rows:
        transaction.insert_or_update(consumers_table(positions_table), columns, rows)


def check_ended(reader: RowReader, positions_table: str, consumer: str, sql: SqlDialect) -> None:
    """Raises LeaseHeldError while an instance runs as a consumer, or a backfill of it is not done:
    its positions cannot be moved to other names."""
    q, bound = sql.quote, {"consumer": (consumer, param_types.STRING)}
    of_consumer = f"WHERE {q('Consumer')} = @consumer"
    alive = (
        f"SELECT COUNT(*) FROM {q(consumers_table(positions_table))} {of_consumer}"  # noqa: S608
        f" AND {q('Owner')} IS NOT NULL AND {q('LeaseUntil')} > CURRENT_TIMESTAMP"
    )
    filling = f"SELECT COUNT(*) FROM {q(backfills_table(positions_table))} {of_consumer}"  # noqa: S608
    if next(iter(reader.execute_sql(*sql.bind(alive, bound))))[0]:
        raise LeaseHeldError(
            f"an instance runs as consumer '{consumer}'; stop it first: spanner-watcher ctl stop"
            f" {consumer}"
        )
    if next(iter(reader.execute_sql(*sql.bind(filling, bound))))[0]:
        raise LeaseHeldError(
            f"a backfill of consumer '{consumer}' is not done; start it as before and let it end"
        )


def remove_consumer(
    transaction: Transaction,
    positions_table: str,
    consumer: str,
    tables: Sequence[str],
    sql: SqlDialect,
) -> None:
    """Removes positions of a consumer, and its state when it has no other. Nobody owns its lease
    any more: who held it, and was frozen meanwhile, is refused at its next renewal."""
    left = read_places(transaction, positions_table, consumer, sql).keys() - set(tables)
    if tables:
        transaction.delete(positions_table, KeySet(keys=[[consumer, table] for table in tables]))
    if not left:
        transaction.delete(consumers_table(positions_table), KeySet(keys=[[consumer]]))
    else:
        end_lease(transaction, positions_table, consumer, sql)
