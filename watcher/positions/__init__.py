"""Where each consumer stands: the end of the last window that it delivered. The only state kept."""

from __future__ import annotations

from watcher.positions.file import FilePositions
from watcher.positions.memory import MemoryPositions
from watcher.positions.spanner import (
    SpannerPositions,
    consumers_table,
    create_table,
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
    "consumers_table",
    "create_table",
    "own_tables",
]
