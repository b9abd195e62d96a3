"""Kills a Spark application with -9 at random moments, again and again, and compares the Parquet
that it leaves with every version that was written meanwhile:

    python tests/end_to_end/kill_spark.py --runs 100 [--cluster] [--seed 1]

A run is a start, some random time, and a kill: of the driver with all that belongs to it, of one of
its executors, or of a Python worker. After every kill the files that Spark counts as delivered must
be exactly the windows that its checkpoint names. A last start delivers the rest.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import pyarrow.parquet as pq  # noqa: E402 (the path comes first)
from fixtures.dialects import create_in  # noqa: E402
from fixtures.server import VARIABLE, connect  # noqa: E402
from fixtures.singers import SINGERS, make_watchable  # noqa: E402
from fixtures.spark import (  # noqa: E402
    link_spark_home,
    list_delivered_files,
    needs_another_start,
    options_of,
)
from fixtures.writing import SingersWriter, run_beside  # noqa: E402
from google.cloud.spanner_v1.database import Database  # noqa: E402

from emulator.process import spawn  # noqa: E402
from spanner_schema.model.schema import Dialect  # noqa: E402
from watcher.process.spark.java import ensure_java  # noqa: E402
from watcher.runners.spark.offsets import parse_micros  # noqa: E402
from watcher.spanner.timestamps import to_micros  # noqa: E402

JOB = ROOT / "tests" / "end_to_end" / "cluster_job.py"
CLUSTER = "local-cluster[2,1,1024]"
START_SECONDS_MAX = 300.0
SECONDS_MAX = 6.0
"""The longest time between the first sign of a query and its end."""
KEYS = 200
PAUSE_SECONDS = 0.02
"""Between two commits: the machine is to kill, not to write."""
VERSION = ("SingerId", "_commit_timestamp", "LastName")

Version = tuple[int, int, str]


@dataclass(slots=True)
class Report:
    """What was seen."""

    seed: int
    kills: dict[str, int] = field(default_factory=dict)
    batches: int = 0
    rows: int = 0
    versions_written: int = 0


class Application:
    """The job in processes of its own, under a supervisor that is us."""

    def __init__(self, folder: Path, options: dict[str, str], cluster: bool, server: str) -> None:
        self._folder = folder
        self._options = options
        self._environment = {n: v for n, v in os.environ.items() if n != VARIABLE} | {
            "SPARK_HOME": str(link_spark_home(folder)),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
        }
        self._conf = {
            "spark.master": CLUSTER if cluster else "local[2]",
            f"spark.executorEnv.{VARIABLE}": server,
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.minBatchesToRetain": "1000000",
            "spark.python.authenticate.socketTimeout": "120s",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, **trigger: object) -> None:
        """Starts it; it has not done anything yet."""
        job = {
            "conf": self._conf,
            "options": self._options,
            "batch": {k: v for k, v in self._options.items() if k in PLACE},
            "folder": str(self._folder),
            "trigger": trigger,
        }
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(JOB), json.dumps(job)],
                env=self._environment,
                cwd=self._folder,
                stdout=log,
                stderr=log,
            )

    @property
    def running(self) -> bool:
        """Whether the driver is running."""
        return self._process is not None and self._process.poll() is None

    def finish(self) -> None:
        """Delivers everything that is there. Raises RuntimeError when it fails."""
        for _ in range(2 if needs_another_start(self._folder / "checkpoint") else 1):
            self.start(availableNow=True)
            self.wait()

    def wait(self) -> None:
        """Waits for an application that ends by itself. Raises RuntimeError when it fails."""
        assert self._process is not None
        if self._process.wait(START_SECONDS_MAX * 2) != 0:
            raise RuntimeError(f"the application failed, see {self._folder / 'log'}")

    def kill(self, what: str) -> None:
        """kill -9: of everything, of an executor, or of a Python worker, where there is one."""
        assert self._process is not None
        words = {"executor": "CoarseGrainedExecutorBackend", "worker": "pyspark.daemon"}
        if what == "driver":
            chosen = [self._process.pid, *descendants(self._process.pid)]
        else:
            chosen = find_newest(self._process.pid, words[what])
        for pid in chosen:
            end(pid)

    def stop(self) -> None:
        """Kills what is left of it."""
        if self._process is not None:
            self.kill("driver")
            self._process.wait()


PLACE = ("project", "instance", "database", "table")


def end(pid: int) -> None:
    """kill -9 of a process that may have ended by itself."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def find_newest(pid: int, word: str) -> list[int]:
    """The newest descendant with a word in its command line, if there is one."""
    return [each for each in descendants(pid) if word in command_of(each)][-1:]


def command_of(pid: int) -> str:
    """A command line; empty for a process that is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def descendants(pid: int) -> list[int]:
    """Children, and theirs: parents before children."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = path.read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents.setdefault(int(after_name[1]), []).append(int(path.parent.name))
    processes, waiting = [], [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        processes += children
        waiting += children
    return processes


def offsets(folder: Path) -> dict[int, dict[str, Any]]:
    """The offsets of a checkpoint, by batch; one that is being written is not there yet."""
    files = [p for p in (folder / "checkpoint" / "offsets").glob("[0-9]*") if p.name.isdigit()]
    return {int(p.name): json.loads(p.read_text().splitlines()[-1]) for p in files}


def read_delivered(folder: Path) -> tuple[int, list[Version]]:
    """The newest batch that Spark counts as delivered, -1 for none; every row so far."""
    log = folder / "parquet" / "_spark_metadata"
    numbers = [int(p.name.split(".")[0]) for p in log.glob("[0-9]*") if not p.name.endswith("tmp")]
    rows = [
        (row["SingerId"], to_micros(row["_commit_timestamp"]), row["LastName"])
        for path in list_delivered_files(folder)
        for row in pq.read_table(path, columns=list(VERSION)).to_pylist()
    ]
    return max(numbers, default=-1), rows


def check(folder: Path, writer: SingersWriter) -> tuple[int, int]:
    """Batches and rows. Raises AssertionError unless they are what the windows hold."""
    newest, rows = read_delivered(folder)
    planned = offsets(folder)
    ends = sorted({parse_micros(planned[n]["position"]) for n in range(newest + 1)})
    if not ends:
        assert not rows
        return 0, 0
    paging = planned[newest].get("backfill") is not None
    expected: set[Version] = set()
    for end_of_window in ends[1:] if not paging else []:
        expected |= writer.rows_at(end_of_window)
    snapshot = writer.rows_at(ends[0])
    assert len(set(rows)) == len(rows), "rows came twice"
    if paging:
        assert set(rows) <= snapshot, "a page holds what is not of its timestamp"
    else:
        assert set(rows) == expected | snapshot, "lost or torn"
    return newest + 1, len(rows)


def wait_for_random_moment(choice: random.Random, application: Application, folder: Path) -> None:
    """Waits for a random time, mostly after the query has planned a new batch."""
    known = len(offsets(folder))
    early = choice.random() < 0.2
    ends_at = time.monotonic() + START_SECONDS_MAX
    while not early and application.running and len(offsets(folder)) == known:
        assert time.monotonic() < ends_at, f"no batch was planned, see {folder / 'log'}"
        time.sleep(0.02)
    time.sleep(choice.uniform(0, SECONDS_MAX))


def create_watched_database(address: str, dialect: Dialect) -> Database:
    """A database with a table to watch."""
    database = create_in(dialect, connect(address), "kills", (SINGERS,))
    make_watchable(database)
    return database


def run(folder: Path, runs: int, seed: int, cluster: bool, dialect: Dialect) -> Report:
    """All runs, over one database, one checkpoint and one sink."""
    ensure_java()
    choice = random.Random(seed)
    report = Report(seed)
    kinds = ("driver", "executor", "worker") if cluster else ("driver", "driver", "worker")
    with spawn() as server:
        database = create_watched_database(server.address, dialect)
        writer = SingersWriter(database, seed, KEYS)
        while len(writer.versions) < KEYS // 2:
            writer.write()
        options = options_of(
            database,
            startingTimestamp="earliest",
            backfillRowsPerBatch=10,
            rowsPerSlice=20,
            consumer="kills",
            leaseSeconds=2,
        )
        application = Application(folder, options, cluster, server.address)
        try:
            with run_beside(writer.write, PAUSE_SECONDS) as begun:
                assert begun.wait(START_SECONDS_MAX)
                for number in range(runs):
                    if not application.running:
                        application.start(processingTime="0 seconds")
                    wait_for_random_moment(choice, application, folder)
                    kind = choice.choice(kinds)
                    application.kill(kind)
                    report.kills[kind] = report.kills.get(kind, 0) + 1
                    batches, rows = check_after_kill(folder, writer, application, kind)
                    print(f"run {number + 1}: {kind}; {batches} batches, {rows} rows", flush=True)
            application.stop()
            application.finish()
        finally:
            application.stop()
        report.batches, report.rows = check(folder, writer)
        newest: dict[int, Version] = {}
        for row in read_delivered(folder)[1]:
            newest[row[0]] = max(newest.get(row[0], row), row, key=lambda each: each[1])
        assert set(newest.values()) == writer.rows_at(2**60), "the newest version of every key"
        report.versions_written = sum(map(len, writer.versions.values()))
    return report


def check_after_kill(
    folder: Path, writer: SingersWriter, application: Application, kind: str
) -> tuple[int, int]:
    """Checks the output after a kill of the driver; while others run, batches are only counted."""
    if kind != "driver":
        return len(offsets(folder)), -1
    application.stop()
    return check(folder, writer)


def main() -> None:
    """Reads the command line, prints what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--cluster", action="store_true", help=f"on {CLUSTER}")
    parser.add_argument("--dialect", default="googlesql", choices=[str(d) for d in Dialect])
    parser.add_argument("--folder", type=Path, help="kept for looking at it; else temporary")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        dialect = Dialect(options.dialect)
        print(run(folder, options.runs, options.seed, options.cluster, dialect))


if __name__ == "__main__":
    main()
