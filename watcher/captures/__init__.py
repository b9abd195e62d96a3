"""How a window's rows are found: ``plan(window)`` gives slices, ``read(slice)`` batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from watcher.window import Slice, Window

COMMIT_TIMESTAMP_COLUMN = "_commit_timestamp"
SHARD_ID_COLUMN = "_shard_id"


class Capture(Protocol):
    """Turns windows into rows. Picklable: executors call ``read`` in other processes."""

    @property
    def schema(self) -> pa.Schema:
        """Columns of every batch: the table's, then ``_commit_timestamp``, ``_shard_id``."""
        ...

    def plan(self, window: Window) -> Sequence[Slice]:
        """The slices of a window; none for an empty window. Reads nothing."""
        ...

    def read(self, part: Slice) -> Iterator[pa.RecordBatch]:
        """The rows of a slice, as they were at the window's end."""
        ...
