"""Unregisters a consumer, or some of its tables: clearing does not wait for them any more."""

from __future__ import annotations

from collections.abc import Sequence

from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from spanner_schema.model.suggestions import suggest_name
from watcher.consumers.positions.fences import MOVED, check_name
from watcher.consumers.positions.rows import MovedRows, StoredConsumer, StoredRows
from watcher.consumers.positions.tables import read_own_columns
from watcher.model.errors import ConsumerNotFoundError, LeaseHeldError
from watcher.spanner.dialects import find_dialect


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
    sql = find_dialect(database)

    def find(rows: StoredRows) -> tuple[Sequence[StoredConsumer], dict[str, tuple[str, ...]]]:
        stored = rows.read_group(consumer)
        removed = choose_removed(stored, consumer, tables)
        for each in stored:
            check_not_alive(each, None if tables is None else removed[each.name])
        return stored, removed

    def remove(transaction: Transaction) -> dict[str, tuple[str, ...]]:
        rows = MovedRows(transaction, positions_table, sql, columns)
        stored, removed = find(rows)
        whole = tables is None or all(
            not each.alive and set(removed[each.name]) == each.positions.keys() for each in stored
        )
        for each in stored:
            rows.remove(each.name, removed[each.name], whole)
            if not whole and not each.alive:
                rows.end_lease(each.name)
        gone = None if whole else sorted({t for each in removed.values() for t in each})
        rows.delete_division(consumer, gone)
        return removed

    if dry_run:
        with database.snapshot(multi_use=True) as snapshot:
            return find(StoredRows(snapshot, positions_table, sql, columns))[1]
    result: dict[str, tuple[str, ...]] = database.run_in_transaction(remove)
    return result


def choose_removed(
    stored: Sequence[StoredConsumer], consumer: str, tables: Sequence[str] | None
) -> dict[str, tuple[str, ...]]:
    """The tables that a consumer, and each of its parts, leaves. Raises ConsumerNotFoundError for
    one in which none of them has a position."""
    if tables is None:
        return {each.name: tuple(each.positions) for each in stored}
    known = dict.fromkeys(table for each in stored for table in each.positions)
    named = resolve_names(tuple(known), consumer, tables)
    return {each.name: tuple(t for t in named if t in each.positions) for each in stored}


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


def check_not_alive(stored: StoredConsumer, tables: Sequence[str] | None) -> None:
    """Raises LeaseHeldError when a live consumer would lose a position that it needs, and
    ConsumerMovedError for a name that has to stay closed."""
    if stored.fence is not None and stored.fence.kind == MOVED:
        check_name(stored.name, stored.fence)
    if not stored.alive:
        return
    selection = stored.read_selection()
    needed = [name for name in tables or () if selection is None or selection.includes(name)]
    if tables is None or needed:
        of_tables = f" and watches {', '.join(needed)}" if needed else ""
        raise LeaseHeldError(
            f"consumer '{stored.name}' is alive{of_tables}; stop it first:"
            f" spanner-watcher ctl stop {stored.name}"
        )
