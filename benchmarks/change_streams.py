"""Polling, windows of a change stream, and queries that stay open, on the same load.

``python -m benchmarks.change_streams latency --rate 1000 --seconds 60``: a writer process at a
fixed rate; latency is the arrival in the callback minus the commit timestamp, of every change. What
arrived is compared with the writer's log: polling the newest version of each key, change streams
every version, and nothing that was never written.

``python -m benchmarks.change_streams backlog --rows 500000``: changes/s and peak memory of one
watcher process.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from google.cloud.spanner_v1.database import Database

from benchmarks.backlog import load
from benchmarks.demo.settings import TABLE
from benchmarks.watching import ADDRESS, peak_mb, truth, watchable, write
from emulator.process import spawn
from watcher import Watcher
from watcher.captures import COMMIT_TIMESTAMP_COLUMN, Changed, StreamRows
from watcher.watch_config import watch_config

STREAM = (
    f"CREATE CHANGE STREAM Changes FOR {TABLE} OPTIONS (value_capture_type ="
    " 'NEW_ROW_AND_OLD_VALUES', allow_txn_exclusion = true)"
)
OPTIONS = {"database": ADDRESS, "tables": [TABLE], "consumer": "c", "interval": "500ms"}
CAPTURES: dict[str, dict[str, object]] = {
    "poll": {"start": "earliest", "clearing": {"every": "5s"}},
    "windows": {"capture": "change-stream"},
    "push": {"capture": "change-stream", "stream": {"push": True}},
}


@dataclass(frozen=True, slots=True)
class Latency:
    """Latencies in seconds. ``missing`` and ``invented`` must be 0."""

    capture: str
    asked_rate: float
    written_rate: float
    written: int
    delivered: int
    missing: int
    invented: int
    latency_p50: float
    latency_p99: float
    latency_max: float


@dataclass(frozen=True, slots=True)
class Backlog:
    """What draining so many changes took."""

    changes: int
    seconds: float
    changes_per_second: int
    peak_mb: float


class Arrivals:
    """Keys, commit timestamps, and how long each change was under way."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []

    def __call__(self, rows: Changed) -> None:
        """The callback."""
        if isinstance(rows, StreamRows):
            texts = pc.extract_regex(rows.batch.column("key"), r'"(?P<key>\d+)"')
            key = pc.struct_field(texts, "key").cast(pa.int64())
            stamps = rows.batch.column("commit_timestamp").cast(pa.int64())
        else:
            key = rows.batch.column("SingerId")
            stamps = rows.batch.column(COMMIT_TIMESTAMP_COLUMN).cast(pa.int64())
        late = pc.subtract(pa.scalar(time.time_ns() // 1000, pa.int64()), stamps)
        self._batches.append(pa.record_batch([key, stamps, late], names=["key", "at", "late"]))

    def table(self) -> pa.Table:
        """Everything so far."""
        return pa.Table.from_batches(self._batches)


def prepared(folder: Path, server: str) -> Database:
    """The demo's table, empty, to be polled and with a change stream."""
    database = watchable(folder, server)
    database.update_ddl([STREAM]).result(60)
    return database


def latency(capture: str, rate: float, seconds: float) -> Latency:
    """Runs writer and watcher side by side, then compares."""
    with tempfile.TemporaryDirectory() as name, spawn(Path(name) / "data") as server:
        os.environ["SPANNER_EMULATOR_HOST"] = server.address
        prepared(Path(name), server.address)
        arrivals = Arrivals()
        config = watch_config(OPTIONS | CAPTURES[capture])
        registered = Watcher(config)
        registered.on_batch(arrivals)
        registered.run_once()
        watcher = Watcher(config)
        watcher.on_batch(arrivals)
        thread = threading.Thread(target=watcher.run)
        thread.start()
        log = Path(name) / "log.json"
        context = multiprocessing.get_context("spawn")
        writer = context.Process(target=write, args=(server.address, rate, seconds, str(log)))
        writer.start()
        writer.join()
        watcher.drain()
        thread.join()
        content = json.loads(log.read_text())
    return compared(capture, rate, content, arrivals.table())


def compared(capture: str, rate: float, content: dict[str, object], delivered: pa.Table) -> Latency:
    """The figures, and whether everything arrived."""
    commits, seconds = content["commits"], content["seconds"]
    assert isinstance(commits, list)
    assert isinstance(seconds, float)
    written = truth([(first, at) for first, at in commits])
    wanted = written
    if capture == "poll":
        newest = written.group_by("key").aggregate([("at", "max")])
        wanted = newest.rename_columns(["key", "at"])
    seen = delivered.select(["key", "at"])
    late = pc.divide(delivered.column("late").cast(pa.float64()), 1_000_000.0)
    p50, p99 = pc.quantile(late, q=[0.5, 0.99]).to_pylist()
    return Latency(
        capture=capture,
        asked_rate=rate,
        written_rate=round(written.num_rows / seconds, 1),
        written=written.num_rows,
        delivered=delivered.num_rows,
        missing=wanted.join(seen, ["key", "at"], join_type="left anti").num_rows,
        invented=seen.join(written, ["key", "at"], join_type="left anti").num_rows,
        latency_p50=round(p50, 3),
        latency_p99=round(p99, 3),
        latency_max=round(pc.max(late).as_py(), 3),
    )


def drain(server: str, answer: str) -> None:
    """The process that drains a backlog."""
    os.environ["SPANNER_EMULATOR_HOST"] = server
    changes = [0]

    def count(each: Changed) -> None:
        changes[0] += each.batch.num_rows

    watcher = Watcher(database=ADDRESS, tables=[TABLE], consumer="backlog", capture="change-stream")
    watcher.on_batch(count)
    began = time.perf_counter()
    watcher.run_once()
    took = time.perf_counter() - began
    Path(answer).write_text(json.dumps({"changes": changes[0], "seconds": took, "peak": peak_mb()}))


def backlog(rows: int) -> Backlog:
    """Registers a consumer, inserts so many rows, and drains them in a process of its own."""
    with tempfile.TemporaryDirectory() as name, spawn() as server:
        os.environ["SPANNER_EMULATOR_HOST"] = server.address
        database = prepared(Path(name), server.address)
        run(drain, server.address, str(Path(name) / "first.json"))
        load(database, rows)
        answer = Path(name) / "answer.json"
        run(drain, server.address, str(answer))
        found = json.loads(answer.read_text())
    if found["changes"] != rows:
        raise SystemExit(f"{found['changes']} changes of {rows} were delivered")
    seconds = found["seconds"]
    return Backlog(rows, round(seconds, 2), round(rows / seconds), found["peak"])


def run(work: Callable[[str, str], None], server: str, answer: str) -> None:
    """A function in a process of its own."""
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=work, args=(server, answer))
    process.start()
    process.join()


def main() -> None:
    """Reads the command line, prints JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.change_streams", description=__doc__
    )
    parts = parser.add_subparsers(dest="what", required=True)
    late = parts.add_parser("latency")
    late.add_argument("--rate", type=float, default=1000)
    late.add_argument("--seconds", type=float, default=60)
    late.add_argument("--capture", choices=list(CAPTURES), nargs="+", default=list(CAPTURES))
    behind = parts.add_parser("backlog")
    behind.add_argument("--rows", type=int, nargs="+", default=[500_000])
    options = parser.parse_args()
    if options.what == "backlog":
        for rows in options.rows:
            show(backlog(rows))
        return
    for capture in options.capture:
        result = latency(capture, options.rate, options.seconds)
        show(result)
        if result.missing or result.invented:
            raise SystemExit(f"{result.missing} are missing, {result.invented} are invented")


def show(result: Latency | Backlog) -> None:
    """A result as a line of JSON."""
    sys.stdout.write(json.dumps(asdict(result)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
