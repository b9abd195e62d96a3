"""The slices of the next batch, planned while Spark writes down where it ends."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from watcher.model.window import Window
from watcher.runners.spark.few_rows import read_few
from watcher.runners.spark.offsets import Offset
from watcher.runners.spark.resolved_scan import ResolvedScan
from watcher.runners.spark.scan import Scan
from watcher.runners.spark.slices import PlannedSlice, attach_captures, read_slice


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
        # A task that meets the same error is tried again by Spark.
        with suppress(Exception):
            self._slices = read_few(self._slices, partial(read_slice, self._scan))


def name_batch(start: Offset, end: Offset) -> str:
    """The same for equal offsets: Spark hands them back as it has parsed them."""
    return json.dumps((start, end), sort_keys=True)
