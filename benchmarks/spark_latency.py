"""From a commit to Spark's sink: how long, at a steady rate of mutations.

``python -m benchmarks.spark_latency --rate 3000 --seconds 60 [--trigger 1]``: embedded server,
writer and a local Spark on this machine, each in a process of its own. The sink is
``foreachBatch``: it takes the time when it has the rows of a batch, which are read, decoded and
through Spark then. Trigger 0 is back to back. The first batches, in which Spark warms up, are not
counted.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from multiprocessing.synchronize import Event
from pathlib import Path

import pyarrow.compute as pc
from pyspark.sql import DataFrame

from benchmarks.demo.database import create
from benchmarks.demo.query import session
from benchmarks.demo.settings import DATABASE, INSTANCE, PROJECT, TABLE, Settings
from ddl.apply import apply_plan, read_schema
from ddl.options import WatchOptions
from ddl.plan import make_plan
from emulator.process import spawn
from watcher import register
from watcher.database import DatabaseAddress, connect

COMMIT_ROWS = 50
KEYS = 100_000
COLUMNS = ("SingerId", "FirstName", "LastName")


@dataclass(frozen=True, slots=True)
class Result:
    """Latencies in seconds, over rows, from the commit timestamp to the sink."""

    mutations_per_second: float
    trigger_seconds: float
    batches: int
    rows: int
    latency_seconds_p50: float
    latency_seconds_p99: float
    latency_seconds_max: float
    batch_seconds_p50: float


def write(server: str, rate: int, done: Event, written: multiprocessing.Queue[float]) -> None:
    """Commits at a steady rate until told to stop; tells the rate that was reached."""
    os.environ["SPANNER_EMULATOR_HOST"] = server
    database = connect(DatabaseAddress(PROJECT, INSTANCE, DATABASE))
    began = time.monotonic()
    count = 0
    while not done.is_set():
        due = began + count / rate
        if (early := due - time.monotonic()) > 0:
            done.wait(early)
            continue
        with database.batch() as batch:
            rows = [
                (n % KEYS, f"First {n}", f"Last {n}") for n in range(count, count + COMMIT_ROWS)
            ]
            batch.insert_or_update(TABLE, COLUMNS, rows)
        count += COMMIT_ROWS
    written.put(count / (time.monotonic() - began))


class Sink:
    """Takes the time of every row."""

    def __init__(self) -> None:
        self.latencies: list[float] = []
        self.batches: list[float] = []
        self.counting = False
        self._before = time.monotonic()

    def take(self, batch: DataFrame, _number: int) -> None:
        """One micro-batch."""
        stamps = batch.select("_commit_timestamp").toArrow().column(0)
        now = time.time()
        if self.counting and len(stamps):
            micros = pc.cast(stamps, "int64").to_numpy()
            self.latencies += (now - micros / 1e6).tolist()
            self.batches.append(time.monotonic() - self._before)
        self._before = time.monotonic()


def measure(folder: Path, warm_up: float, seconds: float, trigger: float) -> Sink:
    """Runs a query for some time."""
    spark = session()
    sink = Sink()
    try:
        register(spark)
        changes = (
            spark.readStream.format("spanner-changes")
            .options(project=PROJECT, instance=INSTANCE, database=DATABASE, table=TABLE)
            .load()
        )
        query = (
            changes.writeStream.foreachBatch(sink.take)
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(processingTime=f"{trigger} seconds")
            .start()
        )
        query.awaitTermination(round(warm_up))
        sink.counting = True
        query.awaitTermination(round(seconds))
        sink.counting = False
        query.stop()
    finally:
        spark.stop()
    return sink


def run(rate: int, warm_up: float, seconds: float, trigger: float) -> Result:
    """Server, writer and Spark side by side."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name, spawn() as server:
        os.environ["SPANNER_EMULATOR_HOST"] = server.address
        settings = Settings(directory=Path(name), server=server.address, rows=0)
        database = create(settings, lambda _: None)
        apply_plan(database, make_plan(read_schema(database), [TABLE], WatchOptions()))
        done, written = context.Event(), context.Queue()
        writer = context.Process(target=write, args=(server.address, rate, done, written))
        writer.start()
        try:
            sink = measure(Path(name), warm_up, seconds, trigger)
        finally:
            done.set()
        reached = float(written.get())
        writer.join()
    latencies, batches = sorted(sink.latencies), sorted(sink.batches)
    if not latencies:
        raise SystemExit("no row arrived while it was measured")
    return Result(
        mutations_per_second=round(reached, 1),
        trigger_seconds=trigger,
        batches=len(batches),
        rows=len(latencies),
        latency_seconds_p50=round(latencies[len(latencies) // 2], 3),
        latency_seconds_p99=round(latencies[len(latencies) * 99 // 100], 3),
        latency_seconds_max=round(latencies[-1], 3),
        batch_seconds_p50=round(batches[len(batches) // 2], 3),
    )


def main() -> None:
    """Reads the command line, prints JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_latency", description=__doc__)
    parser.add_argument("--rate", type=int, default=3_000, help="mutations a second")
    parser.add_argument("--warm-up", type=float, default=40)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--trigger", type=float, default=0, help="seconds; 0 is back to back")
    options = parser.parse_args()
    result = run(options.rate, options.warm_up, options.seconds, options.trigger)
    sys.stdout.write(json.dumps(asdict(result)) + "\n")


if __name__ == "__main__":
    main()
