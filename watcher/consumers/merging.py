"""Merges the parts of a shared consumer into one consumer again: rule 13 of docs/protocol.md."""

from __future__ import annotations

from typing import NoReturn

from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.places import (
    Stored,
    check_ended,
    merge_states,
    merge_stored,
    read_stored,
    remove_consumer,
    write_state,
)
from watcher.consumers.positions import Registration, SpannerPositions
from watcher.consumers.positions.fences import delete_division
from watcher.consumers.positions.reader import RowReader
from watcher.consumers.positions.tables import list_names, read_names
from watcher.errors import ConsumerNotFoundError
from watcher.tables.parts import find_parts


def merge_parts(positions: SpannerPositions, shared: str, dry_run: bool = False) -> dict[str, int]:
    """The parts become one consumer of the shared name, whose position in each table is the least
    of theirs, in one transaction; the positions. The next start may divide it in any way, or not.

    With ``dry_run`` nothing is written: what the positions would be. Makes no table: parts are
    there only where all own tables are. Raises LeaseHeldError while an instance holds a part,
    ConsumerNotFoundError without any part.
    """
    sql, table = positions.sql, positions.table
    if not find_parts(shared, list_names(positions.database, table)):
        raise_not_divided(shared)

    def find(reader: RowReader) -> tuple[dict[str, Stored], Stored]:
        parts = find_parts(shared, read_names(reader, table, sql))
        if not parts:
            raise_not_divided(shared)
        for name in (shared, *parts):
            check_ended(reader, table, name, sql)
        stored = {part: read_stored(reader, table, part, sql) for part in parts}
        return stored, merge_stored(list(stored.values()), positions.unplanned_micros)

    def merge(transaction: Transaction) -> dict[str, int]:
        stored, merged = find(transaction)
        starts = list_starts(merged)
        for part, each in stored.items():
            remove_consumer(transaction, table, part, tuple(each.places), sql)
        own = read_stored(transaction, table, shared, sql)
        write_state(transaction, table, [shared], merge_states([own, merged]))
        positions.register_in(transaction, Registration(shared, starts, backwards=True))
        reached = {name: place.reached for name, place in merged.places.items()}
        positions.plan_ends_in(transaction, shared, reached)
        delete_division(transaction, table, shared)
        return starts

    if dry_run:
        with positions.database.snapshot(multi_use=True) as snapshot:
            return list_starts(find(snapshot)[1])
    result: dict[str, int] = positions.database.run_in_transaction(merge)
    return result


def list_starts(merged: Stored) -> dict[str, int]:
    """The position in each table."""
    return {name: place.position for name, place in merged.places.items()}


def raise_not_divided(shared: str) -> NoReturn:
    """Raises ConsumerNotFoundError for a consumer that has no parts."""
    raise ConsumerNotFoundError(f"consumer '{shared}' is not divided into parts")
