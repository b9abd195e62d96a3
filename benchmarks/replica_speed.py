"""How fast a replica is, and what it costs: initial load, merge, ``verify``, lag under writes.

    python -m benchmarks.replica_speed --rows 1000000 --engine spark --to parquet

Everything is done by the command ``spanner-watcher`` in processes of its own, whose CPU seconds are
counted: wall-clock figures of a machine that others use are no figures.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from deltalake import DeltaTable
from google.cloud.spanner_v1.database import Database
from numpy.typing import NDArray

from benchmarks.machine_load import CpuMeter
from benchmarks.processes import BenchProcess, UsageMeter
from benchmarks.query_costs import query_costs
from benchmarks.singers import commit, commit_keys, create_database, load
from emulator.process import ServerProcess, spawn
from watcher.spanner.timestamps import to_micros

TABLE = "Singers"
INDEX = "_keys"
CONTIGUOUS, RANDOM, SKEWED = KEYS = ("contiguous", "random", "skewed")
ROWS_A_COMMIT = 2_000
PROGRAM = "from watcher.cli import main; main()"
FIRST_CUT_SECONDS_MAX = 600.0
LAG_COMMITS_A_SECOND = 20


@dataclass(frozen=True, slots=True)
class StepCost:
    """A step. CPU seconds: ``client`` of the command with all that it started, ``server`` of the
    embedded Spanner; ``client_peak_mb`` is the most memory that the command had, with all that it
    started; ``others_share`` is how busy others kept the machine, from 0 to 1; None where the
    operating system does not say. ``scanned`` counts rows that queries of Spanner scanned."""

    step: str
    rows: int
    seconds: float
    rows_per_second: float
    client_cpu_seconds: float
    server_cpu_seconds: float
    client_peak_mb: float
    others_share: float | None
    scanned: int


@dataclass(frozen=True, slots=True)
class ChangeLatencies:
    """How long each change took from its commit until an exact cut was written that has it, in
    microseconds of Spanner's time; ``unread``: the changes that no cut has. ``seconds``: for how
    long was written."""

    micros: NDArray[np.int64]
    unread: int
    cuts: int
    seconds: float


class ReplicaBench:
    """One database, one replica."""

    def __init__(
        self,
        server: ServerProcess,
        folder: Path,
        to: str,
        engine: str,
        merge: str | None = None,
    ) -> None:
        self._server = server
        self._database: Database = create_database(server.address)
        self._folder = folder
        self._lake = folder / "lake"
        self._target = ("--to", f"{to}:{self._lake}")
        self._config = folder / "job.toml"
        self._config.write_text("[replica.spark]\n" if engine == "spark" else "")
        self._engine = engine
        self._merge = ("--merge", merge) if merge else ()
        self._rows = 0

    def load(self, rows: int) -> StepCost:
        """The initial load."""
        load(self._database, rows)
        self._rows = rows
        return self._run("initial load", rows, self._replicate("--once"))

    def merge(self, rows: int, keys: str = CONTIGUOUS) -> StepCost:
        """Rows that change, all in one window; ``keys``: which of them."""
        chosen = choose_keys(keys, self._rows, rows)
        for first in range(0, rows, ROWS_A_COMMIT):
            commit_keys(self._database, chosen[first : first + ROWS_A_COMMIT])
        return self._run("merge", rows, self._replicate("--once"))

    def verify(self, rows: int, *flags: str) -> StepCost:
        """The comparison of all rows, or what ``flags`` say. Raises RunError where they differ."""
        return self._run(
            " ".join(("verify", *flags)), rows, ["verify", *self._target, "--json", *flags]
        )

    def measure_lag(self, rate: int, seconds: float, rows: int) -> dict[str, float]:
        """The lag of cuts in seconds, while rows change at a rate a second."""
        process = self._start("lag", self._replicate("--interval", "1s"))
        try:
            before = len(self._read_cuts())
            self._await_cuts(process, before + 1)
            skipped = len(self._read_cuts())
            written = self._write(rate, seconds, rows)
            self._await_cuts(process, len(self._read_cuts()) + 1)
        finally:
            process.kill()
        lags = sorted(cut["lag_seconds"] for cut in self._read_cuts()[skipped:] if cut["merged"])
        return {
            "mutations": written,
            "mutations_per_second": round(written / seconds, 1),
            "cuts": len(lags),
            "lag_seconds_median": statistics.median(lags),
            "lag_seconds_max": lags[-1],
        }

    def measure_latency(
        self, rate: int, seconds: float, keys: str, flags: Sequence[str]
    ) -> ChangeLatencies:
        """From commits to cuts, while keys change at an even pace, as far as the machine allows."""
        process = self._start("lag", self._replicate(*flags))
        written: list[tuple[int, int]] = []
        try:
            self._await_cuts(process, len(self._read_cuts()) + 1)
            size, pause = max(rate // LAG_COMMITS_A_SECOND, 1), threading.Event()
            began = time.monotonic()
            while (passed := time.monotonic() - began) < seconds:
                if len(written) * size > passed * rate:
                    pause.wait(len(written) * size / rate - passed)
                chosen = choose_keys(keys, self._rows, size, len(written))
                written.append((commit_keys(self._database, chosen), size))
            passed = time.monotonic() - began
            last = written[-1][0]
            self._await(process, lambda: any(end >= last for end, _ in self._list_exact()))
        finally:
            process.kill()
        return measure_changes(written, self._list_exact(), passed)

    def count_compactions(self) -> int:
        """The commits of the copy that are compactions."""
        history = DeltaTable(str(self._lake / TABLE)).history()
        return sum(commit["operation"] == "OPTIMIZE" for commit in history)

    def _list_exact(self) -> list[tuple[int, float]]:
        """The ends of the exact cuts, in microseconds, and how many seconds later each was
        written."""
        return [
            (to_micros(datetime.fromisoformat(cut["cut"])), cut["lag_seconds"])
            for cut in self._read_cuts()
            if cut["exact"]
        ]

    def count_bytes(self) -> int:
        """The size of the files of the copy and its log, old versions included."""
        return measure_files(self._lake / TABLE)

    def _replicate(self, *flags: str) -> list[str]:
        given = ("-c", str(self._config), "-d", address_of(self._database), "-t", TABLE, "--json")
        return [
            "replicate",
            *given,
            *self._target,
            "--engine",
            self._engine,
            *self._merge,
            *flags,
        ]

    def _start(self, name: str, arguments: Sequence[str]) -> BenchProcess:
        log = self._folder / f"{name.replace(' ', '-')}.log"
        return BenchProcess.start(name, log, [sys.executable, "-c", PROGRAM, *arguments], {})

    def _run(self, step: str, rows: int, arguments: Sequence[str]) -> StepCost:
        before = query_costs(self._database)
        process = self._start(step, arguments)
        meter = UsageMeter({"client": process.process.pid, "server": self._server.pid})
        meter.start()
        began = time.perf_counter()
        with CpuMeter() as machine:
            process.process.wait()
        seconds = time.perf_counter() - began
        used = meter.stop()
        process.check()
        return StepCost(
            step,
            rows,
            round(seconds, 2),
            round(rows / seconds, 1),
            used["client"].cpu_seconds,
            used["server"].cpu_seconds,
            used["client"].peak_mb,
            round(machine.use.others_share, 3) if machine.use is not None else None,
            query_costs(self._database).subtract(before).rows_scanned,
        )

    def _write(self, rate: int, seconds: float, rows: int) -> int:
        """Changes rows at an even pace, as far as the machine allows. Returns how many."""
        size, written, began = max(rate // LAG_COMMITS_A_SECOND, 1), 0, time.monotonic()
        pause = threading.Event()
        while (passed := time.monotonic() - began) < seconds:
            if written > passed * rate:
                pause.wait(written / rate - passed)
            commit(self._database, written % max(rows - size, 1), size)
            written += size
        return written

    def _await_cuts(self, process: BenchProcess, count: int) -> None:
        self._await(process, lambda: len(self._read_cuts()) >= count)

    def _await(self, process: BenchProcess, is_done: Callable[[], bool]) -> None:
        ends_at = time.monotonic() + FIRST_CUT_SECONDS_MAX
        while not is_done():
            process.check()
            if time.monotonic() > ends_at:
                raise TimeoutError(f"no cut within {FIRST_CUT_SECONDS_MAX} s: see {process.log}")
            time.sleep(0.1)

    def _read_cuts(self) -> list[dict[str, Any]]:
        log = self._folder / "lag.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [json.loads(line) for line in lines if line.startswith('{"cut"')]


def measure_changes(
    written: Sequence[tuple[int, int]], cuts: Sequence[tuple[int, float]], seconds: float
) -> ChangeLatencies:
    """What commits, at timestamps and of so many changes each, have waited for cuts: ends, and how
    many seconds later each was written."""
    ends = np.array([end for end, _ in cuts], np.int64)
    ready = ends + np.array([round(lag * 1_000_000) for _, lag in cuts], np.int64)
    stamps = np.repeat(*np.array(written, np.int64).T)
    following = np.searchsorted(ends, stamps, "left")
    there = following < len(ends)
    waited = ready[following[there]] - stamps[there]
    return ChangeLatencies(waited, int(np.sum(~there)), len(cuts), seconds)


def choose_keys(kind: str, rows: int, count: int, seed: int = 1) -> Sequence[int]:
    """Which keys of ``rows`` change: the first ones, any, or ``skewed``: half of them among a
    hundredth of the rows."""
    if kind == CONTIGUOUS:
        return range(count)
    randomness = random.Random(seed)
    hot = max(rows // 100, 1) if kind == SKEWED else rows
    chosen = set(randomness.sample(range(hot), min(count // 2, hot)))
    while len(chosen) < count:
        chosen.add(randomness.randrange(rows))
    return randomness.sample(sorted(chosen), count)


def measure_files(folder: Path) -> int:
    """The bytes of all files but those of the index of keys, which is a cache."""
    files = (path for path in folder.rglob("*") if INDEX not in path.parts and path.is_file())
    return sum(path.stat().st_size for path in files)


def address_of(database: Database) -> str:
    """The address of a database."""
    return f"spanner://{database.name}"


def start_server(folder: Path) -> ServerProcess:
    """The embedded Spanner, which counts the rows that it scans."""
    return spawn(folder / "spanner", count_scans=True)


def main() -> None:
    """Reads the command line, prints a line a step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--merged", type=int, help="rows that change before the merge; all")
    parser.add_argument("--to", default="delta", choices=("delta", "iceberg", "parquet"))
    parser.add_argument("--engine", default="spark", choices=("spark", "delta-rs"))
    parser.add_argument("--keys", default=CONTIGUOUS, choices=KEYS, help="which rows change")
    parser.add_argument("--merge", choices=("merge-on-read", "copy-on-write"))
    parser.add_argument("--rate", type=int, default=1_000, help="mutations a second, for the lag")
    parser.add_argument("--lag-seconds", type=float, default=60.0, help="0: no lag is measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, start_server(Path(folder)) as server:
        bench = ReplicaBench(server, Path(folder), options.to, options.engine, options.merge)
        print(bench.load(options.rows), flush=True)
        before = bench.count_bytes()
        print(bench.merge(options.merged or options.rows, options.keys), flush=True)
        print(f"bytes that the merge has written: {bench.count_bytes() - before:,}", flush=True)
        print(bench.verify(options.rows), flush=True)
        print(f"bytes of the copy's files: {bench.count_bytes():,}", flush=True)
        if options.lag_seconds:
            print(bench.measure_lag(options.rate, options.lag_seconds, options.rows), flush=True)


if __name__ == "__main__":
    main()
