"""Unregisters a consumer, or some of its tables: clearing does not wait for them any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from google.cloud.spanner_v1 import KeyRange, KeySet, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from ddl.suggestions import suggest_name
from watcher.consumers.positions.fences import delete_division, end_lease
from watcher.consumers.positions.own_names import backfills_table, consumers_table, divisions_table
from watcher.consumers.positions.reader import RowReader
from watcher.consumers.positions.selections import SELECTION_COLUMN, parse_selection
from watcher.consumers.positions.tables import Columns, own_tables, read_names, read_own_columns
from watcher.errors import ConsumerNotFoundError, LeaseHeldError
from watcher.spanner.dialects import SqlDialect, find_dialect
from watcher.tables.parts import find_parts


@dataclass(frozen=True, slots=True)
class StoredConsumer:
    """What is stored of a consumer: is it alive, what it polls, where it has positions."""

    alive: bool
    selection: str | None
    tables: tuple[str, ...]


def unregister(
    database: Database,
    positions_table: str,
    consumer: str,
    tables: Sequence[str] | None = None,
    dry_run: bool = False,
) -> dict[str, tuple[str, ...]]:
    """Removes positions and backfills of these tables, or all that there is of the consumer, in one
    transaction; the tables whose positions went (or, with ``dry_run``, would go), by consumer: a
    shared one goes with all its parts, and its division. Empty where nothing is stored.

    A consumer without any position left goes whole: else clearing would wait for it to register.
    Raises LeaseHeldError while the consumer or a part of it is alive, unless it polls none of the
    tables any more; ConsumerNotFoundError for a table in which it has no position.
    """
    columns = read_own_columns(database, positions_table)
    if not columns:
        return {}  # nobody was ever registered here
    sql, consumers = find_dialect(database), consumers_table(positions_table)

    def find(reader: RowReader) -> tuple[dict[str, StoredConsumer], dict[str, tuple[str, ...]]]:
        known = read_names(reader, positions_table, sql, columns)
        stored = {
            name: read_consumer(reader, positions_table, name, columns, sql)
            for name in (*({consumer} & known), *find_parts(consumer, known))
        }
        removed = choose_removed(stored, consumer, tables)
        for name, each in stored.items():
            named = None if tables is None else removed[name]
            check_not_alive(each, positions_table, name, named)
        return stored, removed

    def remove(transaction: Transaction) -> dict[str, tuple[str, ...]]:
        stored, removed = find(transaction)
        whole = tables is None or all(
            not each.alive and set(removed[name]) == set(each.tables)
            for name, each in stored.items()
        )
        for name, each in stored.items():
            delete_rows(transaction, positions_table, name, removed[name], whole, columns)
            if not whole and not each.alive and (consumers, "Owner") in columns:
                end_lease(transaction, positions_table, name, sql)
        if (divisions_table(positions_table), "Division") in columns:
            gone = None if whole else sorted({t for each in removed.values() for t in each})
            delete_division(transaction, positions_table, consumer, gone)
        return removed

    if dry_run:
        with database.snapshot(multi_use=True) as snapshot:
            return find(snapshot)[1]
    result: dict[str, tuple[str, ...]] = database.run_in_transaction(remove)
    return result


def choose_removed(
    stored: Mapping[str, StoredConsumer], consumer: str, tables: Sequence[str] | None
) -> dict[str, tuple[str, ...]]:
    """The tables that a consumer, and each of its parts, leaves. Raises ConsumerNotFoundError for
    one in which none of them has a position."""
    if tables is None:
        return {name: each.tables for name, each in stored.items()}
    known = dict.fromkeys(table for each in stored.values() for table in each.tables)
    named = resolve_names(tuple(known), consumer, tables)
    return {
        name: tuple(table for table in named if table in each.tables)
        for name, each in stored.items()
    }


def resolve_names(known: Sequence[str], consumer: str, tables: Sequence[str]) -> tuple[str, ...]:
    """The tables that are named, in their own spelling. Raises ConsumerNotFoundError."""
    spelled = {name.casefold(): name for name in known}
    for name in tables:
        if name.casefold() not in spelled:
            advice = suggest_name(name, known, "it has positions in")
            raise ConsumerNotFoundError(
                f"consumer '{consumer}' has no position in table {name}; {advice}"
            )
    return tuple(dict.fromkeys(spelled[name.casefold()] for name in tables))


def check_not_alive(
    stored: StoredConsumer, positions_table: str, consumer: str, tables: Sequence[str] | None
) -> None:
    """Raises LeaseHeldError when a live consumer would lose a position that it needs."""
    if not stored.alive:
        return
    needed = list(tables or ())
    if stored.selection is not None:
        selection = parse_selection(stored.selection, consumer, own_tables(positions_table))
        needed = [name for name in needed if selection.includes(name)]
    if tables is None or needed:
        of_tables = f" and watches {', '.join(needed)}" if needed else ""
        raise LeaseHeldError(
            f"consumer '{consumer}' is alive{of_tables}; stop it first:"
            f" spanner-watcher ctl stop {consumer}"
        )


def read_consumer(
    reader: RowReader,
    positions_table: str,
    consumer: str,
    columns: Columns,
    sql: SqlDialect,
) -> StoredConsumer:
    """What is stored of a consumer. Tables and columns that an older release has not made are as
    if they were empty."""
    consumers = consumers_table(positions_table)
    values = {"consumer": (consumer, param_types.STRING)}
    q, of_consumer = sql.quote, f"WHERE {sql.quote('Consumer')} = @consumer"
    alive, selection, tables = False, None, ()
    if (consumers, "Owner") in columns:
        column = q(SELECTION_COLUMN) if (consumers, SELECTION_COLUMN) in columns else "NULL"
        text = (
            f"SELECT {q('Owner')} IS NOT NULL AND {q('LeaseUntil')} > CURRENT_TIMESTAMP, {column}"  # noqa: S608
            f" FROM {q(consumers)} {of_consumer}"
        )
        rows = reader.execute_sql(*sql.bind(text, values))
        alive, selection = next(((bool(row[0]), row[1]) for row in rows), (False, None))
    if (positions_table, "Position") in columns:
        text = f"SELECT {q('WatchedTable')} FROM {q(positions_table)} {of_consumer}"  # noqa: S608
        rows = reader.execute_sql(*sql.bind(text, values))
        tables = tuple(row[0] for row in rows)
    return StoredConsumer(alive, selection, tables)


def delete_rows(
    transaction: Transaction,
    positions_table: str,
    consumer: str,
    tables: Sequence[str],
    whole: bool,
    columns: Columns,
) -> None:
    """Removes the rows of some tables, or of the whole consumer."""
    keys = KeySet(keys=[[consumer, table] for table in tables])
    backfills, consumers = backfills_table(positions_table), consumers_table(positions_table)
    if tables:
        transaction.delete(positions_table, keys)
    if (backfills, "Progress") in columns:
        of_consumer = KeyRange(start_closed=[consumer], end_closed=[consumer])
        transaction.delete(backfills, KeySet(ranges=[of_consumer]) if whole else keys)
    if whole and (consumers, "Owner") in columns:
        transaction.delete(consumers, KeySet(keys=[[consumer]]))
