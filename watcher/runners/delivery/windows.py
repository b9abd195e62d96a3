"""Delivers the windows of a source to a sink, one after another."""

from __future__ import annotations

import logging
import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from watcher.captures import Source
from watcher.captures.change_stream.listening import Listening
from watcher.captures.poll_tables import PolledTables
from watcher.captures.streamed_tables import StreamedTables
from watcher.consumers.positions import Move, Position, Positions
from watcher.model.errors import NotWatchableError, TableNotFoundError, VersionExpiredError
from watcher.model.log_events.delivery import (
    OLDER_SCHEMA_READ,
    PLANNED_END_NOT_STORED,
    SCHEMA_READ_NOW,
    WINDOW_DELIVERED,
)
from watcher.model.window import Window
from watcher.planning.limits import WindowLimit
from watcher.planning.sources import SourceAnswers
from watcher.planning.windows import (
    FindCut,
    ReadSchema,
    Request,
    Watched,
    WindowPlan,
    answer,
    needs_window,
    plan_window,
)
from watcher.process.failpoints import failpoint
from watcher.process.tracing import OWN, Span, span
from watcher.runners.delivery.ends import LeastEnds
from watcher.runners.delivery.instance import Instance
from watcher.runners.delivery.pace import Pace
from watcher.runners.delivery.transactions import sort_by_transaction
from watcher.sinks.contract import Sink, WindowSink
from watcher.spanner.failures import MAY_GO_AWAY, classify_error
from watcher.spanner.timestamps import format_timestamp

LOG = logging.getLogger("watcher")


class TableFollower(Protocol):
    """Keeps the tables of a delivery in step with the schema of the database."""

    def follow(self, timestamp: int) -> None:
        """A window may end at this timestamp: from now on ``WindowDelivery.source`` has the tables
        of the schema that is valid there, and those that are new are registered."""
        ...

    def prepare(self, timestamp: int) -> None:
        """``follow`` is going to be called, unless the window ends earlier: its call of Spanner may
        begin."""
        ...

    def note_saved(self) -> None:
        """The positions are saved, and ``WindowDelivery.source`` is the latest known one."""
        ...


class FixedTables:
    """Tables that do not change."""

    def follow(self, timestamp: int) -> None:
        """As ``TableFollower.follow``."""

    def prepare(self, timestamp: int) -> None:
        """As ``TableFollower.prepare``."""

    def note_saved(self) -> None:
        """As ``TableFollower.note_saved``."""


FIXED_TABLES = FixedTables()


@dataclass(frozen=True, slots=True)
class Delivered:
    """What one poll delivered. ``more``: there may be more already. ``wanted``: where the window
    would have ended without limits; None if there was no window."""

    end: int
    rows: Mapping[str, int]
    more: bool
    wanted: int | None = None

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


class WindowDelivery(SourceAnswers[Source]):
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
        limit: WindowLimit,
        transactions: bool = False,
        follower: TableFollower = FIXED_TABLES,
        idle_seconds: float = 0.0,
    ) -> None:
        self._source = source
        self._positions = positions
        self._instance = instance
        self._sink = sink
        self._window_sink = sink if isinstance(sink, WindowSink) else None
        self._limit = limit
        self._pace = Pace(limit.rows)
        self._transactions = transactions
        self._follower = follower
        self._idle_seconds = idle_seconds
        self._known: dict[str, int] | None = None
        self._ends: LeastEnds | None = None
        self._followed_at = -math.inf
        self._saved_at = -math.inf
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
            PLANNED_END_NOT_STORED.log(LOG, error=error)

    def close(self) -> None:
        """Nothing stays open between two windows."""

    def listen(self, start: int, seconds: float, wake: Callable[[], object]) -> Listening | None:
        """Hears of changes after a look, for so long; None where only another look can tell. Copies
        are as new as their latest window: they are looked at as ever."""
        source = self._source
        if self._window_sink is not None or not isinstance(source, StreamedTables):
            return None
        return source.listen(start, start + round(seconds * 1_000_000), wake)

    def read_positions(self) -> dict[str, int]:
        """The positions of every table that is watched, read when they are not known."""
        if self._known is None:
            self._known = self._positions.load_all(self._instance.consumer)
        return {table: self._known[table] for table in self._source.tables if table in self._known}

    @property
    def unfinished(self) -> bool:
        """Whether another window has something to do, beside what changes until then."""
        return self._window_sink is not None and self._window_sink.unfinished

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
        positions = self.read_positions()
        if not positions:
            return Delivered(0, {}, more=False)
        look = self._source.look(positions)
        request = Request(
            Watched(self._source, positions),
            replace(self._limit, rows=self._pace.rows),
            until,
            until is not None or self.unfinished or self._is_due(),
            self._least_ends.by_table,
        )
        if not needs_window(request, look):
            return Delivered(look.end, {}, more=False)
        with span(
            "window", {f"{OWN}consumer": self._instance.consumer}, started_at=began
        ) as current:
            plan = answer(plan_window(request, look), self)
            delivered = self._deliver_planned(plan, required=until is not None)
            describe_window(current, plan.watched.positions, delivered)
        return delivered

    def _deliver_planned(self, plan: WindowPlan[Source], required: bool) -> Delivered:
        self._latest_end = None if plan.in_latest_schema else plan.wanted
        starts = plan.watched.positions
        self._begin_window(starts, plan.end)
        rows = self._hand_over(plan.windows, plan.end)
        if not (rows or required or self._must_save(plan)):
            return Delivered(plan.end, rows, plan.more, plan.wanted)
        self._sink.resolved(plan.end)
        self._sink.flush()
        failpoint("after-delivery-before-position")
        self._save(starts, plan.end)
        if plan.in_latest_schema:
            self._follower.note_saved()
        WINDOW_DELIVERED.log(LOG, end=format_timestamp(plan.end), rows=sum(rows.values()))
        return Delivered(plan.end, rows, plan.more, plan.wanted)

    def _return_to_latest(self) -> None:
        """What changed is looked for with the tables and shards of the latest schema that is known,
        also after a window that was cut where an older one is valid."""
        if self._latest_end is None:
            return
        try:
            self._follower.follow(self._latest_end)
        except (NotWatchableError, TableNotFoundError, VersionExpiredError) as error:
            OLDER_SCHEMA_READ.log(LOG, error=error)
        self._latest_end = None

    @property
    def _needs_schema(self) -> bool:
        """Whether a window needs the tables and columns that are valid at its very end: to be read
        by them, or to be written to copies that are to equal Spanner there."""
        return self._source.read_by_schema or self._window_sink is not None

    def _must_save(self, plan: WindowPlan[Source]) -> bool:
        """Whether a window without rows moves the positions. Only reading a change stream tells
        that nothing changed: a commit after each look would be most of what idle tables cost. But
        copies are as new as their latest window."""
        waited = time.monotonic() - self._saved_at >= self._idle_seconds
        needed = plan.more or not plan.in_latest_schema or self._window_sink is not None
        return waited or needed

    def _is_due(self) -> bool:
        """Whether it is time to look at the schema, and to advance the positions of idle tables."""
        return time.monotonic() - self._followed_at >= self._idle_seconds

    # Answers to the questions of a plan.

    def find_cut(self, question: FindCut[Source]) -> int:
        """As ``SourceAnswers.find_cut``; beside the count the schema is read at the end that a
        window has when nothing is cut."""
        if self._needs_schema:
            self._follower.prepare(max(window.end for window in question.windows.values()))
        return super().find_cut(question)

    def find_source(self, schema: Source) -> Source:
        """As ``SourceAnswers.find_source``."""
        return schema

    def read_schema(self, question: ReadSchema) -> Watched[Source] | None:
        """As ``Answers.read_schema``; the latest known one where a window needs none of its own."""
        if self._needs_schema or self._is_due():
            try:
                self._follower.follow(question.at)
                self._followed_at = time.monotonic()
            except VersionExpiredError as error:
                SCHEMA_READ_NOW.log(LOG, error=error)
            except (NotWatchableError, TableNotFoundError):
                if question.required:
                    raise
                return None
        return Watched(self._source, self.read_positions())

    # What a window holds.

    def _begin_window(self, starts: Mapping[str, int], end: int) -> None:
        """Tells a sink that takes whole windows what this one is of."""
        source, sink = self._source, self._window_sink
        if sink is not None and isinstance(source, PolledTables | StreamedTables):
            inside = {table: start for table, start in starts.items() if start <= end}
            captures = {table: source.capture(table) for table in inside}
            sink.begin_window(end, inside, captures)

    def _hand_over(self, windows: Mapping[str, Window], end: int) -> dict[str, int]:
        rows: dict[str, int] = defaultdict(int)
        self._least_ends.plan({table: window.start for table, window in windows.items()}, end)
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
        self._saved_at = time.monotonic()
        self._least_ends.note_saved(dict.fromkeys(behind, end))
        if self._known is not None:
            self._known |= dict.fromkeys(behind, end)
