"""The embedded server's own figures: commits, streamed rows, a poll in a large table, its start.

Client and server are two processes on the same machine, with Google's clients unmodified. One
process of Python commits no faster than its one core does: client=go shows what the server can.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import psutil
from google.cloud.spanner_v1.database import Database
from pydantic import BaseModel, ConfigDict, Field

from benchmarks import singers
from benchmarks.compiled import MissingToolsError
from benchmarks.experiment import RunProgress, restore_environment
from benchmarks.go_client import build as go_client
from benchmarks.processes import RunError
from benchmarks.scenario import Bench, Figure, Scenario
from emulator.process import spawn

LARGE_COMMIT_ROWS = 5_000
LONG_LIST_ITEMS = 10_000
LARGE_REQUESTS = 5
READ_SECONDS = 3.0

Storage = Literal["memory", "disk"]
Client = Literal["python", "go"]


class ServerSettings(BaseModel):
    """``storages`` are measured one after another: in memory, and with a data directory.
    ``threads`` of a client commit ``upserts`` rows each time, for ``seconds``. The table that is
    streamed and polled has ``rows`` of about 300 bytes, of which 135 have changed since. ``client``
    is who commits: one process of Google's Python or Go client; Go's also reads rows by their keys
    and the whole table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    storages: tuple[Storage, ...] = ("memory", "disk")
    seconds: Annotated[float, Field(gt=0)] = 5.0
    threads: Annotated[int, Field(ge=1)] = 8
    upserts: Annotated[int, Field(ge=1)] = 5
    rows: Annotated[int, Field(ge=1)] = 200_000
    client: Client = "python"


@dataclass(frozen=True, slots=True)
class Commits:
    """How many there were, and their times in milliseconds."""

    count: int
    p50_ms: float
    p99_ms: float


def run(settings: ServerSettings, bench: Bench) -> None:
    """A row of the table for each storage."""
    if settings.client == "go":
        try:
            go_client.command()
        except MissingToolsError as error:
            bench.outcome.skipped.append(str(error))
            return
    with contextlib.ExitStack() as stack:
        stack.callback(restore_environment, os.environ.get("SPANNER_EMULATOR_HOST"))
        for storage in settings.storages:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="spanner-watcher-"))
            databases = [
                Path(folder) / name if storage == "disk" else None for name in ("a", "b", "c")
            ]
            bench.show(RunProgress(f"server, {storage}", "commits", 0, 0, 0))
            figure: Figure = {"storage": storage, **measure_commits(settings, databases[0])}
            bench.show(RunProgress(f"server, {storage}", "large requests", 0, 0, 0))
            figure |= measure_large_requests(databases[1])
            bench.show(RunProgress(f"server, {storage}", "a large table", 0, 0, 0))
            bench.add(figure | measure_large_table(settings, databases[2]))


def measure_commits(settings: ServerSettings, data_dir: Path | None) -> Figure:
    """Ready time and commits a second of an empty server."""
    began = time.perf_counter()
    with spawn(data_dir) as server:
        ready = time.perf_counter() - began
        database = singers.create_database(server.address)
        process = psutil.Process(server.pid)
        used = sum(process.cpu_times()[:2])
        commits = CLIENTS[settings.client](settings, database)
        used = sum(process.cpu_times()[:2]) - used
    return {
        "ready_s": round(ready, 2),
        "client": settings.client,
        "commits/s": round(commits.count / settings.seconds),
        "commit_p50_ms": round(commits.p50_ms, 2),
        "commit_p99_ms": round(commits.p99_ms, 2),
        "server_cpu_ms/commit": round(used * 1_000 / max(1, commits.count), 3),
    }


def commit_with_python(settings: ServerSettings, database: Database) -> Commits:
    """Threads of this process, with google-cloud-spanner."""
    count = settings.upserts
    taken = run_in_threads(
        settings.threads,
        settings.seconds,
        lambda turn: singers.commit(database, turn * count, count),
    )
    return Commits(
        len(taken), taken[len(taken) // 2] * 1_000, taken[len(taken) * 99 // 100] * 1_000
    )


def commit_with_go(settings: ServerSettings, database: Database) -> Commits:
    """Goroutines of one process, with cloud.google.com/go/spanner. Raises RunError."""
    options = {
        "threads": settings.threads,
        "upserts": settings.upserts,
        "seconds": settings.seconds,
    }
    return run_go("commit", database, options)


def read_with_go(rows: int, database: Database) -> Figure:
    """Reads by key, one after another, and of the whole table. Raises RunError."""
    reads = run_go("read", database, {"threads": 1, "seconds": READ_SECONDS, "rows": rows})
    scans = run_go("scan", database, {"threads": 1, "seconds": READ_SECONDS, "rows": rows})
    return {
        "read_p50_ms": reads.p50_ms,
        "read_p99_ms": reads.p99_ms,
        "scanned_rows/s": round(rows / (scans.p50_ms / 1_000)),
    }


def run_go(what: str, database: Database, options: Mapping[str, float]) -> Commits:
    """What the Go client prints. Raises RunError."""
    given = {"what": what, "database": database.name, **options}
    command = [*go_client.command(), *(f"-{name}={value}" for name, value in given.items())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(f"the Go client failed:\n{done.stderr[-2000:]}")
    printed = json.loads(done.stdout)
    return Commits(printed["calls"], printed["p50_ms"], printed["p99_ms"])


CLIENTS: dict[Client, Callable[[ServerSettings, Database], Commits]] = {
    "python": commit_with_python,
    "go": commit_with_go,
}


def measure_large_requests(data_dir: Path | None) -> Figure:
    """One commit of many rows, and one query with a long list: the median of a few each."""
    rows, items = LARGE_COMMIT_ROWS, LONG_LIST_ITEMS
    with spawn(data_dir) as server:
        database = singers.create_database(server.address)
        commits = [
            measure_seconds(partial(singers.commit, database, run * rows, rows))
            for run in range(LARGE_REQUESTS)
        ]
        # Another list each time, so that no plan is there already.
        lists = [
            measure_seconds(partial(singers.count_listed, database, run, items))
            for run in range(LARGE_REQUESTS)
        ]
    return {
        f"commit_of_{rows}_s": round(statistics.median(commits), 3),
        f"in_{items}_s": round(statistics.median(lists), 3),
    }


def measure_seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure_large_table(settings: ServerSettings, data_dir: Path | None) -> Figure:
    """Streaming and polling; by Go also reads by key; on disk also its size, and the start of a
    server with it."""
    rows = settings.rows
    with spawn(data_dir) as server:
        database = singers.create_database(server.address)
        began = time.perf_counter()
        singers.load(database, rows)
        loaded = time.perf_counter() - began
        singers.change(database, rows)
        polled = singers.poll(database)
        idle = singers.poll(database, singers.NOTHING_SINCE)
        count, took = singers.stream_table(database)
        native = read_with_go(rows, database) if settings.client == "go" else {}
    if count != rows or polled.rows != min(rows, singers.CHANGED) or idle.rows:
        raise RunError(
            f"read {count:,} of {rows:,} rows, {polled.rows} changed ones and {idle.rows} later"
        )
    figure: Figure = {
        "rows": rows,
        "loaded_rows/s": round(rows / loaded),
        "streamed_rows/s": round(count / took),
        "polled_rows": polled.rows,
        "poll_scanned": polled.scanned,
        "poll_server_ms": polled.server_ms,
        "idle_poll_server_ms": idle.server_ms,
        **native,
    }
    return figure | measure_disk(rows, data_dir) if data_dir else figure


def measure_disk(rows: int, data_dir: Path) -> Figure:
    """What a closed server left, and how soon another serves it."""
    size = sum(file.stat().st_size for file in data_dir.rglob("*") if file.is_file())
    began = time.perf_counter()
    with spawn(data_dir):
        ready = time.perf_counter() - began
    return {"bytes/row": round(size / rows, 1), "ready_again_s": round(ready, 2)}


def run_in_threads(threads: int, seconds: float, work: Callable[[int], None]) -> list[float]:
    """Runs work in a loop on some threads; how long each run took, in seconds, ascending."""
    ends_at = time.monotonic() + seconds

    def loop(number: int) -> list[float]:
        taken: list[float] = []
        while time.monotonic() < ends_at:
            started = time.perf_counter()
            work(len(taken) * threads + number)
            taken.append(time.perf_counter() - started)
        return taken

    with ThreadPoolExecutor(threads) as running:
        return sorted(value for values in running.map(loop, range(threads)) for value in values)


SCENARIO = Scenario(
    name="server",
    summary="the embedded server: commits, streamed rows, a poll in a large table, its start",
    settings=ServerSettings,
    keys=("storage",),
    run=run,
    short=("seconds=3", "rows=50000"),
    own_server=True,
)
