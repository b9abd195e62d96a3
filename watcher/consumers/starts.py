"""Where a consumer begins in a table in which it has no position: rule 6 of docs/protocol.md.
No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from watcher.model.window import BEGINNING
from watcher.tables.selection import Selection


@dataclass(frozen=True, slots=True)
class Standing:
    """What is stored of a consumer: its positions in the tables that it watches, and which tables
    it polls by its last registration (None: a change stream, or none was registered)."""

    positions: Mapping[str, int]
    selection: Selection | None


def choose_start(standing: Standing, table: str, start: int | None) -> int | None:
    """The position from which a table is read that has none; None is now.

    A polled table that the stored selection means could be watched at no position of the consumer:
    all that lies in its index is new, however old it is. Others were absent, or not selected, up to
    the least position of the consumer. ``start`` is what the settings say of a new consumer; a
    known one goes back to it, never forward.
    """
    if standing.selection is not None and standing.selection.includes(table):
        return BEGINNING
    if not standing.positions:
        return start
    least = min(standing.positions.values())
    return least if start is None else min(start, least)
