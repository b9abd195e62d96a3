"""Delivers the windows of one table to a sink, one after another: what a scheduled poller does."""

from __future__ import annotations

import logging

from watcher.captures.poll import PollCapture
from watcher.failpoints import failpoint
from watcher.positions import Position, Positions
from watcher.runners.sinks import Sink
from watcher.stream import timestamp_text
from watcher.window import Window

LOG = logging.getLogger("watcher")


class Watching:
    """A consumer of a table. ``poll`` delivers one window and then saves its end.

    At least once: after a crash between delivery and saving the window is delivered again, with the
    same rows if its end is the same, else with the rows of a longer window.
    """

    def __init__(
        self,
        capture: PollCapture,
        positions: Positions,
        consumer: str,
        sink: Sink,
        max_rows: int,
    ) -> None:
        self._capture = capture
        self._positions = positions
        self._consumer = consumer
        self._sink = sink
        self._max_rows = max_rows
        self._table = capture.table.name

    def register(self, start: int) -> int:
        """Registers the consumer at a position unless it has one; the position that holds now.

        Before anything is read, so that clearing never overtakes a consumer that is just starting.
        """
        kept = self._positions.load(self._consumer, self._table)
        if kept is not None:
            return kept.micros
        self._positions.save(Position(self._consumer, self._table, start), expected=None)
        return start

    def poll(self) -> bool:
        """Delivers what changed since the position; True when there may be more already."""
        kept = self._positions.load(self._consumer, self._table)
        start = kept.micros if kept else 0
        whole, found = self._capture.look(start)
        window = self._capture.cut(whole, self._max_rows) if found else whole
        rows = self.deliver(window) if found else 0
        self._sink.flush()
        failpoint("after-delivery-before-position")
        self._positions.save(
            Position(self._consumer, self._table, window.end), kept.micros if kept else None
        )
        LOG.info("window to %s: %d rows", timestamp_text(window.end), rows)
        return window != whole

    def deliver(self, window: Window) -> int:
        """Hands the rows of a window to the sink; how many there were."""
        rows = 0
        for part in self._capture.plan(window):
            for batch in self._capture.read(part):
                self._sink.write(batch, self._capture.table, window)
                rows += batch.num_rows
        return rows
