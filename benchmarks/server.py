"""The embedded server's own figures: commits, streamed rows, time to ready.

``python -m benchmarks.server [--seconds 5] [--rows 200000]``. Client and server are two processes
on the same machine, with google-cloud-spanner unmodified.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from google.cloud import spanner
from google.cloud.spanner_v1.database import Database

from emulator.process import spawn

DDL = (
    "CREATE TABLE Singers (SingerId INT64 NOT NULL, FirstName STRING(200), LastName STRING(200), "
    "BirthDate DATE, Picture BYTES(MAX), LastModified TIMESTAMP "
    "OPTIONS (allow_commit_timestamp=true), ShardId INT64 AS (MOD(FARM_FINGERPRINT("
    "COALESCE(FirstName || ' ', '') || LastName), 19)) STORED) PRIMARY KEY (SingerId)",
    "CREATE NULL_FILTERED INDEX ByChange ON Singers(ShardId, LastModified)",
)
COLUMNS = ("SingerId", "FirstName", "LastName", "BirthDate", "LastModified")
QUERY = (
    "SELECT SingerId, FirstName, LastName, BirthDate, Picture, LastModified, ShardId FROM Singers"
)
UPSERTS_IN_COMMIT = 5


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured."""

    ready_seconds: float
    commits_per_second: float
    commit_p50_ms: float
    commit_p99_ms: float
    streamed_rows_per_second: float
    streamed_rows: int
    threads: int
    data_dir: bool


def connect(address: str) -> Database:
    """A new database on the server."""
    os.environ["SPANNER_EMULATOR_HOST"] = address
    client = spanner.Client(project="benchmark", disable_builtin_metrics=True)
    config = f"{client.project_name}/instanceConfigs/emulator-config"
    instance = client.instance("benchmark", configuration_name=config, node_count=1)
    instance.create().result(30)
    database: Database = instance.database("server", ddl_statements=DDL)
    database.create().result(30)
    return database


def commit(database: Database, first: int, count: int) -> None:
    """One commit of upserts."""
    values = [
        (first + n, f"First{n}", f"Last{first + n}", "1990-01-01", spanner.COMMIT_TIMESTAMP)
        for n in range(count)
    ]
    with database.batch() as batch:
        batch.insert_or_update("Singers", COLUMNS, values)


def in_threads(threads: int, seconds: float, work: Callable[[int], None]) -> list[float]:
    """Runs work in a loop on some threads; how long each run took, in seconds."""
    taken: list[list[float]] = [[] for _ in range(threads)]
    ends_at = time.monotonic() + seconds

    def loop(number: int) -> None:
        turn = 0
        while time.monotonic() < ends_at:
            started = time.perf_counter()
            work(turn * threads + number)
            taken[number].append(time.perf_counter() - started)
            turn += 1

    running = [threading.Thread(target=loop, args=(n,)) for n in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return sorted(value for values in taken for value in values)


def stream(database: Database) -> tuple[int, float]:
    """Reads the whole table: rows and seconds."""
    started = time.perf_counter()
    count = 0
    with database.snapshot() as snapshot:
        for _ in snapshot.execute_sql(QUERY, lazy_decode=True):
            count += 1
    return count, time.perf_counter() - started


def measure(seconds: float, rows: int, threads: int, data_dir: Path | None) -> Figures:
    """Starts a server and measures it."""
    started = time.perf_counter()
    with spawn(data_dir) as server:
        ready = time.perf_counter() - started
        database = connect(server.address)
        taken = in_threads(
            threads,
            seconds,
            lambda turn: commit(database, turn * UPSERTS_IN_COMMIT, UPSERTS_IN_COMMIT),
        )
        for first in range(0, rows, 2_000):
            commit(database, first, min(2_000, rows - first))
        count, elapsed = stream(database)
    return Figures(
        ready_seconds=round(ready, 3),
        commits_per_second=round(len(taken) / seconds, 1),
        commit_p50_ms=round(taken[len(taken) // 2] * 1000, 2),
        commit_p99_ms=round(taken[len(taken) * 99 // 100] * 1000, 2),
        streamed_rows_per_second=round(count / elapsed),
        streamed_rows=count,
        threads=threads,
        data_dir=data_dir is not None,
    )


def main() -> None:
    """Reads the command line; prints the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long commits are measured")
    parser.add_argument("--rows", type=int, default=200_000, help="rows that are streamed")
    parser.add_argument("--threads", type=int, default=8, help="client threads")
    parser.add_argument("--durable", action="store_true", help="with a data directory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        data_dir = Path(directory) if options.durable else None
        figures = measure(options.seconds, options.rows, options.threads, data_dir)
    print(json.dumps(asdict(figures), indent=2))


if __name__ == "__main__":
    main()
