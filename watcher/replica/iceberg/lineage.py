"""The snapshots of an Iceberg table: what others have made of a copy between two of ours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from watcher.replica.copies import OutsideCommit

REWRITE = "replace"
"""The operation of a snapshot that has the same rows in other files."""
LOAD = "load"


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A snapshot. ``end`` and ``kind`` are those of the consumer's own; 0 and None for others."""

    id: int
    parent: int | None
    operation: str
    end: int
    kind: str | None


def list_outside(
    snapshots: Iterable[Ancestor], after: int | None, upto: int
) -> list[OutsideCommit]:
    """What others have changed between the snapshots of two window ends, the latest first. A load
    replaces the table, and has no ancestors."""
    by_id = {each.id: each for each in snapshots}
    place = next((each for each in reversed(by_id.values()) if each.end == upto), None)
    outside = []
    while place is not None and not (place.end and (place.kind == LOAD or place.end == after)):
        if not place.end and place.operation != REWRITE:
            outside.append(
                OutsideCommit(upto, f"{place.operation} by somebody else, snapshot {place.id}")
            )
        place = by_id.get(place.parent) if place.parent is not None else None
    return outside
