"""Delivers changes of a change stream as they come, over queries that stay open."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable

from watcher.captures import Source, StreamRows
from watcher.captures.change_stream.open_queries import OpenQueries
from watcher.captures.change_stream.repeats import DeliveredRecords, find_newest
from watcher.captures.streamed_tables import StreamedTables, drop_early
from watcher.consumers.positions import Move, Position, Positions
from watcher.model.log_events.delivery import WATERMARK_REACHED
from watcher.model.window import Window
from watcher.planning.limits import WindowLimit
from watcher.planning.windows import ReadSchema
from watcher.process.failpoints import failpoint
from watcher.process.tracing import OWN, span
from watcher.runners.delivery.instance import Instance
from watcher.runners.delivery.windows import (
    FIXED_TABLES,
    Delivered,
    TableFollower,
    WindowDelivery,
    describe_window,
)
from watcher.sinks.contract import Sink
from watcher.spanner.timestamps import format_timestamp

LOG = logging.getLogger("watcher")
SAVE_SECONDS = 1.0


class PushDelivery(WindowDelivery):
    """As ``WindowDelivery``, without windows: a change is delivered when it comes, the changes of a
    key in commit order. The position that is saved is the watermark: every second while changes
    come, and as ``WindowDelivery`` does while none do.

    At least once: after a crash or a stop everything above the saved watermark is delivered again;
    after a drain nothing is, nor when queries are opened again while the watcher runs.
    """

    def __init__(
        self,
        source: StreamedTables,
        positions: Positions,
        instance: Instance,
        sink: Sink,
        seconds: float,
        follower: TableFollower = FIXED_TABLES,
        idle_seconds: float = 0.0,
    ) -> None:
        """``seconds``: how long a poll waits for a change."""
        super().__init__(
            source,
            positions,
            instance,
            sink,
            WindowLimit(),
            follower=follower,
            idle_seconds=idle_seconds,
        )
        self._seconds = seconds
        self._queries: OpenQueries | None = None
        self._starts: dict[str, int] = {}
        self._saved_at = 0.0
        self._unsaved = False
        """Whether anything came since the watermark was saved."""
        self._delivered = DeliveredRecords()

    def replace_positions(self, positions: Positions) -> None:
        """As ``WindowDelivery.replace_positions``; the queries are opened again."""
        self.close()
        super().replace_positions(positions)

    def replace_source(self, source: Source) -> None:
        """As ``WindowDelivery.replace_source``."""
        self.close()
        super().replace_source(source)

    @property
    def _tables(self) -> StreamedTables:
        assert isinstance(self._source, StreamedTables)
        return self._source

    def poll(self, until: int | None = None) -> Delivered:
        """Delivers what arrives; with ``until`` there is more until the watermark reaches it."""
        try:
            return super().poll(until)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the queries; the next poll opens them from the saved positions on."""
        if self._queries is not None:
            self._queries.close()
            self._queries = None

    def listen(self, start: int, seconds: float, wake: Callable[[], object]) -> None:
        """Its queries are open already."""

    def finish(self) -> None:
        """Saves how far everything was delivered."""
        if self._queries is not None:
            self._advance(self._queries.watermark)

    def _deliver_window(self, until: int | None) -> Delivered:
        queries = self._queries or self._open()
        taken = [
            (partition, new)
            for partition, records in queries.take(self._seconds)
            if (new := self._delivered.drop_repeated(records)) is not None
        ]
        reached = min(self._starts.values())
        newest = max((find_newest(records) for _, records in taken), default=reached)
        window = Window(reached, max(reached, newest))
        batches = self._tables.convert_records(taken, window)
        counts = self._deliver_rows(batches, window, reached) if taken else {}
        # Also of tables that the schema has not been read for yet: once they are registered, the
        # queries are opened again, from the watermark on.
        for _, records in taken:
            self._delivered.note(records, self._tables.reads)
        mark = queries.watermark
        drained = until is not None and mark >= until
        self._unsaved |= bool(taken)
        if mark > reached and (drained or self._must_advance()):
            self._advance(mark)
            if self._is_due():
                self.read_schema(ReadSchema(mark, required=True))
                self._follower.note_saved()
        return Delivered(mark, counts, more=bool(taken) or (until is not None and not drained))

    def _must_advance(self) -> bool:
        """Whether it is time to save the watermark: soon where changes come, which would come
        again; while nothing does, as seldom as the position of an idle table."""
        waits = SAVE_SECONDS if self._unsaved else max(SAVE_SECONDS, self._idle_seconds)
        return time.monotonic() - self._saved_at >= waits

    def _open(self) -> OpenQueries:
        self._starts = self.read_positions()
        self._delivered.reopen()
        self._queries = self._tables.open(min(self._starts.values()))
        return self._queries

    def _deliver_rows(
        self, batches: Iterable[StreamRows], window: Window, reached: int
    ) -> dict[str, int]:
        """What is new for each table goes to the sink."""
        with span("window", {f"{OWN}consumer": self._instance.consumer}) as current:
            counts = self._write_rows(batches)
            delivered = Delivered(window.end, counts, more=False)
            describe_window(current, dict.fromkeys(self._starts, reached), delivered)
        return counts

    def _write_rows(self, batches: Iterable[StreamRows]) -> dict[str, int]:
        low = min(self._starts.values())
        late = {table: at for table, at in self._starts.items() if at > low}
        counts: Counter[str] = Counter()
        for each in batches:
            rows = StreamRows(each.window, drop_early(each.batch, late), each.shapes)
            self._instance.check()
            self._sink.write(rows)
            counts.update(rows.counts)
        if counts:
            self._sink.flush()
        return dict(counts)

    def _advance(self, mark: int) -> None:
        """Saves the watermark."""
        self._sink.resolved(mark)
        self._sink.flush()
        failpoint("after-delivery-before-position")
        moves = [
            Move(Position(self._instance.consumer, table, mark), at)
            for table, at in self._starts.items()
            if at < mark
        ]
        self._positions.save_all(moves, self._instance.owner)
        self._starts = {table: max(at, mark) for table, at in self._starts.items()}
        self._delivered.advance(mark)
        self._known = None
        self._unsaved = False
        self._saved_at = time.monotonic()
        WATERMARK_REACHED.log(LOG, at=format_timestamp(mark))
