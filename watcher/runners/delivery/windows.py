"""Delivers the windows of a source to a sink, one after another."""

from __future__ import annotations

import logging
import math
import time
from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Protocol

from watcher.captures import Look, Source
from watcher.captures.poll_tables import PolledTables
from watcher.captures.streamed_tables import StreamedTables
from watcher.consumers.positions import Move, Position, Positions
from watcher.errors import NotWatchableError, TableNotFoundError, VersionExpiredError
from watcher.failpoints import failpoint
from watcher.runners.delivery.ends import LeastEnds
from watcher.runners.delivery.instance import Instance
from watcher.runners.delivery.pace import Pace
from watcher.runners.delivery.sinks import Sink, WindowSink
from watcher.runners.delivery.transactions import sort_by_transaction
from watcher.spanner.failures import MAY_GO_AWAY, classify_error
from watcher.spanner.timestamps import format_timestamp
from watcher.tracing import OWN, Span, span
from watcher.window import Window

LOG = logging.getLogger("watcher")


class TableFollower(Protocol):
    """Keeps the tables of a delivery in step with the schema of the database."""

    def follow(self, timestamp: int) -> None:
        """A window may end at this timestamp: from now on ``WindowDelivery.source`` has the tables
        of the schema that is valid there, and those that are new are registered."""
        ...

    def note_saved(self) -> None:
        """The positions are saved, and ``WindowDelivery.source`` is the latest known one."""
        ...


class FixedTables:
    """Tables that do not change."""

    def follow(self, timestamp: int) -> None:
        """As ``TableFollower.follow``."""

    def note_saved(self) -> None:
        """As ``TableFollower.note_saved``."""


FIXED_TABLES = FixedTables()


@dataclass(frozen=True, slots=True)
class Delivered:
    """What one poll delivered. ``more``: there may be more already."""

    end: int
    rows: Mapping[str, int]
    more: bool

    @property
    def total(self) -> int:
        """Rows over all tables."""
        return sum(self.rows.values())


def describe_window(current: Span, starts: Mapping[str, int], delivered: Delivered) -> None:
    """The attributes of a window that was delivered."""
    current.set(f"{OWN}window.start", format_timestamp(min(starts.values())))
    current.set(f"{OWN}window.end", format_timestamp(delivered.end))
    current.set(f"{OWN}tables", sorted(starts))
    current.set(f"{OWN}rows", delivered.total)


class WindowDelivery:
    """A consumer of a source. ``poll`` delivers one window and then saves its end.

    At least once: after a crash between delivery and saving the window is delivered again, with the
    same rows if its end is the same, else with the rows of a longer window, never of a shorter one.
    While nothing changes, positions advance every ``idle_seconds``.
    """

    def __init__(
        self,
        source: Source,
        positions: Positions,
        instance: Instance,
        sink: Sink,
        max_rows: int,
        transactions: bool = False,
        follower: TableFollower = FIXED_TABLES,
        idle_seconds: float = 0.0,
    ) -> None:
        self._source = source
        self._positions = positions
        self._instance = instance
        self._sink = sink
        self._pace = Pace(max_rows)
        self._transactions = transactions
        self._follower = follower
        self._idle_seconds = idle_seconds
        self._known: dict[str, int] | None = None
        self._ends: LeastEnds | None = None
        self._followed_at = -math.inf
        self._latest_end: int | None = None
        """Where a window might have ended that was cut where the schema was an older one."""

    @property
    def source(self) -> Source:
        """The tables that are watched now."""
        return self._source

    def replace_positions(self, positions: Positions) -> None:
        """Continues over a new connection."""
        self._positions = positions
        self._known = None
        if self._ends is not None:
            self._ends.replace_positions(positions)

    def replace_source(self, source: Source) -> None:
        """Continues with other tables, which have been registered."""
        self._source = source
        self._known = None
        self._followed_at = -math.inf

    def finish(self) -> None:
        """At a clean end. Every window is saved when ``poll`` returns; the next instance is told
        that nothing else was handed over."""
        if self._ends is None:
            return
        try:
            self._ends.close(self.read_positions())
        except Exception as error:
            if classify_error(error) not in MAY_GO_AWAY:
                raise
            LOG.info("the first window of the next run may be a longer one: %s", error)

    def close(self) -> None:
        """Nothing stays open between two windows."""

    def read_positions(self) -> dict[str, int]:
        """The positions of every table that is watched, read when they are not known."""
        if self._known is None:
            self._known = self._positions.load_all(self._instance.consumer)
        return {table: self._known[table] for table in self._source.tables if table in self._known}

    @property
    def _least_ends(self) -> LeastEnds:
        """Read once: what this instance hands over it knows itself."""
        if self._ends is None:
            self.read_positions()
            self._ends = LeastEnds(self._positions, self._instance, self._known or {})
        return self._ends

    def poll(self, until: int | None = None) -> Delivered:
        """Delivers what changed since the positions, up to ``until`` where that is earlier."""
        try:
            return self._deliver_window(until)
        except BaseException:
            self._known = None
            self._sink.discard()
            raise

    def _deliver_window(self, until: int | None) -> Delivered:
        began = time.time_ns()
        self._return_to_latest()
        starts: Mapping[str, int] = self.read_positions()
        if not starts:
            return Delivered(0, {}, more=False)
        look = self._source.look(starts)
        idle = not look.changed and until is None
        if idle and not self._is_due():
            return Delivered(look.end, {}, more=False)
        with span(
            "window", {f"{OWN}consumer": self._instance.consumer}, started_at=began
        ) as current:
            delivered = self._deliver_up_to(until, starts, look)
            describe_window(current, starts, delivered)
        return delivered

    def _deliver_up_to(self, until: int | None, starts: Mapping[str, int], look: Look) -> Delivered:
        end = look.end if until is None else max(min(look.end, until), *starts.values())
        end = self._least_ends.raise_end(starts, end, look.end)
        starts, look, cut = self._plan_end(starts, look, end)
        starts, changed = self._find_changes(starts, look, cut)
        self._begin_window(starts, cut)
        rows = self._hand_over({table: starts[table] for table in starts if table in changed}, cut)
        self._sink.resolved(cut)
        self._sink.flush()
        failpoint("after-delivery-before-position")
        self._save(starts, cut)
        if self._latest_end is None:
            self._follower.note_saved()
        LOG.info("window to %s: %d rows", format_timestamp(cut), sum(rows.values()))
        return Delivered(cut, rows, more=cut < end)

    def _plan_end(
        self, starts: Mapping[str, int], look: Look, end: int
    ) -> tuple[Mapping[str, int], Look, int]:
        """Where the window ends, and the positions and the look of the schema that is valid
        there."""
        source = self._source
        cut = self._follow_to(self._choose_cut(starts, look, end), end)
        if cut == end and self._source is not source:
            # New shards and tables have not been looked at, nor counted.
            source, starts = self._source, self.read_positions()
            look = self._look_at(end, starts, look)
            cut = self._follow_to(self._choose_cut(starts, look, end), end)
        self._latest_end = end if self._source is not source else None
        return starts, look, cut

    def _return_to_latest(self) -> None:
        """What changed is looked for with the tables and shards of the latest schema that is known,
        also after a window that was cut where an older one is valid."""
        if self._latest_end is None:
            return
        try:
            self._follower.follow(self._latest_end)
        except (NotWatchableError, TableNotFoundError, VersionExpiredError) as error:
            LOG.info("looking for changes in an older schema: %s", error)
        self._latest_end = None

    @property
    def _needs_schema(self) -> bool:
        """Whether a window needs the tables and columns that are valid at its very end: to be read
        by them, or to be written to copies that are to equal Spanner there."""
        return self._source.read_by_schema or isinstance(self._sink, WindowSink)

    def _is_due(self) -> bool:
        """Whether it is time to look at the schema, and to advance the positions of idle tables."""
        return time.monotonic() - self._followed_at >= self._idle_seconds

    def _follow_to(self, cut: int, end: int) -> int:
        """The end of the window, with the schema that is valid there. An earlier ``cut`` at which
        one of the tables cannot be read is replaced by the end."""
        if not self._needs_schema and not self._is_due():
            return cut
        try:
            self._follower.follow(cut)
        except VersionExpiredError:
            return cut  # the window will be read as of now
        except (NotWatchableError, TableNotFoundError):
            if cut == end:
                raise
            self._follower.follow(end)
            cut = end
        self._followed_at = time.monotonic()
        return cut

    def _find_changes(
        self, starts: Mapping[str, int], look: Look, cut: int
    ) -> tuple[dict[str, int], frozenset[str]]:
        """Where the tables of the window start, and which of them changed in it: what was deleted
        since still exists at a cut."""
        current = self.read_positions()
        if cut < look.end or current != starts:
            return current, self._look_at(cut, current, look, starts.keys()).changed
        return current, look.changed

    def _look_at(
        self, end: int, starts: Mapping[str, int], look: Look, looked_at: Set[str] = frozenset()
    ) -> Look:
        """Which tables had changed at an end. Where versions are garbage-collected already, those
        that have changed now, because they are read as of now, and those that were not
        ``looked_at``."""
        try:
            return self._source.look(starts, end)
        except VersionExpiredError:
            return Look(end, look.changed | (starts.keys() - looked_at))

    def _choose_cut(self, starts: Mapping[str, int], look: Look, end: int) -> int:
        """Where the window ends: with about ``max_rows`` rows at most."""
        whole = {
            table: Window(start, max(start, end))
            for table, start in starts.items()
            if table in look.changed
        }
        if not whole:
            return end
        return self._least_ends.raise_end(starts, self._source.cut(whole, self._pace.rows), end)

    def _begin_window(self, starts: Mapping[str, int], end: int) -> None:
        """Tells a sink that takes whole windows what this one is of."""
        source = self._source
        if isinstance(self._sink, WindowSink) and isinstance(source, PolledTables | StreamedTables):
            inside = {table: start for table, start in starts.items() if start <= end}
            captures = {table: source.capture(table) for table in inside}
            self._sink.begin_window(end, inside, captures)

    def _hand_over(self, starts: Mapping[str, int], end: int) -> dict[str, int]:
        windows = {table: Window(start, end) for table, start in starts.items() if start < end}
        rows: dict[str, int] = defaultdict(int)
        self._least_ends.plan(starts, end)
        batches = self._source.read(windows)
        started_at, whole = time.monotonic(), False
        try:
            for changed in sort_by_transaction(batches) if self._transactions else batches:
                self._instance.check()
                self._sink.write(changed)
                for table, count in changed.counts.items():
                    rows[table] += count
            whole = True
        finally:
            self._pace.note(sum(rows.values()), time.monotonic() - started_at, whole)
        return dict(rows)

    def _save(self, starts: Mapping[str, int], end: int) -> None:
        consumer, owner = self._instance.consumer, self._instance.owner
        behind = {table: start for table, start in starts.items() if start < end}
        moves = [Move(Position(consumer, table, end), start) for table, start in behind.items()]
        self._positions.save_all(moves, owner)
        self._least_ends.note_saved(dict.fromkeys(behind, end))
        if self._known is not None:
            self._known |= dict.fromkeys(behind, end)
