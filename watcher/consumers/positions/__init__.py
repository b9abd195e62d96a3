"""The position of each consumer: the end of the last window that it delivered. The only state."""

from __future__ import annotations

from watcher.consumers.positions.content import MemoryPositions
from watcher.consumers.positions.file import FilePositions
from watcher.consumers.positions.own_names import (
    backfills_table,
    cleared_table,
    consumers_table,
    errors_table,
)
from watcher.consumers.positions.spanner import SpannerPositions, check_owner
from watcher.consumers.positions.tables import create_own_tables, own_tables
from watcher.consumers.positions.values import (
    TABLE,
    BackfillMove,
    Move,
    Position,
    Positions,
    Registered,
    Registration,
)

__all__ = [
    "TABLE",
    "BackfillMove",
    "FilePositions",
    "MemoryPositions",
    "Move",
    "Position",
    "Positions",
    "Registered",
    "Registration",
    "SpannerPositions",
    "backfills_table",
    "check_owner",
    "cleared_table",
    "consumers_table",
    "create_own_tables",
    "errors_table",
    "own_tables",
]
