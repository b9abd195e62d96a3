"""The change-stream capture: every version of a row, deletes, old values, transactions.

``records`` are what Spanner sends, ``lineage`` says which partitions of a window are to be read
and when, ``windows`` reads them, ``rows`` are their changes as columns.
"""

from __future__ import annotations

from watcher.captures.change_stream.captured import list_streamed_columns, require_complete
from watcher.captures.change_stream.placements import use_placements
from watcher.captures.change_stream.rows import CHANGES, iterate_stream_changes
from watcher.captures.change_stream.stream_slices import StreamSlice
from watcher.captures.change_stream.watched import (
    ChangeFilter,
    WatchedStream,
    choose_recorded_columns,
    find_stream,
    find_streamed_tables,
)
from watcher.captures.change_stream.whole_rows import WholeRows
from watcher.captures.change_stream.windows import ChangeStreamCapture

__all__ = [
    "CHANGES",
    "ChangeFilter",
    "ChangeStreamCapture",
    "StreamSlice",
    "WatchedStream",
    "WholeRows",
    "choose_recorded_columns",
    "find_stream",
    "find_streamed_tables",
    "iterate_stream_changes",
    "list_streamed_columns",
    "require_complete",
    "use_placements",
]
