"""What statements cost, by minute: the source of SPANNER_SYS.QUERY_STATS_TOP_*.

Every execution is timed. The rows that it scans are counted for the first execution of a text in a
minute, and for every ``counted_each``-th after it: counting slows a scan down.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from emulator.engine.clock import wall_micros
from emulator.sql.functions.text import farm_fingerprint
from emulator.values.forms import timestamp_from_micros
from emulator.values.system_tables import VIEWS, Row

LOG = logging.getLogger("emulator.sql")
MINUTE_MICROS = 60 * 1_000_000
MINUTES_KEPT = 60
TEXTS_MAX = 1_000
TEXT_CHARACTERS_MAX = 64_000
COUNTED_EACH = 64
INTERVALS = {"MINUTE": 1, "10MINUTE": 10, "HOUR": 60}
"""How the names of tables end, and how many minutes one of their intervals has."""

TOP, TOTAL = "SPANNER_SYS.QUERY_STATS_TOP_", "SPANNER_SYS.QUERY_STATS_TOTAL_"
OPTIMIZER = "SPANNER_SYS.SUPPORTED_OPTIMIZER_VERSIONS"
SIZES = "SPANNER_SYS.TABLE_SIZES_STATS_1HOUR"
OPTIMIZER_RELEASES = (
    *("2019-06-18", "2020-03-01", "2021-08-01", "2022-03-01", "2022-07-15", "2023-09-11"),
    *("2024-05-22", "2024-10-28", "2026-07-21"),
)
"""The days on which the versions 1, 2, ... of the query optimizer were released."""
OPTIMIZER_DEFAULT = 8

Key = tuple[str, str, str, int]
"""Request tag, type of the query, beginning of the text, fingerprint of the whole text.

The fingerprint is 0 where the beginning is all: it is worked out when it is asked for.
"""


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

    def columns(self) -> dict[str, object]:
        """Counts and averages, by the names of the table's columns."""
        done, counted = max(self.executions, 1), max(self.counted, 1)
        return {
            "EXECUTION_COUNT": self.executions,
            "AVG_LATENCY_SECONDS": self.latency_seconds / done,
            "AVG_ROWS": self.rows / done,
            "AVG_ROWS_SCANNED": self.rows_scanned / counted,
            "AVG_CPU_SECONDS": self.cpu_seconds / done,
            "ALL_FAILED_EXECUTION_COUNT": self.failures,
            "ALL_FAILED_AVG_LATENCY_SECONDS": self.failed_seconds / max(self.failures, 1),
            "RUN_IN_RW_TRANSACTION_EXECUTION_COUNT": self.read_write,
        }


def log_execution(execution: Execution) -> None:
    """One line: the time, the rows, the text; what a terminal would obey is escaped."""
    text = " ".join(execution.text[:TEXT_CHARACTERS_MAX].split())
    shown = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
    outcome = "failed" if execution.failed else f"{execution.rows} rows"
    LOG.info("%.1f ms, %s: %s", execution.latency_seconds * 1_000, outcome, shown)


@dataclass(slots=True)
class QueryStats:
    """The statistics of one database; lost when the process ends. Thread-safe."""

    counted_each: int = COUNTED_EACH
    logged: bool = False
    """Whether each execution is logged, without the values of its parameters."""
    list_sizes: Callable[[], Iterable[dict[str, object]]] = tuple
    """The columns of the sizes of tables, as they are now."""
    _minutes: dict[int, dict[Key, Sums]] = field(default_factory=dict)
    _minute: int = 0
    _started: dict[int, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def should_count(self, text: str) -> bool:
        """Whether the next execution of a text should count the rows that it scans."""
        minute, key = current_minute(), hash(text)
        with self._lock:
            if minute != self._minute:
                self._minute, self._started = minute, {}
            if len(self._started) >= TEXTS_MAX and key not in self._started:
                return False
            number = self._started.get(key, 0)
            self._started[key] = number + 1
        return number % self.counted_each == 0

    def record(self, execution: Execution) -> None:
        """Adds an execution to the minute that runs."""
        if self.logged:
            log_execution(execution)
        minute = current_minute()
        kind = "PARTITIONED_QUERY" if execution.partitioned else "QUERY"
        text, fingerprint = execution.text, 0
        if len(text) > TEXT_CHARACTERS_MAX:
            text, fingerprint = text[:TEXT_CHARACTERS_MAX], farm_fingerprint(text)
        key = (execution.tag, kind, text, fingerprint)
        with self._lock:
            if minute not in self._minutes:
                self._minutes[minute] = {}
                for old in [m for m in self._minutes if m <= minute - MINUTES_KEPT]:
                    del self._minutes[old]
            texts = self._minutes[minute]
            if key in texts or len(texts) < TEXTS_MAX:
                texts.setdefault(key, Sums()).add(execution)

    def table(self, name: str) -> Iterator[Row]:
        """The rows of a table, newest interval first; the interval that runs is among them.

        What is not measured is NULL, and of other tables than those of queries and sizes nothing is
        known.
        """
        if name == SIZES:
            for row in self.list_sizes():
                yield tuple(row.get(column) for column, _ in VIEWS[name])
            return
        if name == OPTIMIZER:
            for version, day in enumerate(OPTIMIZER_RELEASES, start=1):
                yield version, day, int(version == OPTIMIZER_DEFAULT)
            return
        prefix = next((each for each in (TOP, TOTAL) if name.startswith(each)), None)
        if prefix is None:
            return
        rows = self._texts if prefix == TOP else self._totals
        for row in rows(INTERVALS[name.removeprefix(prefix)]):
            yield tuple(row.get(column) for column, _ in VIEWS[name])

    def _texts(self, minutes: int) -> Iterator[dict[str, object]]:
        """The columns for each text of each interval."""
        for end, texts in self._intervals(minutes):
            for (tag, kind, text, fingerprint), sums in texts.items():
                yield {
                    "INTERVAL_END": end,
                    "REQUEST_TAG": tag,
                    "QUERY_TYPE": kind,
                    "TEXT": text,
                    "TEXT_TRUNCATED": int(fingerprint != 0),
                    "TEXT_FINGERPRINT": fingerprint or farm_fingerprint(text),
                    **sums.columns(),
                }

    def _totals(self, minutes: int) -> Iterator[dict[str, object]]:
        """The columns for each interval."""
        for end, texts in self._intervals(minutes):
            total = Sums()
            for sums in texts.values():
                total.merge(sums)
            yield {"INTERVAL_END": end, **total.columns()}

    def _intervals(self, minutes: int) -> Iterator[tuple[str, dict[Key, Sums]]]:
        """Intervals of so many minutes with their end, newest first."""
        intervals: dict[int, dict[Key, Sums]] = {}
        with self._lock:
            for minute, texts in self._minutes.items():
                merged = intervals.setdefault(minute // minutes, {})
                for key, sums in texts.items():
                    merged.setdefault(key, Sums()).merge(sums)
        for number in sorted(intervals, reverse=True):
            yield timestamp_from_micros((number + 1) * minutes * MINUTE_MICROS), intervals[number]


def current_minute() -> int:
    """The minute that runs, counted from 1970."""
    return wall_micros() // MINUTE_MICROS
