"""Many tables polled at one read timestamp: a window is a consistent cut of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from google.cloud.spanner_v1 import Type

from watcher import sql
from watcher.captures import Look, Rows
from watcher.captures.poll import PollCapture, query_stream
from watcher.stream import WireValue, timestamp_text
from watcher.window import Window

TABLES_PER_QUERY = 50
CUTS_MAX = 8


class PolledTables:
    """The ``Source`` of tables that are polled. One call finds which of them changed."""

    def __init__(self, captures: Sequence[PollCapture]) -> None:
        self._captures = {capture.table.name: capture for capture in captures}

    @property
    def tables(self) -> tuple[str, ...]:
        """As ``Source.tables``."""
        return tuple(self._captures)

    def capture(self, table: str) -> PollCapture:
        """The capture of a table."""
        return self._captures[table]

    def look(self, starts: Mapping[str, int], at: int | None = None) -> Look:
        """As ``Source.look``: a call for every 50 tables, all at the timestamp of the first."""
        end = at
        changed: set[str] = set()
        for names in parts(self.tables, TABLES_PER_QUERY):
            query, params, types = self._question(names, starts)
            stream = query_stream(self._captures[names[0]].address)
            read_timestamp, numbers = stream.numbers(query, params, types, end)
            end = read_timestamp if end is None else end
            changed |= {names[number] for number in numbers}
        return Look(max(end or 0, *starts.values()), frozenset(changed))

    def _question(
        self, names: Sequence[str], starts: Mapping[str, int]
    ) -> tuple[str, dict[str, WireValue], dict[str, Type]]:
        """One query that answers with the numbers of the tables that changed."""
        arms: list[str] = []
        params: dict[str, WireValue] = {}
        types: dict[str, Type] = {}
        for number, name in enumerate(names):
            table = self._captures[name].table
            shards = table.shard_values
            arm = sql.any_after(table, shards is not None, str(number))
            arms.append(f"SELECT {number} FROM ({arm})")  # noqa: S608 (a number, and our own text)
            params[f"start{number}"] = timestamp_text(starts[name])
            types[f"start{number}"] = sql.TIMESTAMP
            if shards is not None:
                params[f"shards{number}"] = [str(shard) for shard in shards]
                types[f"shards{number}"] = sql.shards_type(shards)
        return " UNION ALL ".join(arms), params, types

    def cut(self, windows: Mapping[str, Window], max_rows: int) -> int:
        """As ``Source.cut``. Rows of one commit timestamp are never parted: every cut is exact."""
        end = max(window.end for window in windows.values())
        if self._count_some(windows, max_rows + 1) <= max_rows:
            return end
        end = self._end_of(windows, max_rows)
        for _ in range(CUTS_MAX - 1):
            ends = {n: shortened(window, end) for n, window in windows.items()}
            shorter = self._shorter(ends, end, max_rows)
            if shorter == end:
                break
            end = shorter
        return end

    def _shorter(self, windows: Mapping[str, Window], end: int, max_rows: int) -> int:
        """An earlier end, where there are too many rows: some that are there at an earlier end have
        changed again since. The same end, where they are few enough or one commit has them all."""
        total = sum(self._captures[n].count(window) for n, window in windows.items())
        if total <= max_rows:
            return end
        begin = min(window.start for window in windows.values())
        end = self._end_of(windows, max_rows)
        share = begin + (end - begin) * max_rows // total
        return max(min(end, share), self._end_of(windows, 1))

    def _count_some(self, windows: Mapping[str, Window], limit: int) -> int:
        """How many rows there are; no more are counted once there are so many."""
        total = 0
        for name, window in windows.items():
            total += self._captures[name].count_some(window, limit - total)
            if total >= limit:
                break
        return total

    def _end_of(self, windows: Mapping[str, Window], max_rows: int) -> int:
        """The earliest timestamp at which one of the tables has so many rows."""
        return min(self._captures[n].end_of(window, max_rows) for n, window in windows.items())

    def read(self, windows: Mapping[str, Window]) -> Iterator[Rows]:
        """As ``Source.read``."""
        for name, window in windows.items():
            capture = self._captures[name]
            for part in capture.plan(window):
                for batch in capture.read(part):
                    yield Rows(capture.table, window, batch)


def parts(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """The names, so many at a time."""
    for first in range(0, len(names), size):
        yield names[first : first + size]


def shortened(window: Window, end: int) -> Window:
    """The part of a window up to ``end``."""
    return Window(window.start, max(window.start, min(window.end, end)))
