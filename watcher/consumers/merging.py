"""Merges the parts of a shared consumer into one consumer again: rule 13 of docs/protocol.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.positions import Registration, SpannerPositions
from watcher.consumers.positions.rows import (
    MovedRows,
    StoredConsumer,
    StoredPosition,
    StoredRows,
    merge_positions,
    merge_states,
)
from watcher.consumers.positions.tables import list_names
from watcher.model.errors import ConsumerNotFoundError
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

    def find(rows: StoredRows) -> tuple[StoredConsumer, list[StoredConsumer]]:
        parts = find_parts(shared, rows.read_names())
        if not parts:
            raise_not_divided(shared)
        own, *stored = [rows.read(name) for name in (shared, *parts)]
        for each in (own, *stored):
            rows.check_ended(each)
        return own, stored

    def merge(transaction: Transaction) -> dict[str, int]:
        rows = MovedRows(transaction, table, sql)
        own, parts = find(rows)
        merged = merge_positions(parts, positions.unplanned_micros)
        starts = list_starts(merged)
        for part in parts:
            rows.move_away(part, tuple(part.positions))
        rows.write_state([shared], merge_states([own, *parts]))
        positions.register_in(transaction, Registration(shared, starts, backwards=True))
        reached = {name: each.reached for name, each in merged.items()}
        positions.plan_ends_in(transaction, shared, reached)
        rows.delete_division(shared)
        return starts

    if dry_run:
        with positions.database.snapshot(multi_use=True) as snapshot:
            _, parts = find(StoredRows(snapshot, table, sql))
            return list_starts(merge_positions(parts, positions.unplanned_micros))
    result: dict[str, int] = positions.database.run_in_transaction(merge)
    return result


def list_starts(merged: Mapping[str, StoredPosition]) -> dict[str, int]:
    """The position in each table."""
    return {name: each.position for name, each in merged.items()}


def raise_not_divided(shared: str) -> NoReturn:
    """Raises ConsumerNotFoundError for a consumer that has no parts."""
    raise ConsumerNotFoundError(f"consumer '{shared}' is not divided into parts")
