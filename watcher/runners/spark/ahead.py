"""The slices of the next batch, planned while Spark writes down where it ends. Few rows are read
there and then, so that their task asks Spanner nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from watcher.model.window import ShardSlice, Window
from watcher.runners.spark.offsets import Offset
from watcher.runners.spark.resolved_scan import ResolvedScan
from watcher.runners.spark.scan import Scan
from watcher.runners.spark.slices import PlannedSlice, attach_captures, read_slice

FEW_ROWS = 1_000
FEW_BYTES = 1 << 20
"""As Arrow columns: they travel with their task, by way of the driver."""


class SlicesAhead(threading.Thread):
    """Plans the batch between two offsets; ``current`` is the schema at its end."""

    def __init__(
        self,
        scan: Scan,
        start: Offset,
        end: Offset,
        current: ResolvedScan,
        windows: Mapping[str, Window],
    ) -> None:
        super().__init__(name="slices ahead", daemon=True)
        self._scan = scan
        self._batch = name_batch(start, end)
        self._current = current
        self._windows = windows
        self._slices: list[PlannedSlice] = []
        self._error: Exception | None = None
        self.start()

    def is_of(self, start: Offset, end: Offset) -> bool:
        """Whether it plans the batch between these offsets."""
        return self._batch == name_batch(start, end)

    def wait(self) -> list[PlannedSlice]:
        """The slices, once they are planned. Raises what planning raised."""
        self.join()
        if self._error is not None:
            raise self._error
        return self._slices

    def run(self) -> None:
        """As ``Thread.run``."""
        try:
            parts = self._current.windows.plan_slices(self._windows) if self._windows else ()
            self._slices = attach_captures(self._current.scan, parts)
        except Exception as error:  # noqa: BLE001 (raised by ``wait``)
            self._error = error
            return
        if has_few_rows(self._slices):
            self._read()

    def _read(self) -> None:
        """Reads the slices, unless their rows are large."""
        read, size = [], 0
        try:
            for each in self._slices:
                rows: list[pa.RecordBatch] = []
                for batch in read_slice(self._scan, each):
                    rows.append(batch)
                    size += batch.nbytes
                    if size > FEW_BYTES:
                        return
                read.append(replace(each, rows=tuple(rows)))
        except Exception:  # noqa: BLE001 (the tasks meet it, and Spark tries those again)
            return
        self._slices = read


def has_few_rows(slices: Sequence[PlannedSlice]) -> bool:
    """Whether all were counted, and are few together."""
    counts = [each.part.rows if isinstance(each.part, ShardSlice) else None for each in slices]
    return sum(FEW_ROWS + 1 if count is None else count for count in counts) <= FEW_ROWS


def name_batch(start: Offset, end: Offset) -> str:
    """The same for equal offsets: Spark hands them back as it has parsed them."""
    return json.dumps((start, end), sort_keys=True)
