"""Delivers the windows of a source to a sink, one after another: what a scheduled poller does."""

from __future__ import annotations

import logging
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from itertools import groupby

import pyarrow as pa

from watcher.captures import COMMIT_TIMESTAMP_COLUMN, Changed, Look, Source, StreamRows
from watcher.consumers.positions import Move, Position, Positions
from watcher.errors import NotWatchableError, TableNotFoundError, VersionExpiredError
from watcher.failpoints import failpoint
from watcher.runners.backfilling import Instance
from watcher.runners.sinks import Sink
from watcher.spanner.timestamps import format_timestamp
from watcher.window import Window

LOG = logging.getLogger("watcher")
ROWS_FIRST = 10_000
ROWS_GROWTH = 4
WINDOW_SECONDS = 30.0
"""A window should be delivered in so many seconds; its position is saved at its end."""


Follow = Callable[[int], None]
"""Called with a timestamp at which a window may end: from then on ``Watching.source`` has the
tables of the schema that is valid there, and those that are new are registered."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """What one poll did. ``more`` says that there may be more already."""

    end: int
    rows: Mapping[str, int]
    more: bool

    @property
    def total(self) -> int:
        """Rows over all tables."""
        return sum(self.rows.values())


class Pace:
    """How many rows a window may hold, so that a slow sink saves its position now and then: the
    first windows are smaller, and one that takes long makes the next one smaller."""

    def __init__(self, rows_max: int) -> None:
        self._rows_max = rows_max
        self.rows = min(rows_max, ROWS_FIRST)

    def note(self, rows: int, seconds: float, whole: bool) -> None:
        """So many rows of a window were delivered in so many seconds; not ``whole``: it failed."""
        if seconds > WINDOW_SECONDS and rows:
            self.rows = min(self.rows, max(1, int(rows * WINDOW_SECONDS / seconds)))
        elif whole and seconds * ROWS_GROWTH <= WINDOW_SECONDS:
            self.rows = min(self._rows_max, self.rows * ROWS_GROWTH)


def ignore(timestamp: int) -> None:
    """Tables that do not change."""


def ignore_saved() -> None:
    """Nothing is to be done when positions are saved."""


class Watching:
    """A consumer of a source. ``poll`` delivers one window and then saves its end.

    At least once: after a crash between delivery and saving the window is delivered again, with the
    same rows if its end is the same, else with the rows of a longer window. While nothing changes,
    positions advance every ``idle_seconds``.
    """

    def __init__(
        self,
        source: Source,
        positions: Positions,
        instance: Instance,
        sink: Sink,
        max_rows: int,
        transactions: bool = False,
        follow: Follow = ignore,
        idle_seconds: float = 0.0,
        saved: Callable[[], None] = ignore_saved,
    ) -> None:
        """``saved`` is called when the positions are where ``source`` is the latest known one."""
        self._source = source
        self._positions = positions
        self._instance = instance
        self._sink = sink
        self._pace = Pace(max_rows)
        self._transactions = transactions
        self._follow = follow
        self._idle_seconds = idle_seconds
        self._saved = saved
        self._kept: dict[str, int] | None = None
        self._followed_at = -math.inf
        self._later: int | None = None
        """Where a window might have ended that was cut where the schema was an older one."""

    @property
    def source(self) -> Source:
        """What is watched now."""
        return self._source

    def keep_in(self, positions: Positions) -> None:
        """Goes on with other positions: the same ones, over a new connection."""
        self._positions = positions
        self._kept = None

    def replace_source(self, source: Source) -> None:
        """Goes on with other tables, which have been registered."""
        self._source = source
        self._kept = None
        self._followed_at = -math.inf

    def positions(self) -> dict[str, int]:
        """The positions of every table that is watched, read when they are not known."""
        if self._kept is None:
            self._kept = self._positions.of(self._instance.consumer)
        return {table: self._kept[table] for table in self._source.tables if table in self._kept}

    def poll(self, until: int | None = None) -> Delivered:
        """Delivers what changed since the positions, up to ``until`` where that is earlier."""
        try:
            return self._poll(until)
        except BaseException:
            self._kept = None
            self._sink.discard()
            raise

    def _poll(self, until: int | None) -> Delivered:
        self._return_to_later()
        starts = self.positions()
        if not starts:
            return Delivered(0, {}, more=False)
        looked_in, look = self._source, self._source.look(starts)
        idle = not look.changed and until is None
        if idle and not self._due():
            return Delivered(look.end, {}, more=False)
        end = look.end if until is None else max(min(look.end, until), *starts.values())
        cut = self._followed(self._cut(starts, look, end), end)
        if cut == end and self._source is not looked_in:
            # New shards and tables have not been looked at, nor counted.
            starts = self.positions()
            looked_in, look = self._source, self._look_at(end, starts, look)
            cut = self._followed(self._cut(starts, look, end), end)
        self._later = end if self._source is not looked_in else None
        starts, changed = self._changes(starts, look, cut)
        rows = self._deliver({table: starts[table] for table in starts if table in changed}, cut)
        self._sink.resolved(cut)
        self._sink.flush()
        failpoint("after-delivery-before-position")
        self._save(starts, cut)
        if self._later is None:
            self._saved()
        LOG.info("window to %s: %d rows", format_timestamp(cut), sum(rows.values()))
        return Delivered(cut, rows, more=cut < end)

    def _return_to_later(self) -> None:
        """What changed is looked for with the tables and shards of the latest schema that is known,
        also after a window that was cut where an older one is valid."""
        if self._later is None:
            return
        try:
            self._follow(self._later)
        except (NotWatchableError, TableNotFoundError, VersionExpiredError) as error:
            LOG.info("changes are looked for in an older schema: %s", error)
        self._later = None

    def _due(self) -> bool:
        """Whether it is time to look at the schema, and to advance the positions of idle tables."""
        return time.monotonic() - self._followed_at >= self._idle_seconds

    def _followed(self, cut: int, end: int) -> int:
        """The end of the window, with the schema that is valid there. An earlier ``cut`` at which
        one of the tables could not be read is given up for the end."""
        if not self._source.read_by_schema and not self._due():
            return cut
        try:
            self._follow(cut)
        except VersionExpiredError:
            return cut  # the window will be read as of now
        except (NotWatchableError, TableNotFoundError):
            if cut == end:
                raise
            self._follow(end)
            cut = end
        self._followed_at = time.monotonic()
        return cut

    def _changes(
        self, starts: Mapping[str, int], look: Look, cut: int
    ) -> tuple[dict[str, int], frozenset[str]]:
        """Where the tables of the window begin, and which of them changed in it: what was deleted
        since is still there at a cut."""
        current = self.positions()
        if cut < look.end or current != starts:
            return current, self._look_at(cut, current, look, starts.keys()).changed
        return current, look.changed

    def _look_at(
        self, end: int, starts: Mapping[str, int], look: Look, looked_at: Set[str] = frozenset()
    ) -> Look:
        """Which tables had changed at an end. Past version garbage collection those that have
        changed now, because they are read as of now, and those that were not ``looked_at``."""
        try:
            return self._source.look(starts, end)
        except VersionExpiredError:
            return Look(end, look.changed | (starts.keys() - looked_at))

    def _cut(self, starts: Mapping[str, int], look: Look, end: int) -> int:
        """Where the window ends: with about ``max_rows`` rows at most."""
        whole = {
            table: Window(start, max(start, end))
            for table, start in starts.items()
            if table in look.changed
        }
        return self._source.cut(whole, self._pace.rows) if whole else end

    def _deliver(self, starts: Mapping[str, int], end: int) -> dict[str, int]:
        windows = {table: Window(start, end) for table, start in starts.items() if start < end}
        rows: dict[str, int] = defaultdict(int)
        batches = self._source.read(windows)
        began, whole = time.monotonic(), False
        try:
            for each in by_transaction(batches) if self._transactions else batches:
                self._instance.check()
                self._sink.write(each)
                for table, count in each.counts.items():
                    rows[table] += count
            whole = True
        finally:
            self._pace.note(sum(rows.values()), time.monotonic() - began, whole)
        return dict(rows)

    def _save(self, starts: Mapping[str, int], end: int) -> None:
        consumer, owner = self._instance.consumer, self._instance.owner
        behind = {table: start for table, start in starts.items() if start < end}
        moves = [Move(Position(consumer, table, end), start) for table, start in behind.items()]
        self._positions.save_all(moves, owner)
        if self._kept is not None:
            self._kept |= dict.fromkeys(behind, end)


def by_transaction(batches: Iterator[Changed]) -> Iterator[Changed]:
    """What changed in a window, transaction by transaction, over all tables and partitions.

    Holds the window, which ``max_rows`` bounds. Spanner: disjoint transactions may share a commit
    timestamp; polling cannot tell them apart, a change stream can.
    """
    parts: list[tuple[int, str, int, Changed]] = []
    for number, rows in enumerate(batches):
        parts += ((*of, number, part) for of, part in transactions_of(rows))
    for *_, rows in sorted(parts, key=lambda part: part[:3]):
        yield rows


def transactions_of(rows: Changed) -> Iterator[tuple[tuple[int, str], Changed]]:
    """The transactions of a batch: commit timestamp and, from a change stream, id."""
    streamed = isinstance(rows, StreamRows)
    stamp = "commit_timestamp" if streamed else COMMIT_TIMESTAMP_COLUMN
    names = [stamp, "transaction_id", "record_sequence"] if streamed else [stamp]
    ordered = rows.batch.sort_by([(name, "ascending") for name in names])
    stamps = ordered.column(stamp).cast(pa.int64()).to_pylist()
    ids = ordered.column("transaction_id").to_pylist() if streamed else [""] * len(stamps)
    first = 0
    for of, run in groupby(zip(stamps, ids, strict=True)):
        count = len(list(run))
        yield of, replace(rows, batch=ordered.slice(first, count))
        first += count
