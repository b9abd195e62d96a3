"""Where each consumer stands: the end of the last window that it delivered. The only state kept."""

from __future__ import annotations

from watcher.positions.file import FilePositions
from watcher.positions.memory import MemoryPositions
from watcher.positions.spanner import SpannerPositions, check_owner, create_table
from watcher.positions.tables import (
    backfills_table,
    cleared_table,
    consumers_table,
    create_own_tables,
    own_tables,
)
from watcher.positions.values import TABLE, Move, Position, Positions

__all__ = [
    "TABLE",
    "FilePositions",
    "MemoryPositions",
    "Move",
    "Position",
    "Positions",
    "SpannerPositions",
    "backfills_table",
    "check_owner",
    "cleared_table",
    "consumers_table",
    "create_own_tables",
    "create_table",
    "own_tables",
]
