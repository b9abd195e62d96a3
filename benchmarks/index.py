"""The index of a run: how many rows are in it over time, and what a poll scans of it."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from google.cloud.spanner_v1 import ExecuteSqlRequest
from google.cloud.spanner_v1.database import Database

from benchmarks.load.records import WINDOWS, read
from benchmarks.run_settings import Run
from watcher.captures import statements
from watcher.model.window import Window
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect
from watcher.spanner.requests import build_param_types
from watcher.spanner.timestamps import to_datetime
from watcher.tables.discovery import discover_table
from watcher.tables.values import WatchedTable

EVERY_SECONDS = 1.0
SHARE_OF_TIME = 0.05
"""The counting may take this share of the time at most: it is a load of its own."""
PROFILED_WINDOWS = 5
PROFILE = ExecuteSqlRequest.QueryMode.PROFILE
TAG = "bench"
"""Marks what the benchmark itself asks."""
TAGGED = {"request_tag": TAG}


@dataclass(frozen=True, slots=True)
class ScanTotals:
    """What the server tells of polls (PROFILE): sums over some windows; None where it does not."""

    windows: int
    rows_returned: int
    rows_scanned: int
    elapsed_seconds: float | None
    cpu_seconds: float | None

    @property
    def scanned_per_row(self) -> float | None:
        """Rows scanned per row delivered; None when nothing was delivered."""
        return round(self.rows_scanned / self.rows_returned, 3) if self.rows_returned else None

    @property
    def milliseconds_per_window(self) -> tuple[float | None, float | None]:
        """Elapsed and CPU time of the server for the query of a window."""
        return self._milliseconds(self.elapsed_seconds), self._milliseconds(self.cpu_seconds)

    def _milliseconds(self, seconds: float | None) -> float | None:
        return round(seconds * 1_000 / self.windows, 2) if seconds is not None else None


@dataclass(frozen=True, slots=True)
class WindowCost:
    """What PROFILE tells of the query of a window."""

    rows_returned: int
    rows_scanned: int
    elapsed_seconds: float | None
    cpu_seconds: float | None


def total_scans(costs: list[WindowCost]) -> ScanTotals:
    """The sums."""
    return ScanTotals(
        windows=len(costs),
        rows_returned=sum(each.rows_returned for each in costs),
        rows_scanned=sum(each.rows_scanned for each in costs),
        elapsed_seconds=sum_known([each.elapsed_seconds for each in costs]),
        cpu_seconds=sum_known([each.cpu_seconds for each in costs]),
    )


class NoIndex:
    """The meter of a run that has no index."""

    def start(self) -> None:
        """There is nothing to look at."""

    def stop(self) -> tuple[tuple[tuple[float, int], ...], ScanTotals | None]:
        """Nothing was found."""
        return (), None


class IndexMeter:
    """Counts the rows in the index of the first table, and has the server tell what some of the
    windows cost that were just delivered, from ``start`` until ``stop``.

    Just delivered, because later on, past a clearing, the embedded server answers from its history
    of old versions, at another cost.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._database = connect(DatabaseAddress.parse(run.database))
        self._table = discover_table(self._database, run.tables[0], run.preparation.spec)
        self._sizes: list[tuple[float, int]] = []
        self._profiles: dict[Window, WindowCost] = {}
        self._error: Exception | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def start(self) -> None:
        """Begins."""
        self._began = time.monotonic()
        self._thread.start()

    def stop(self) -> tuple[tuple[tuple[float, int], ...], ScanTotals | None]:
        """Ends: (seconds since the start, rows) and costs. Raises what a query raised."""
        self._stop.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        if not self._profiles and not self._run.consumer.clear_every:
            # Those at the end may be empty: nothing was written any more.
            self._profile(PROFILED_WINDOWS)
        costs = list(self._profiles.values())
        return tuple(self._sizes), total_scans(costs) if costs else None

    def _loop(self) -> None:
        took = 0.0
        while not self._stop.wait(max(EVERY_SECONDS, took / SHARE_OF_TIME)):
            began = time.monotonic()
            try:
                self._count(began)
                if len(self._profiles) < PROFILED_WINDOWS:
                    self._profile()
            except Exception as error:  # noqa: BLE001 (raised by ``stop``, in the caller's thread)
                self._error = error
                return
            took = time.monotonic() - began

    def _count(self, at: float) -> None:
        with self._database.snapshot() as snapshot:
            results = snapshot.execute_sql(
                statements.count_index(self._table).sql, request_options=TAGGED
            )
            self._sizes.append((round(at - self._began, 2), int(next(iter(results))[0])))

    def _profile(self, count: int = 1) -> None:
        """The newest windows of the first table."""
        windows = read(self._run.all_records("windows"), WINDOWS)
        mine = windows[windows["table"] == 0]
        for start, end in zip(mine["start"][-count:], mine["end"][-count:], strict=True):
            window = Window(int(start), int(end))
            self._profiles[window] = profile_window(self._database, self._table, window)


def sum_known(parts: list[float | None]) -> float | None:
    """The sum, unless one of them is not known."""
    known = [part for part in parts if part is not None]
    return round(sum(known), 4) if len(known) == len(parts) else None


def profile_window(database: Database, table: WatchedTable, window: Window) -> WindowCost:
    """Reads a window again, at its own end, with statistics."""
    statement = statements.select_window(table, window)
    with database.snapshot(read_timestamp=to_datetime(window.end)) as snapshot:
        types = build_param_types(statement)
        values = {name: (value, types[name]) for name, value in statement.params.items()}
        results = snapshot.execute_sql(
            *table.sql.bind(statement.sql, values),
            query_mode=PROFILE,
            request_options=TAGGED,
        )
        rows = sum(1 for _ in results)
        stats = dict(results.stats.query_stats)
    return WindowCost(
        rows_returned=rows,
        rows_scanned=int(str(stats["rows_scanned"])),
        elapsed_seconds=parse_seconds(stats.get("elapsed_time")),
        cpu_seconds=parse_seconds(stats.get("cpu_time")),
    )


def parse_seconds(text: object) -> float | None:
    """A duration as Spanner's query statistics write it: '1.28 msecs'. None where there is none."""
    if text is None:
        return None
    number, _, unit = str(text).partition(" ")
    factors = {"usecs": 1e-6, "msecs": 1e-3, "secs": 1.0, "mins": 60.0, "hours": 3_600.0}
    if unit not in factors:
        raise ValueError(f"unknown duration '{text}' in Spanner's statistics")
    return float(number) * factors[unit]
