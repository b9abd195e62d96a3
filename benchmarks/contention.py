"""How read-write transactions of many threads get on: ``python -m benchmarks.contention``.

Each thread increments counters in transactions of its own, through the official client: on a row
that nobody else touches, on one row that all want, and on its own row beside streams of reads.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.cloud import spanner
from google.cloud.spanner_v1.database import Database

from benchmarks.scenarios.server import run_in_threads
from emulator.process import spawn

PROJECT, INSTANCE, DATABASE = "test-project", "contention", "counters"
TABLE = "CREATE TABLE Counters (K INT64, N INT64) PRIMARY KEY (K)"
SELECT = "SELECT N FROM Counters WHERE K = @k"
UPDATE = "UPDATE Counters SET N = N + 1 WHERE K = @k"
INT64 = {"k": spanner.param_types.INT64}
READERS = 4

Increment = Callable[[Any, int], None]


def main() -> None:
    """Reads the command line, prints a line of JSON for each kind of work."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.contention", description=__doc__)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds before each commit")
    options = parser.parse_args()
    for name, hot, readers in (
        ("disjoint rows", False, 0),
        ("one hot row", True, 0),
        ("disjoint rows beside streams", False, READERS),
    ):
        for style, increment in (("dml", increment_by_dml), ("mutations", increment_by_mutation)):
            work = Work(increment, hot, readers, options.pause)
            figures = measure(options.threads, options.seconds, work)
            sys.stdout.write(json.dumps({"work": name, "style": style} | figures) + "\n")
            sys.stdout.flush()


def increment_by_dml(transaction: Any, key: int) -> None:
    """Reads the counter and updates it by DML."""
    list(transaction.execute_sql(SELECT, {"k": key}, INT64))
    transaction.execute_update(UPDATE, {"k": key}, INT64)


def increment_by_mutation(transaction: Any, key: int) -> None:
    """Reads the counter and writes one more as a mutation."""
    rows = transaction.read("Counters", ("N",), spanner.KeySet(keys=[[key]]))
    transaction.update("Counters", ("K", "N"), [(key, next(iter(rows))[0] + 1)])


@dataclass(frozen=True)
class Work:
    """What the threads do: on one ``hot`` row or each on its own, beside so many ``readers``; a
    client thinks for ``pause`` seconds before each commit."""

    increment: Increment
    hot: bool
    readers: int
    pause: float


def measure(threads: int, seconds: float, work: Work) -> dict[str, float]:
    """Commits a second and their times; attempts a commit; reads of the whole table a second."""
    attempts = [0] * threads
    with spawn() as server:
        os.environ["SPANNER_EMULATOR_HOST"] = server.address
        database = create_database(threads)

        def run(turn: int) -> None:
            key = turn % threads

            def attempt(transaction: Any) -> None:
                attempts[key] += 1
                work.increment(transaction, 0 if work.hot else key)
                time.sleep(work.pause)

            database.run_in_transaction(attempt)

        with Streams(database, work.readers) as streams:
            taken = run_in_threads(threads, seconds, run)
        counted = total(database)
    if counted != len(taken):
        raise RuntimeError(f"{len(taken)} increments were committed, but {counted} are there")
    return {
        "commits/s": round(len(taken) / seconds, 1),
        "p50_ms": round(taken[len(taken) // 2] * 1_000, 1),
        "p99_ms": round(taken[len(taken) * 99 // 100] * 1_000, 1),
        "attempts/commit": round(sum(attempts) / len(taken), 2),
        "streamed/s": round(streams.count / seconds, 1),
    }


def create_database(rows: int) -> Database:
    """A table with a counter for each thread."""
    client = spanner.Client(project=PROJECT, disable_builtin_metrics=True)
    config = f"projects/{PROJECT}/instanceConfigs/emulator-config"
    instance = client.instance(INSTANCE, configuration_name=config, node_count=1)
    instance.create().result(30)
    database: Database = instance.database(DATABASE, ddl_statements=[TABLE])
    database.create().result(30)
    with database.batch() as batch:
        batch.insert("Counters", ("K", "N"), [(key, 0) for key in range(rows)])
    return database


def total(database: Database) -> int:
    """The sum of all counters."""
    with database.snapshot() as snapshot:
        return int(next(iter(snapshot.execute_sql("SELECT SUM(N) FROM Counters")))[0])


class Streams:
    """Threads that read the whole table again and again; ``count`` says how often."""

    def __init__(self, database: Database, readers: int) -> None:
        self._database = database
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._loop) for _ in range(readers)]
        self._lock = threading.Lock()
        self.count = 0

    def __enter__(self) -> Streams:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _loop(self) -> None:
        while not self._stop.is_set():
            with self._database.snapshot() as snapshot:
                list(snapshot.execute_sql("SELECT K, N FROM Counters"))
            with self._lock:
                self.count += 1
            time.sleep(0)


if __name__ == "__main__":
    main()
