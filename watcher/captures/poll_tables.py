"""Many tables polled at one read timestamp: a window is a consistent cut of all of them.

While one table's query answers, those of the next few are under way: a window costs what its rows
cost, and not a round trip to Spanner for each table.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TypeVar

from watcher.captures import TableRows, statements
from watcher.captures.poll import PollCapture, Wait, decode_values
from watcher.captures.sampling import SampledCuts
from watcher.captures.write_rate import WriteRate
from watcher.model.errors import VersionExpiredError
from watcher.model.log_events.reading import WINDOW_NOT_CUT
from watcher.model.window import ShardSlice, Window
from watcher.planning.limits import WindowLimit
from watcher.planning.windows import Look, shorten_window
from watcher.process.tracing import OWN, Kind, describe_database, follow, start_span
from watcher.spanner.failures import REFUSALS, is_schema_refusal
from watcher.spanner.sql import Statement, union_statements
from watcher.spanner.timestamps import format_timestamp

LOG = logging.getLogger("watcher.poll")
Item = TypeVar("Item")

TABLES_PER_QUERY = 50
CUTS_MAX = 8
AHEAD = 8
"""How many queries are under way beside the one that is read."""


class PolledTables:
    """The ``Source`` of tables that are polled. One call finds which of them changed."""

    def __init__(self, captures: Sequence[PollCapture]) -> None:
        self._captures = {capture.table.name: capture for capture in captures}
        self._samples = {name: SampledCuts(each) for name, each in self._captures.items()}
        self._rate = WriteRate()

    @property
    def tables(self) -> tuple[str, ...]:
        """As ``Source.tables``."""
        return tuple(self._captures)

    @property
    def parts(self) -> tuple[PollCapture, ...]:
        """What it reads with: equal for tables that are alike in two schemas."""
        return tuple(self._captures.values())

    @property
    def read_by_schema(self) -> bool:
        """As ``Source.read_by_schema``."""
        return True

    def capture(self, table: str) -> PollCapture:
        """The capture of a table."""
        return self._captures[table]

    def look(self, starts: Mapping[str, int], at: int | None = None) -> Look:
        """As ``Source.look``: a call for every 50 tables, all at the timestamp of the first."""
        first, *others = split_names(self.tables, TABLES_PER_QUERY)
        stream = self._captures[first[0]].queries.stream
        end, numbers = stream.query_numbers(self._find_changed(first, starts), at)
        changed = {first[number] for number in numbers}
        queries = (
            (names, decode_values(stream.query(self._find_changed(names, starts), end)))
            for names in others
        )
        for names, answers in start_ahead(queries):
            changed |= {names[number] for number in answers if number is not None}
        return Look(max(end, *starts.values()), frozenset(changed))

    def _find_changed(self, names: Sequence[str], starts: Mapping[str, int]) -> Statement:
        """One query that answers with the numbers of the tables that changed. Tables with the same
        shards share one list of them."""
        lists: dict[statements.Shards | None, int] = {}
        parts = []
        for number, name in enumerate(names):
            table = self._captures[name].table
            shared = lists.setdefault(table.shard_values, number)
            other = shared if shared != number else None
            parts.append(statements.find_any_after(table, starts[name], number, other))
        return union_statements(parts)

    def find_first_change(self, windows: Mapping[str, Window]) -> int:
        """As ``Source.find_first_change``."""
        return self._find_end(windows, 1)

    def cut(self, windows: Mapping[str, Window], limit: WindowLimit) -> int:
        """As ``Source.cut``, by an index-only count; bytes count as rows of an average size. Rows
        of one commit timestamp stay together: every cut is exact."""
        end = max(window.end for window in windows.values())
        max_rows = limit.rows
        if limit.bytes:
            sizes = (self._captures[name].measure_row(w) for name, w in windows.items())
            max_rows = limit.limit_rows(max(sizes))
        if not max_rows:
            return end
        cut = self._find_cut_of(windows, end, max_rows)
        self._rate.note_cut(cut < end)
        return cut

    def _find_cut_of(self, windows: Mapping[str, Window], end: int, max_rows: int) -> int:
        if len(windows) == 1:
            ((name, window),) = windows.items()
            sample = self._samples[name]
            if sample.is_reliable(max_rows):
                if self._rate.must_count(windows, max_rows):
                    return sample.find_end(window, max_rows)
                sample.note_whole(window)
                return end
        if self.count_up_to(windows, max_rows + 1) <= max_rows:
            return end
        return self._find_cut(windows, end, max_rows)

    def _find_cut(self, windows: Mapping[str, Window], latest: int, max_rows: int) -> int:
        """An end that has few enough rows, or the earliest that was counted. At an earlier end the
        schema may have been another: where Spanner refuses to count there, the last end at which it
        did not is the cut, at worst the windows' own."""
        counted, end = latest, self._find_end(windows, max_rows)
        for _ in range(CUTS_MAX):
            shorter = {name: shorten_window(window, end) for name, window in windows.items()}
            try:
                earlier = self._find_earlier(shorter, end, max_rows)
            except REFUSALS as error:
                if end == latest or not is_schema_refusal(error):
                    raise
                WINDOW_NOT_CUT.log(LOG, end=format_timestamp(end), error=error)
                break
            counted = end
            if earlier == end:
                break
            end = earlier
        return counted

    def _find_earlier(self, windows: Mapping[str, Window], end: int, max_rows: int) -> int:
        """An earlier end, where there are too many rows: some that are there at an earlier end have
        changed again since. The same end, where they are few enough or one commit has them all."""
        try:
            windows, total = self._count_existing(windows)
        except VersionExpiredError:
            # The window will be read as of now, and so it was counted when its end was chosen.
            return end
        if total <= max_rows:
            return end
        begin = min(window.start for window in windows.values())
        end = self._find_end(windows, max_rows)
        share = begin + (end - begin) * max_rows // total
        return max(min(end, share), self._find_end(windows, 1))

    def _count_existing(self, windows: Mapping[str, Window]) -> tuple[Mapping[str, Window], int]:
        """The windows of the tables that exist at their end, and how many rows these have. Refused
        as Spanner does where none exists."""
        existing: dict[str, Window] = {}
        total = 0
        refusal: Exception | None = None
        counts = (self._captures[name].start_count(window) for name, window in windows.items())
        for (name, window), wait in zip(windows.items(), start_ahead(counts), strict=True):
            try:
                total += wait()
            except REFUSALS as error:
                if not is_schema_refusal(error):
                    raise
                refusal = error
            else:
                existing[name] = window
        if refusal is not None and not existing:
            raise refusal
        return existing, total

    def count_up_to(self, windows: Mapping[str, Window], limit: int) -> int:
        """How many rows there are; stops asking tables once there are ``limit``."""
        total = 0
        counts = (self._captures[n].start_count(window, limit) for n, window in windows.items())
        for count in wait_for(counts):
            total += count
            if total >= limit:
                break
        return total

    def _find_end(self, windows: Mapping[str, Window], max_rows: int) -> int:
        """The earliest timestamp at which one of the tables has so many rows."""
        cuts = (self._captures[n].start_find_cut(w, max_rows) for n, w in windows.items())
        return min(wait_for(cuts))

    def read(self, windows: Mapping[str, Window]) -> Iterator[TableRows]:
        """As ``Source.read``."""
        reads = (
            read_traced(capture, part)
            for capture, window in ((self._captures[n], w) for n, w in windows.items())
            for part in capture.plan(window)
        )
        yield from self._rate.follow(windows, chain.from_iterable(start_ahead(reads)))


def read_traced(capture: PollCapture, part: ShardSlice) -> Iterator[TableRows]:
    """As ``PollCapture.read``, in a span from the query's start to its last row."""
    attributes = describe_database(capture.queries.address.path, capture.table.name)
    current = start_span(f"slice {capture.table.name}", attributes, Kind.CLIENT)
    if part.shards is not None:
        current.set(f"{OWN}shards", str(part.shards))
    return follow(current, capture.read(part))


def start_ahead(items: Iterable[Item], count: int = AHEAD) -> Iterator[Item]:
    """The same items, taken ``count`` ahead: the queries that taking them starts are under way."""
    remaining = iter(items)
    started = deque(islice(remaining, count + 1))
    while started:
        yield started.popleft()
        started.extend(islice(remaining, 1))


def wait_for(waits: Iterable[Wait]) -> Iterator[int]:
    """The numbers that queries answer with, one after another."""
    return (wait() for wait in start_ahead(waits))


def split_names(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """The names, so many at a time."""
    for first in range(0, len(names), size):
        yield names[first : first + size]
