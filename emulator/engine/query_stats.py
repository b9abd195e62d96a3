"""What statements cost, by minute: the source of SPANNER_SYS.QUERY_STATS_TOP_*.

Every execution is timed. The rows that it scans are counted for the first execution of a text in a
minute, and for every ``counted_each``-th after it: counting slows a scan down.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from emulator.sql.functions.text import farm_fingerprint
from emulator.values.forms import timestamp_from_micros

MINUTE_MICROS = 60 * 1_000_000
MINUTES_KEPT = 60
TEXTS_MAX = 1_000
TEXT_CHARACTERS_MAX = 64_000
COUNTED_EACH = 64
INTERVALS = {
    "SPANNER_SYS.QUERY_STATS_TOP_MINUTE": 1,
    "SPANNER_SYS.QUERY_STATS_TOP_10MINUTE": 10,
    "SPANNER_SYS.QUERY_STATS_TOP_HOUR": 60,
}
"""The tables, and how many minutes one of their intervals has."""

Key = tuple[str, str, str]
"""Request tag, type of the query, text."""


class Execution(NamedTuple):
    """One execution; a tuple, because one is made for every statement.

    ``rows_scanned`` is None where the rows were not counted.
    """

    text: str
    tag: str = ""
    partitioned: bool = False
    latency_seconds: float = 0.0
    cpu_seconds: float = 0.0
    rows: int = 0
    rows_scanned: int | None = None
    failed: bool = False
    read_write: bool = False


@dataclass(slots=True)
class Sums:
    """The executions of one text in one interval."""

    executions: int = 0
    latency_seconds: float = 0.0
    cpu_seconds: float = 0.0
    rows: int = 0
    counted: int = 0
    rows_scanned: int = 0
    failures: int = 0
    failed_seconds: float = 0.0
    read_write: int = 0

    def add(self, execution: Execution) -> None:
        """Counts an execution; failed ones are counted separately."""
        if execution.failed:
            self.failures += 1
            self.failed_seconds += execution.latency_seconds
            return
        self.executions += 1
        self.latency_seconds += execution.latency_seconds
        self.cpu_seconds += execution.cpu_seconds
        self.rows += execution.rows
        self.read_write += execution.read_write
        if execution.rows_scanned is not None:
            self.counted += 1
            self.rows_scanned += execution.rows_scanned

    def merge(self, other: Sums) -> None:
        """Adds the sums of another interval."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def row(self) -> tuple[object, ...]:
        """Counts and averages, in the order of the table's columns."""
        done, counted = max(self.executions, 1), max(self.counted, 1)
        return (
            self.executions,
            self.latency_seconds / done,
            self.rows / done,
            self.rows_scanned / counted,
            self.cpu_seconds / done,
            self.failures,
            self.failed_seconds / max(self.failures, 1),
            self.read_write,
        )


@dataclass(slots=True)
class QueryStats:
    """The statistics of one database; lost when the process ends. Thread-safe."""

    counted_each: int = COUNTED_EACH
    _minutes: dict[int, dict[Key, Sums]] = field(default_factory=dict)
    _minute: int = 0
    _started: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def should_count(self, text: str) -> bool:
        """Whether the next execution of a text should count the rows that it scans."""
        minute = current_minute()
        with self._lock:
            if minute != self._minute:
                self._minute, self._started = minute, {}
            if len(self._started) >= TEXTS_MAX and text not in self._started:
                return False
            number = self._started.get(text, 0)
            self._started[text] = number + 1
        return number % self.counted_each == 0

    def record(self, execution: Execution) -> None:
        """Adds an execution to the minute that runs."""
        minute = current_minute()
        kind = "PARTITIONED_QUERY" if execution.partitioned else "QUERY"
        key = (execution.tag, kind, execution.text)
        with self._lock:
            if minute not in self._minutes:
                self._minutes[minute] = {}
                for old in [m for m in self._minutes if m <= minute - MINUTES_KEPT]:
                    del self._minutes[old]
            texts = self._minutes[minute]
            if key in texts or len(texts) < TEXTS_MAX:
                texts.setdefault(key, Sums()).add(execution)

    def table(self, name: str) -> Iterator[tuple[object, ...]]:
        """The rows of a table, newest interval first; the interval that runs is among them."""
        minutes = INTERVALS[name]
        intervals: dict[int, dict[Key, Sums]] = {}
        with self._lock:
            for minute, texts in self._minutes.items():
                merged = intervals.setdefault(minute // minutes, {})
                for key, sums in texts.items():
                    merged.setdefault(key, Sums()).merge(sums)
        for number in sorted(intervals, reverse=True):
            end = timestamp_from_micros((number + 1) * minutes * MINUTE_MICROS)
            for (tag, kind, text), sums in intervals[number].items():
                shown = text[:TEXT_CHARACTERS_MAX]
                yield (
                    end,
                    tag,
                    kind,
                    shown,
                    int(shown != text),
                    farm_fingerprint(text),
                    *sums.row(),
                )


def current_minute() -> int:
    """The minute that runs, counted from 1970."""
    return time.time_ns() // 1_000 // MINUTE_MICROS
