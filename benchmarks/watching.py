"""Does the scheduled watcher keep up, and what does a backlog cost it?

``python -m benchmarks.watching steady --rate 5000 --seconds 600``: a writer process at a fixed
rate, the watcher with clearing in this process, the embedded server in a third; latency is the
arrival in the callback minus the commit timestamp, of every delivered row. What arrived is compared
with the writer's log: every key's newest version, and nothing that was never written.

``python -m benchmarks.watching backlog --rows 100000 300000 1000000``: one watcher process each;
rows/s, peak memory, and rows scanned per delivered row as the server's PROFILE counts them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from google.cloud import spanner
from google.cloud.spanner_v1.database import Database

from benchmarks.backlog import load
from benchmarks.demo.database import create
from benchmarks.demo.settings import DATABASE, INSTANCE, PROJECT, TABLE, Settings
from ddl.apply import apply_plan, read_schema
from ddl.options import WatchOptions
from ddl.plan import make_plan
from emulator.process import spawn
from watcher import Watcher, sql
from watcher.captures import COMMIT_TIMESTAMP_COLUMN, Changed
from watcher.captures.poll import PollCapture
from watcher.database import DatabaseAddress
from watcher.stream import micros_of, moment_of
from watcher.table import discover
from watcher.window import Window

ROWS_A_COMMIT = 50
WRITER_THREADS = 4
KEYS = 100_000
ADDRESS = f"projects/{PROJECT}/instances/{INSTANCE}/databases/{DATABASE}"


@dataclass(frozen=True, slots=True)
class Steady:
    """Latencies in seconds; ``superseded`` were replaced by a newer version within their window."""

    asked_rate: float
    written_rate: float
    seconds: float
    written: int
    delivered: int
    superseded: int
    missing: int
    invented: int
    latency_p50: float
    latency_p99: float
    latency_max: float
    watcher_peak_mb: float


@dataclass(frozen=True, slots=True)
class Backlog:
    """What draining so many rows took."""

    rows: int
    seconds: float
    rows_per_second: int
    peak_mb: float
    scanned_per_row: float


def watchable(folder: Path, server: str) -> Database:
    """The demo's table, empty, watched by the strategy ``automatic``."""
    settings = Settings(directory=folder, server=server, rows=0)
    database = create(settings, lambda _: None)
    apply_plan(database, make_plan(read_schema(database), [TABLE], WatchOptions()))
    return database


def write(server: str, rate: float, seconds: float, log: str) -> None:
    """The writer process: upserts of ``ROWS_A_COMMIT`` rows, each commit at its own moment."""
    os.environ["SPANNER_EMULATOR_HOST"] = server
    client = spanner.Client(project=PROJECT, disable_builtin_metrics=True)
    database = client.instance(INSTANCE).database(DATABASE)
    interval = ROWS_A_COMMIT / rate
    began = time.monotonic()
    written: list[tuple[int, int]] = []

    def one(number: int) -> None:
        delay = began + number * interval - time.monotonic()
        if delay > 0:
            time.sleep(delay)
        first = number * ROWS_A_COMMIT % KEYS
        with database.batch() as batch:
            rows = [(first + i, "First", f"v{number}") for i in range(ROWS_A_COMMIT)]
            batch.insert_or_update(TABLE, ("SingerId", "FirstName", "LastName"), rows)
        if batch.committed is None:
            raise RuntimeError("a commit was answered without a timestamp")
        written.append((first, micros_of(batch.committed)))

    with ThreadPoolExecutor(WRITER_THREADS) as threads:
        for _ in threads.map(one, range(int(seconds / interval))):
            pass
    took = time.monotonic() - began
    Path(log).write_text(json.dumps({"seconds": took, "commits": written}))


class Arrivals:
    """What the callback got: keys, commit timestamps, and how long each row was under way."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.rows = 0

    def __call__(self, rows: Changed) -> None:
        """The callback."""
        stamps = rows.batch.column(COMMIT_TIMESTAMP_COLUMN).cast(pa.int64())
        late = pc.subtract(pa.scalar(time.time_ns() // 1000, pa.int64()), stamps)
        key = rows.batch.column("SingerId")
        self.batches.append(pa.record_batch([key, stamps, late], names=["key", "at", "late"]))
        self.rows += rows.batch.num_rows

    def table(self) -> pa.Table:
        """Everything so far."""
        return pa.Table.from_batches(self.batches)


def truth(commits: list[tuple[int, int]]) -> pa.Table:
    """Every version that was written: key and commit timestamp."""
    firsts = pa.array([first for first, _ in commits for _ in range(ROWS_A_COMMIT)], pa.int64())
    places = pa.array([i for _ in commits for i in range(ROWS_A_COMMIT)], pa.int64())
    stamps = pa.array([at for _, at in commits for _ in range(ROWS_A_COMMIT)], pa.int64())
    return pa.table({"key": pc.add(firsts, places), "at": stamps})


def steady(rate: float, seconds: float) -> Steady:
    """Runs writer and watcher side by side, then compares."""
    with tempfile.TemporaryDirectory() as name, spawn(Path(name) / "data") as server:
        os.environ["SPANNER_EMULATOR_HOST"] = server.address
        watchable(Path(name), server.address)
        arrivals = Arrivals()
        watcher = Watcher(
            database=ADDRESS,
            tables=[TABLE],
            consumer="steady",
            start="earliest",
            interval="500ms",
            clearing={"every": "5s"},
        )
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
    return compared(rate, content, arrivals.table())


def compared(rate: float, content: dict[str, object], delivered: pa.Table) -> Steady:
    """The figures, and whether everything arrived."""
    commits, seconds = content["commits"], content["seconds"]
    assert isinstance(commits, list)
    assert isinstance(seconds, float)
    written = truth([(first, at) for first, at in commits])
    newest = written.group_by("key").aggregate([("at", "max")]).rename_columns(["key", "at"])
    seen = delivered.select(["key", "at"])
    missing = newest.join(seen, ["key", "at"], join_type="left anti").num_rows
    invented = seen.join(written, ["key", "at"], join_type="left anti").num_rows
    late = pc.divide(delivered.column("late").cast(pa.float64()), 1_000_000.0)
    p50, p99 = pc.quantile(late, q=[0.5, 0.99]).to_pylist()
    return Steady(
        asked_rate=rate,
        written_rate=round(written.num_rows / seconds, 1),
        seconds=round(seconds, 1),
        written=written.num_rows,
        delivered=delivered.num_rows,
        superseded=written.num_rows - delivered.num_rows,
        missing=missing,
        invented=invented,
        latency_p50=round(p50, 3),
        latency_p99=round(p99, 3),
        latency_max=round(pc.max(late).as_py(), 3),
        watcher_peak_mb=peak_mb(),
    )


def peak_mb() -> float:
    """Peak memory of this process."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def drain(server: str, answer: str) -> None:
    """The process that drains a backlog, in windows of 100,000 rows."""
    os.environ["SPANNER_EMULATOR_HOST"] = server
    rows = [0]

    def count(each: Changed) -> None:
        rows[0] += each.batch.num_rows

    watcher = Watcher(database=ADDRESS, tables=[TABLE], consumer="backlog", start="earliest")
    watcher.on_batch(count)
    began = time.perf_counter()
    watcher.run_once()
    took = time.perf_counter() - began
    Path(answer).write_text(json.dumps({"rows": rows[0], "seconds": took, "peak": peak_mb()}))


def scanned(database: Database, until: int) -> int:
    """Rows scanned by the query of the whole window, as the server counts them."""
    table = discover(database, TABLE)
    capture = PollCapture(DatabaseAddress.parse(database.name), table, ())
    window = Window(0, until)
    shards = sql.shard_list(table, window, None)
    params = {
        "start": moment_of(0),
        "end": moment_of(until),
        "shards": list(table.shard_values or ()),
    }
    with database.snapshot() as snapshot:
        results = snapshot.execute_sql(
            sql.select_window(capture.table),
            params=params,
            param_types=sql.window_types(shards),
            query_mode=2,
        )
        for _ in results:
            pass
        return int(results.stats.query_stats["rows_scanned"])


def backlog(rows: int) -> Backlog:
    """Loads so many changed rows and drains them in a process of its own."""
    with tempfile.TemporaryDirectory() as name, spawn() as server:
        os.environ["SPANNER_EMULATOR_HOST"] = server.address
        database = watchable(Path(name), server.address)
        load(database, rows)
        answer = Path(name) / "answer.json"
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=drain, args=(server.address, str(answer)))
        process.start()
        process.join()
        found = json.loads(answer.read_text())
        table = discover(database, TABLE)
        end = PollCapture(DatabaseAddress.parse(database.name), table, ()).look(0)[0].end
        ratio = scanned(database, end) / rows
    if found["rows"] != rows:
        raise SystemExit(f"{found['rows']} rows of {rows} were delivered")
    seconds = found["seconds"]
    return Backlog(rows, round(seconds, 2), round(rows / seconds), found["peak"], round(ratio, 3))


def main() -> None:
    """Reads the command line, prints JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.watching", description=__doc__)
    parts = parser.add_subparsers(dest="what", required=True)
    steadily = parts.add_parser("steady")
    steadily.add_argument("--rate", type=float, default=5000)
    steadily.add_argument("--seconds", type=float, default=60)
    behind = parts.add_parser("backlog")
    behind.add_argument("--rows", type=int, nargs="+", default=[100_000, 300_000])
    options = parser.parse_args()
    if options.what == "steady":
        result = steady(options.rate, options.seconds)
        sys.stdout.write(json.dumps(asdict(result)) + "\n")
        if result.missing or result.invented:
            raise SystemExit(f"{result.missing} rows are missing, {result.invented} are invented")
        return
    for rows in options.rows:
        sys.stdout.write(json.dumps(asdict(backlog(rows))) + "\n")


if __name__ == "__main__":
    main()
