"""Delivers changes of a change stream as they come, over queries that stay open."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from watcher.captures import Source, StreamRows
from watcher.captures.change_stream.open_queries import OpenQueries
from watcher.captures.streamed_tables import StreamedTables, without_early
from watcher.failpoints import failpoint
from watcher.positions import Move, Position, Positions
from watcher.runners.sinks import Sink
from watcher.runners.watching import Delivered, Watching
from watcher.stream import timestamp_text
from watcher.window import Window

LOG = logging.getLogger("watcher")
SAVE_SECONDS = 1.0


class Pushing(Watching):
    """As ``Watching``, without windows: a change is delivered when it comes, those of each key in
    commit order. The position that is saved is the watermark, every second.

    At least once: after a crash or a stop everything above the saved watermark comes again; after a
    drain nothing does.
    """

    def __init__(
        self,
        source: StreamedTables,
        positions: Positions,
        consumer: str,
        sink: Sink,
        seconds: float,
        owner: str | None = None,
        guard: Callable[[], None] | None = None,
    ) -> None:
        """``seconds``: how long a poll waits for a change."""
        super().__init__(source, positions, consumer, sink, 0, owner, guard=guard)
        self._seconds = seconds
        self._queries: OpenQueries | None = None
        self._kept: dict[str, int] = {}
        self._saved_at = 0.0

    def keep_in(self, positions: Positions) -> None:
        """As ``Watching.keep_in``; what was open was open over the old connection."""
        self.close()
        super().keep_in(positions)

    def replace_source(self, source: Source, start: int, filled: Mapping[str, int]) -> None:
        """As ``Watching.replace_source``."""
        self.close()
        super().replace_source(source, start, filled)

    @property
    def _tables(self) -> StreamedTables:
        assert isinstance(self._source, StreamedTables)
        return self._source

    def poll(self, until: int | None = None) -> Delivered:
        """Delivers what comes; with ``until`` there is more until the watermark is there."""
        try:
            return self._poll(until)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the queries; the next poll opens them from the saved positions on."""
        if self._queries is not None:
            self._queries.close()
            self._queries = None

    def finish(self) -> None:
        """Saves how far everything was delivered."""
        if self._queries is not None:
            self._advance(self._queries.watermark)

    def _poll(self, until: int | None) -> Delivered:
        queries = self._queries or self._opened()
        taken = queries.take(self._seconds)
        reached = min(self._kept.values())
        newest = max((record.commit_timestamp for _, record in taken), default=reached)
        rows = self._tables.gathered(taken, Window(reached, max(reached, newest)))
        counts = self._hand_over(rows) if rows is not None else {}
        mark = queries.watermark
        drained = until is not None and mark >= until
        if mark > reached and (drained or time.monotonic() - self._saved_at >= SAVE_SECONDS):
            self._advance(mark)
        return Delivered(mark, counts, more=bool(taken) or (until is not None and not drained))

    def _opened(self) -> OpenQueries:
        kept = self._positions.of(self._consumer)
        self._kept = {table: kept[table] for table in self._tables.tables if table in kept}
        self._queries = self._tables.open(min(self._kept.values()))
        return self._queries

    def _hand_over(self, rows: StreamRows) -> dict[str, int]:
        """What is new for each table goes to the sink."""
        low = min(self._kept.values())
        late = {table: at for table, at in self._kept.items() if at > low}
        rows = StreamRows(rows.window, without_early(rows.batch, late), rows.shapes)
        if self._guard is not None:
            self._guard()
        self._sink.write(rows)
        self._sink.flush()
        return dict(rows.counts)

    def _advance(self, mark: int) -> None:
        """Saves the watermark."""
        self._sink.resolved(mark)
        self._sink.flush()
        failpoint("after-delivery-before-position")
        moves = [
            Move(Position(self._consumer, table, mark), at)
            for table, at in self._kept.items()
            if at < mark
        ]
        self._positions.save_all(moves, self._owner)
        self._kept = {table: max(at, mark) for table, at in self._kept.items()}
        self._saved_at = time.monotonic()
        LOG.info("watermark %s", timestamp_text(mark))
