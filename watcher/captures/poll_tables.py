"""Many tables polled at one read timestamp: a window is a consistent cut of all of them.

What is asked of each table is under way for the next few while one answers: a window costs what its
rows cost, and not a round trip to Spanner for each table.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from google.cloud.spanner_v1 import Type

from watcher.captures import Look, Rows, statements
from watcher.captures.poll import Answer, PollCapture, scalars
from watcher.captures.sampling import SampledCuts
from watcher.errors import VersionExpiredError
from watcher.spanner.failures import REFUSALS, refused_by_schema
from watcher.spanner.stream import WireValue
from watcher.spanner.timestamps import timestamp_text
from watcher.window import Window

LOG = logging.getLogger("watcher.poll")
Asked = TypeVar("Asked")

TABLES_PER_QUERY = 50
CUTS_MAX = 8
AHEAD = 8
"""How many queries are under way beside the one that is read."""


class PolledTables:
    """The ``Source`` of tables that are polled. One call finds which of them changed."""

    def __init__(self, captures: Sequence[PollCapture]) -> None:
        self._captures = {capture.table.name: capture for capture in captures}
        self._samples = {name: SampledCuts(each) for name, each in self._captures.items()}

    @property
    def tables(self) -> tuple[str, ...]:
        """As ``Source.tables``."""
        return tuple(self._captures)

    @property
    def read_by_schema(self) -> bool:
        """As ``Source.read_by_schema``."""
        return True

    def capture(self, table: str) -> PollCapture:
        """The capture of a table."""
        return self._captures[table]

    def look(self, starts: Mapping[str, int], at: int | None = None) -> Look:
        """As ``Source.look``: a call for every 50 tables, all at the timestamp of the first."""
        first, *others = parts(self.tables, TABLES_PER_QUERY)
        stream = self._captures[first[0]].queries.stream
        end, numbers = stream.numbers(*self._question(first, starts), at)
        changed = {first[number] for number in numbers}
        asked = (
            (names, scalars(stream.rows(*self._question(names, starts), end))) for names in others
        )
        for names, found in ahead(asked):
            changed |= {names[number] for number in found if number is not None}
        return Look(max(end, *starts.values()), frozenset(changed))

    def _question(
        self, names: Sequence[str], starts: Mapping[str, int]
    ) -> tuple[str, dict[str, WireValue], dict[str, Type]]:
        """One query that answers with the numbers of the tables that changed."""
        arms: list[str] = []
        params: dict[str, WireValue] = {}
        types: dict[str, Type] = {}
        for number, name in enumerate(names):
            table = self._captures[name].table
            shards = statements.shard_list(table, None)
            arm = statements.any_after(table, shards is not None, str(number))
            arms.append(f"SELECT {number} FROM ({arm})")  # noqa: S608 (a number, and our own text)
            params[f"start{number}"] = timestamp_text(starts[name])
            types[f"start{number}"] = statements.TIMESTAMP
            if shards is not None:
                params[f"shards{number}"] = [str(shard) for shard in shards]
                types[f"shards{number}"] = statements.shards_type(shards)
        return " UNION ALL ".join(arms), params, types

    def cut(self, windows: Mapping[str, Window], max_rows: int) -> int:
        """As ``Source.cut``. Rows of one commit timestamp are never parted: every cut is exact."""
        if len(windows) == 1:
            ((name, window),) = windows.items()
            if self._samples[name].serve(max_rows):
                return self._samples[name].end(window, max_rows)
        end = max(window.end for window in windows.values())
        if self._count_some(windows, max_rows + 1) <= max_rows:
            return end
        return self._cut_within(windows, end, max_rows)

    def _cut_within(self, windows: Mapping[str, Window], own: int, max_rows: int) -> int:
        """An end that has few enough rows, or the earliest that was counted. At an earlier end the
        schema may have been another: where Spanner refuses to count there, the last end at which it
        did not is the cut, at worst the windows' own."""
        counted, end = own, self._end_of(windows, max_rows)
        for _ in range(CUTS_MAX):
            ends = {n: shortened(window, end) for n, window in windows.items()}
            try:
                shorter = self._shorter(ends, end, max_rows)
            except REFUSALS as error:
                if end == own or not refused_by_schema(error):
                    raise
                LOG.info("no window is cut at %s: %s", timestamp_text(end), error)
                break
            counted = end
            if shorter == end:
                break
            end = shorter
        return counted

    def _shorter(self, windows: Mapping[str, Window], end: int, max_rows: int) -> int:
        """An earlier end, where there are too many rows: some that are there at an earlier end have
        changed again since. The same end, where they are few enough or one commit has them all."""
        try:
            windows, total = self._count_there(windows)
        except VersionExpiredError:
            # The window will be read as of now, and so it was counted when its end was found.
            return end
        if total <= max_rows:
            return end
        begin = min(window.start for window in windows.values())
        end = self._end_of(windows, max_rows)
        share = begin + (end - begin) * max_rows // total
        return max(min(end, share), self._end_of(windows, 1))

    def _count_there(self, windows: Mapping[str, Window]) -> tuple[Mapping[str, Window], int]:
        """The windows of the tables that are there at their end, and how many rows these have.
        Refused as Spanner does where none is."""
        there: dict[str, Window] = {}
        total = 0
        refusal: Exception | None = None
        asked = (self._captures[n].counting(window) for n, window in windows.items())
        for (name, window), answer in zip(windows.items(), ahead(asked), strict=True):
            try:
                total += answer()
            except REFUSALS as error:
                if not refused_by_schema(error):
                    raise
                refusal = error
            else:
                there[name] = window
        if refusal is not None and not there:
            raise refusal
        return there, total

    def _count_some(self, windows: Mapping[str, Window], limit: int) -> int:
        """How many rows there are; no more tables are asked once there are so many."""
        total = 0
        asked = (self._captures[n].counting(window, limit) for n, window in windows.items())
        for count in answers(asked):
            total += count
            if total >= limit:
                break
        return total

    def _end_of(self, windows: Mapping[str, Window], max_rows: int) -> int:
        """The earliest timestamp at which one of the tables has so many rows."""
        asked = (self._captures[n].ending(window, max_rows) for n, window in windows.items())
        return min(answers(asked))

    def read(self, windows: Mapping[str, Window]) -> Iterator[Rows]:
        """As ``Source.read``."""
        asked = (
            (self._captures[name].table, window, self._captures[name].read(part))
            for name, window in windows.items()
            for part in self._captures[name].plan(window)
        )
        for table, window, batches in ahead(asked):
            for batch in batches:
                yield Rows(table, window, batch)


def ahead(asked: Iterable[Asked], count: int = AHEAD) -> Iterator[Asked]:
    """The same, with so many more taken before one is given: what they ask for is under way."""
    remaining = iter(asked)
    waiting = deque(islice(remaining, count + 1))
    while waiting:
        yield waiting.popleft()
        waiting.extend(islice(remaining, 1))


def answers(asked: Iterable[Answer]) -> Iterator[int]:
    """What they answer with, one after another."""
    return (answer() for answer in ahead(asked))


def parts(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """The names, so many at a time."""
    for first in range(0, len(names), size):
        yield names[first : first + size]


def shortened(window: Window, end: int) -> Window:
    """The part of a window up to ``end``."""
    return Window(window.start, max(window.start, min(window.end, end)))
