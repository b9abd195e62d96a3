"""Merges the parts of a shared consumer into one consumer again: rule 13 of docs/protocol.md."""

from __future__ import annotations

from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.places import (
    check_ended,
    merge_states,
    merge_stored,
    read_stored,
    remove_consumer,
    write_state,
)
from watcher.consumers.positions import Registration, SpannerPositions
from watcher.consumers.positions.fences import delete_division
from watcher.consumers.positions.tables import read_names
from watcher.errors import ConsumerNotFoundError
from watcher.tables.parts import find_parts


def merge_parts(positions: SpannerPositions, shared: str, dry_run: bool = False) -> dict[str, int]:
    """The parts become one consumer of the shared name, whose position in each table is the least
    of theirs, in one transaction; the positions. The next start may divide it in any way, or not.

    Raises LeaseHeldError while an instance holds a part, ConsumerNotFoundError without any part.
    """
    sql, table = positions.sql, positions.table

    def merge(transaction: Transaction) -> dict[str, int]:
        parts = find_parts(shared, read_names(transaction, table, sql))
        if not parts:
            raise ConsumerNotFoundError(f"consumer '{shared}' is not divided into parts")
        for name in (shared, *parts):
            check_ended(transaction, table, name, sql)
        stored = [read_stored(transaction, table, part, sql) for part in parts]
        merged = merge_stored(stored, positions.unplanned_micros)
        starts = {name: place.position for name, place in merged.places.items()}
        if dry_run:
            return starts
        for part, each in zip(parts, stored, strict=True):
            remove_consumer(transaction, table, part, tuple(each.places), sql)
        own = read_stored(transaction, table, shared, sql)
        write_state(transaction, table, [shared], merge_states([own, merged]))
        positions.register_in(transaction, Registration(shared, starts, backwards=True))
        reached = {name: place.reached for name, place in merged.places.items()}
        positions.plan_ends_in(transaction, shared, reached)
        delete_division(transaction, table, shared)
        return starts

    result: dict[str, int] = positions.database.run_in_transaction(merge)
    return result
