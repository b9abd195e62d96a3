"""Merges the parts of a shared consumer into one consumer again: rule 13 of docs/protocol.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from google.cloud.spanner_v1 import KeyRange, KeySet
from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.places import Place, check_ended, read_places, remove_consumer
from watcher.consumers.positions import Registration, SpannerPositions
from watcher.consumers.positions.tables import consumers_table, divisions_table, members_table
from watcher.errors import ConsumerNotFoundError

PART_NAME = re.compile(r"(?P<shared>.+)/\d+-of-\d+\Z")


def find_parts(shared: str, consumers: Iterable[str]) -> tuple[str, ...]:
    """Those of some consumers that are parts of a shared one."""
    matches = ((name, PART_NAME.match(name)) for name in set(consumers))
    return tuple(sorted(name for name, match in matches if match and match["shared"] == shared))


def merge_parts(positions: SpannerPositions, shared: str, dry_run: bool = False) -> dict[str, int]:
    """The parts become one consumer of the shared name, whose position in each table is the least
    of theirs, in one transaction; the positions. The next start may divide it in any way, or not.

    Raises LeaseHeldError while an instance holds a part, ConsumerNotFoundError without any part.
    """
    sql, table = positions.sql, positions.table

    def merge(transaction: Transaction) -> dict[str, int]:
        parts = find_parts(shared, list_consumers(transaction, positions))
        if not parts:
            raise ConsumerNotFoundError(f"consumer '{shared}' is not divided into parts")
        for part in parts:
            check_ended(transaction, table, part, sql)
        merged = merge_places(
            [read_places(transaction, table, part, sql) for part in parts],
            positions.unplanned_micros,
        )
        starts = {name: place.position for name, place in merged.items()}
        if dry_run:
            return starts
        for part in parts:
            tables = tuple(read_places(transaction, table, part, sql))
            remove_consumer(transaction, table, part, tables, sql)
        positions.register_in(transaction, Registration(shared, starts, backwards=True))
        positions.plan_ends_in(
            transaction, shared, {name: place.reached for name, place in merged.items()}
        )
        of_shared = KeySet(ranges=[KeyRange(start_closed=[shared], end_closed=[shared])])
        transaction.delete(divisions_table(table), of_shared)
        transaction.delete(members_table(table), of_shared)
        return starts

    result: dict[str, int] = positions.database.run_in_transaction(merge)
    return result


def merge_places(parts: Sequence[Mapping[str, Place]], unplanned: int) -> dict[str, Place]:
    """The least position in each table, and how far any part may have handed rows over; what was
    handed over without a plan reaches ``unplanned`` microseconds above a position at most."""
    merged: dict[str, Place] = {}
    for places in parts:
        for table, place in places.items():
            reached = place.position + unplanned if place.reached is None else place.reached
            known = merged.get(table, Place(place.position, reached))
            merged[table] = Place(
                min(known.position, place.position), max(known.reached or 0, reached)
            )
    return merged


def list_consumers(transaction: Transaction, positions: SpannerPositions) -> set[str]:
    """The names of all consumers that have a state or a position."""
    sql = positions.sql
    names: set[str] = set()
    for table in (positions.table, consumers_table(positions.table)):
        text = f"SELECT DISTINCT {sql.quote('Consumer')} FROM {sql.quote(table)}"  # noqa: S608
        names |= {row[0] for row in transaction.execute_sql(text)}
    return names
