"""How fast a backlog of changed rows gets from Spanner through Spark into Parquet.

``python -m benchmarks.backlog --rows 300000``: embedded server in a process of its own, a local
Spark with two cores. Spark's own start is not counted; its planning and writing are.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from benchmarks.demo.database import create
from benchmarks.demo.query import session
from benchmarks.demo.settings import DATABASE, INSTANCE, PROJECT, TABLE, Settings
from ddl.apply import apply_plan, read_schema
from ddl.options import WatchOptions
from ddl.plan import make_plan
from emulator.process import spawn
from watcher import register
from watcher.captures.poll import PollCapture
from watcher.database import DatabaseAddress
from watcher.shards import groups
from watcher.table import discover

ROWS_A_COMMIT = 10_000
LOAD = (
    "INSERT INTO Singers (SingerId, FirstName, LastName, BirthDate, Picture)"
    " SELECT k, CONCAT('First ', CAST(k AS STRING)), CONCAT('Last ', CAST(k AS STRING)),"
    " DATE_ADD(DATE '1950-01-01', INTERVAL MOD(k, 20000) DAY), b'picture'"
    " FROM UNNEST(GENERATE_ARRAY(@low, @high)) AS k"
)


@dataclass(frozen=True, slots=True)
class Result:
    """Times in seconds. ``read_only`` is the capture alone, in this process, without Spark."""

    rows: int
    spark_seconds: float
    spark_rows_per_second: int
    read_only_seconds: float
    read_only_rows_per_second: int


def load(database: Database, rows: int) -> None:
    """Inserts rows with a commit timestamp each, so that all of them are in the index."""
    for low in range(0, rows, ROWS_A_COMMIT):
        values = {"low": low, "high": min(low + ROWS_A_COMMIT, rows) - 1}

        def work(transaction: Transaction, values: dict[str, int] = values) -> None:
            types = dict.fromkeys(values, param_types.INT64)
            transaction.execute_update(LOAD, params=values, param_types=types)

        database.run_in_transaction(work)


def read_only(database: Database, shard_groups: int) -> tuple[int, float]:
    """Rows and seconds of the capture alone."""
    watched = discover(database, TABLE)
    address = DatabaseAddress.parse(database.name)
    capture = PollCapture(address, watched, groups(watched.shard_values, shard_groups))
    window, _ = capture.look(0)
    began = time.perf_counter()
    rows = sum(b.num_rows for part in capture.plan(window) for b in capture.read(part))
    return rows, time.perf_counter() - began


def through_spark(folder: Path, shard_groups: int) -> float:
    """Seconds of the one micro-batch that delivers everything, as Spark's progress tells it."""
    spark = session()
    try:
        register(spark)
        changes = (
            spark.readStream.format("spanner-changes")
            .options(project=PROJECT, instance=INSTANCE, database=DATABASE, table=TABLE)
            .options(startingTimestamp="earliest", shardGroups=shard_groups)
            .load()
        )
        query = (
            changes.writeStream.format("parquet")
            .option("path", str(folder / "parquet"))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        took = [float(p["durationMs"]["triggerExecution"]) for p in query.recentProgress]
        return sum(took) / 1000
    finally:
        spark.stop()


def run(rows: int, shard_groups: int) -> Result:
    """Loads, reads alone, then reads through Spark."""
    with tempfile.TemporaryDirectory() as name, spawn() as server:
        os.environ["SPANNER_EMULATOR_HOST"] = server.address
        settings = Settings(directory=Path(name), server=server.address, rows=0)
        database = create(settings, lambda _: None)
        apply_plan(database, make_plan(read_schema(database), [TABLE], WatchOptions()))
        load(database, rows)
        found, alone = read_only(database, shard_groups)
        seconds = through_spark(Path(name), shard_groups)
    if found != rows:
        raise SystemExit(f"the capture read {found} rows of {rows}")
    return Result(rows, seconds, round(rows / seconds), alone, round(rows / alone))


def main() -> None:
    """Reads the command line, prints JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backlog", description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--shard-groups", type=int, default=4)
    options = parser.parse_args()
    result = run(options.rows, options.shard_groups)
    sys.stdout.write(json.dumps(asdict(result)) + "\n")


if __name__ == "__main__":
    main()
