"""The change-stream capture: every version of a row, deletes, old values, transactions.

``records`` are what Spanner sends, ``lineage`` says which partitions of a window are to be read
and when, ``capture`` reads them, ``rows`` are their changes as columns.
"""

from __future__ import annotations

from watcher.captures.change_stream.rows import CHANGES, changes_of_stream
from watcher.captures.change_stream.watched import (
    Wanted,
    WatchedStream,
    columns_told,
    find_stream,
)
from watcher.captures.change_stream.whole_rows import WholeRows
from watcher.captures.change_stream.windows import ChangeStreamCapture, PartitionSlice

__all__ = [
    "CHANGES",
    "ChangeStreamCapture",
    "PartitionSlice",
    "Wanted",
    "WatchedStream",
    "WholeRows",
    "changes_of_stream",
    "columns_told",
    "find_stream",
]
