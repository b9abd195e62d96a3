"""Plans the micro-batches of a streaming query: where each ends, and its slices."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from google.api_core.exceptions import InvalidArgument, NotFound

from watcher.model.errors import (
    CheckpointError,
)
from watcher.model.window import Window
from watcher.planning.limits import WindowLimit
from watcher.planning.windows import (
    Look,
    Request,
    WindowPlan,
    answer,
    list_windows,
    needs_window,
    plan_window,
)
from watcher.runners.spark.ahead import SlicesAhead
from watcher.runners.spark.backlog import Backlog
from watcher.runners.spark.consumer import QueryConsumer
from watcher.runners.spark.offsets import Offset, OffsetContent, Offsets
from watcher.runners.spark.pages import BackfillPoint
from watcher.runners.spark.query_tables import QueryTables
from watcher.runners.spark.resolution import make_scan_selection
from watcher.runners.spark.resolved_scan import QueryAnswers, ResolvedScan
from watcher.runners.spark.scan import Scan
from watcher.runners.spark.slices import PlannedSlice, attach_captures
from watcher.runners.spark.spark_versions import ReadEverything, ReadLimit, ReadMaxRows
from watcher.runners.spark.table_batches import BatchWindow
from watcher.runners.spark.window_sources import make_window_source
from watcher.runners.table_rules import map_change_sets
from watcher.settings.fields import EARLIEST, resolve_start
from watcher.settings.spark import SourceOptions
from watcher.spanner.failures import FailureKind, classify_error
from watcher.spanner.outages import Outages
from watcher.spanner.timestamps import format_timestamp


class BatchPlanner:
    """Plans the micro-batches of a query that runs. It knows where the query was asked to end, and
    what it has seen.

    A window is read with the tables, columns, index and shards of the schema at its end, and its
    offset names the tables: what a batch holds follows from its offsets alone.
    """

    def __init__(self, scan: Scan) -> None:
        options = scan.options
        self._scan = scan
        self._tables = QueryTables(scan)
        self.offsets = Offsets(options.address.path, options.source)
        self._until: int | None = None
        self._seen: int | None = None
        self._ahead: SlicesAhead | None = None
        self._stopping = scan.queries.outages.stopping = threading.Event()
        self._backlog: Backlog | None = None
        self._advanced_at = 0.0
        self._found_nothing = False
        self._consumer = make_consumer(options, scan.queries.outages)

    def fix_end(self) -> None:
        """The query ends at a timestamp that is served now."""
        self._until = self._scan.queries.fetch_read_timestamp()

    def newest_offset(self) -> Offset | None:
        """The newest timestamp that was seen, for Spark's progress; with ``rowsBehind`` where it is
        known how many rows there are between it and the last batch's end."""
        if self._seen is None:
            return None
        rows = self._backlog.rows if self._backlog is not None else None
        return self.offsets.make(self._seen) | ({"rowsBehind": rows} if rows is not None else {})

    def plan_end(self, start: Offset, limit: ReadLimit) -> Offset:
        """Where the next batch ends."""
        content = self.offsets.parse(start)
        if content.position is not None:
            self._register(
                self._tables.list_starts(content.tables or self._tables.latest.scan.tables, content)
            )
        if self._consumer is not None and self._consumer.is_paused():
            return start
        if content.backfill is not None:
            assert content.position is not None
            if isinstance(limit, ReadEverything):
                return self._plan_rest_end(content)
            at, tables = content.position, content.tables
            return self._plan_page_end(at, content.backfill, tables, limit, None)
        if content.position is None and start["start"] == EARLIEST:
            return self._plan_first_page_end(limit)
        return self._plan_window_end(start, content, limit)

    def _plan_first_page_end(self, limit: ReadLimit) -> Offset:
        """A backfill is of the tables as they are where it is registered."""
        at = self._until if self._until is not None else self._scan.queries.fetch_read_timestamp()
        at = self._register_begin(at, now=True)
        tables = self._tables.list_names(self._tables.resolve_at(at).scan)
        first = self._tables.open_pages(at, tables).first
        return self._plan_page_end(at, first, tables, limit, EARLIEST)

    def _plan_rest_end(self, content: OffsetContent) -> Offset:
        """The end of what is left of a backfill, with the window that comes after it."""
        end = self._scan.queries.fetch_read_timestamp()
        current = self._tables.resolve_at(end)
        current.check_tables(content.tables or ())
        return self.offsets.make(end, tables=self._tables.list_names(current.scan))

    def _plan_window_end(self, start: Offset, content: OffsetContent, limit: ReadLimit) -> Offset:
        """An idle table's position advances every ``idleSeconds`` too: clearing does not wait."""
        first = content.position is None
        begin = self._resolve_begin(start) if content.position is None else content.position
        content = replace(content, position=begin)
        ends = self._until is not None or isinstance(limit, ReadEverything)
        starts = self._scan.options.starts_with_window and not self._advanced_at
        advances = first or starts or not (ends or self._advanced_recently())
        try:
            plan = self._plan(content, limit, advances)
        except (InvalidArgument, NotFound) as error:
            # The tables are not what they were.
            if classify_error(error) not in (FailureKind.SCHEMA, FailureKind.INDEX):
                raise
            self._tables.look_again(content.tables or ())
            plan = self._plan(content, limit, advances)
        if plan is None:
            self._found_nothing = True
            return start
        self._register(plan.watched.positions)
        self._advanced_at, self._found_nothing = time.monotonic(), False
        began = format_timestamp(begin) if first else None
        current = plan.watched.schema
        end = self.offsets.make(plan.end, None, began, self._tables.list_names(current.scan))
        self._ahead = SlicesAhead(self._scan, start, end, current, plan.windows)
        return end

    def _plan(
        self, content: OffsetContent, limit: ReadLimit, advances: bool
    ) -> WindowPlan[ResolvedScan] | None:
        """The next window after an offset; None where there is nothing to do."""
        answers = QueryAnswers(content, self._tables.resolve_at, self._tables.list_starts)
        watched = answers.watch(self._tables.latest)
        look = self._tables.latest.windows.look(watched.positions)
        self._seen = look.end
        request = Request(watched, self._limit_window(limit), self._until, advances)
        if not needs_window(request, look):
            assert content.position is not None
            self._backlog = self._leave(self._tables.latest, look, content.position)
            return None
        plan = answer(plan_window(request, look), answers)
        self._tables.latest = plan.latest.schema
        self._backlog = self._leave(plan.watched.schema, look, plan.end)
        return plan

    def _advanced_recently(self) -> bool:
        """Within ``idleSeconds``, or by the last trigger: an empty batch is never followed by
        another at once, else ``processAllAvailable`` would not end where batches take longer."""
        idle = self._scan.options.idle_seconds
        passed = time.monotonic() - self._advanced_at >= idle
        return idle > 0 and not (passed and self._found_nothing)

    def _leave(self, current: ResolvedScan, look: Look, end: int) -> Backlog:
        """What a batch leaves of what was seen."""
        rest = Window(end, max(end, look.end))
        tables = current.scan.tables if look.changed else ()
        return Backlog(current.windows, dict.fromkeys(tables, rest))

    def _limit_window(self, limit: ReadLimit) -> WindowLimit:
        """The limits of a window: none where Spark asks for everything."""
        if isinstance(limit, ReadEverything):
            return WindowLimit()
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else 0
        return replace(self._scan.options.window_limit, rows=rows)

    def _plan_page_end(
        self,
        at: int,
        point: BackfillPoint,
        tables: Sequence[str] | None,
        limit: ReadLimit,
        began: str | None,
    ) -> Offset:
        self._backlog = None
        if isinstance(limit, ReadEverything):
            return self.offsets.make(at, None, began, tables)
        most, rows = self._limit_window(limit), self._scan.options.backfill_rows_per_batch
        page = replace(most, rows=min(rows, most.rows or rows))
        self._advanced_at = time.monotonic()
        pages = self._tables.open_pages(at, tables)
        end = self.offsets.make(at, pages.plan(at, point, page), began, tables)
        pages.remember(json.dumps(end, sort_keys=True))
        return end

    def plan_slices(self, start: Offset, end: Offset) -> list[PlannedSlice]:
        """What the tasks of a batch read."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead.is_of(start, end):
            return ahead.wait()
        before, after = self.offsets.parse(start), self.offsets.parse(end)
        if before == after:
            return []  # a query that was paused before its first batch
        if after.position is None:
            raise CheckpointError(f"the offset {end} does not say where its batch ends")
        if before.backfill is not None and before.position != after.position:
            return self._plan_rest(before, after, after.position, end)
        paged = before.backfill is not None or (after.first_end and after.began_at is None)
        plan = self._plan_page if paged else self._plan_window
        return plan(before, after, after.position, end)

    def _plan_page(
        self, before: OffsetContent, after: OffsetContent, position: int, end: Offset
    ) -> list[PlannedSlice]:
        """The slices of a page of a backfill; known where this process has planned its end."""
        scan = self._tables.resolve_at(position).scan.select_tables(after.tables)
        self._register(dict.fromkeys(scan.tables, position))
        pages = self._tables.open_pages(position, after.tables)
        known = pages.recall(json.dumps(end, sort_keys=True))
        first = before.backfill or pages.first
        return attach_captures(scan, known or pages.plan_between(position, first, after.backfill))

    def _plan_window(
        self, before: OffsetContent, after: OffsetContent, position: int, end: Offset
    ) -> list[PlannedSlice]:
        """The slices of a window."""
        scan = self._tables.resolve_at(position).scan.select_tables(after.tables)
        begin = after.began_at if after.first_end else before.position
        if begin is None:
            raise CheckpointError(f"the offset {end} does not say where its window begins")
        content = replace(before, position=begin)
        starts = self._tables.list_starts(scan.tables, content)
        self._register(starts)
        windows = list_windows(starts, position, frozenset(starts))
        return (
            attach_captures(scan, make_window_source(scan).plan_slices(windows)) if windows else []
        )

    def _plan_rest(
        self, before: OffsetContent, after: OffsetContent, position: int, end: Offset
    ) -> list[PlannedSlice]:
        """The slices of what is left of a backfill, and of the window that comes after it."""
        assert before.position is not None
        rest = OffsetContent(before.position, tables=before.tables)
        pages = self._plan_page(before, rest, before.position, end)
        return pages + self._plan_window(replace(before, backfill=None), after, position, end)

    def describe_window(self, start: Offset, end: Offset) -> BatchWindow | None:
        """The window of a batch; None for one that has none, because nothing was planned."""
        before, after = self.offsets.parse(start), self.offsets.parse(end)
        if before == after or after.position is None:
            return None
        begin = after.began_at if after.first_end else before.position
        scan = self._tables.resolve_at(after.position).scan.select_tables(after.tables)
        starts = self._tables.list_starts(scan.tables, replace(before, position=begin))
        return BatchWindow(after.position, starts)

    def commit(self, end: Offset) -> None:
        """Everything up to ``end`` is in the sink."""
        content = self.offsets.parse(end)
        if self._consumer is not None and content.position is not None:
            tables = content.tables or self._scan.tables
            self._register(dict.fromkeys(tables, content.position))
            self._consumer.advance(content.position, tables)

    def stop(self) -> None:
        """Gives the consumer's name back."""
        if self._consumer is not None:
            self._consumer.stop()
        self._stopping.set()

    # Timestamps and positions.

    def _register(self, starts: Mapping[str, int]) -> None:
        if self._consumer is not None:
            self._consumer.register(starts, with_sets=self._map_change_sets())

    def _map_change_sets(self) -> Mapping[str, str]:
        return map_change_sets(capture.table for capture in self._tables.latest.scan.captures)

    def _register_begin(self, at: int, now: bool) -> int:
        """Where the query begins: registered there, so that clearing does not pass it."""
        if self._consumer is None:
            return at
        starts = dict.fromkeys(self._tables.latest.scan.tables, at)
        registered = self._consumer.register(starts, now, self._map_change_sets())
        return max(at, *registered.values())

    def _resolve_begin(self, start: Offset) -> int:
        explicit = resolve_start(start["start"])
        if explicit is None:
            return self._register_begin(self._scan.queries.fetch_read_timestamp(), now=True)
        return self._register_begin(explicit, now=False)


def make_consumer(options: SourceOptions, outages: Outages) -> QueryConsumer | None:
    """The consumer that a query is; its selection is for clearing, of tables that are polled."""
    if options.consumer is None:
        return None
    selection = replace(make_scan_selection(options), streamed=options.streamed).to_text()
    return QueryConsumer(options, options.consumer, selection, outages)
