"""A table is loaded for longer than Spanner keeps versions, while it is written, and through kills.

    python -m benchmarks.long_load --rows 10000000 --rate 2000 --kept 60 --kills 5 --folder big

The embedded server collects versions after ``--kept`` seconds, and refuses to read older ones: that
is tried. Rows change, come and go at random keys, at ``--rate`` rows a second or as many as the
machine allows; the replicator reads a change stream, and is killed (SIGKILL) ``--kills`` times, at
random times after its first chunk. Then the first exact cut is compared with Spanner by ``verify``,
and its number of rows by delta-rs. ``--folder`` keeps the database: what an interrupted run has
filled is there for the next one.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
from deltalake import DeltaTable
from google.api_core.exceptions import FailedPrecondition
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from benchmarks.processes import BenchProcess, read_cpu_seconds, read_memory
from benchmarks.replica_speed import PROGRAM, TABLE, address_of
from benchmarks.singers import create_database, load
from emulator.faults import Faults
from emulator.process import ServerProcess, spawn

STREAM = "Changes"
CREATE_STREAM = (
    f"CREATE CHANGE STREAM {STREAM} FOR {TABLE} OPTIONS (value_capture_type = 'NEW_ROW')"
)
COMMITS_A_SECOND = 20
DDL_SECONDS_MAX = 60
LOOK_SECONDS = 0.1
TELL_SECONDS = 10.0
PARTS = 5
CONFIG = """
tables = ["{table}"]
capture = "change-stream"
consumer = "{consumer}"
lease = "2s"
standby = true
max_rows = 200_000
[replica]
load_seconds = "{seconds}s"
"""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What is to be loaded, and what happens meanwhile. ``chunk_seconds``: of a chunk;
    ``kill_within``: a process is killed so many seconds after its first chunk, at most."""

    rows: int
    rate: float
    kept_seconds: float
    chunk_seconds: float
    kills: int
    kill_within: float
    seconds_max: float = 3_600.0
    seed: int = 1


@dataclass(frozen=True, slots=True)
class LongLoad:
    """What was seen. ``written``: rows that were written, also deleted, while the table was loaded;
    ``refused``: whether Spanner refused to read what it had to keep no more; ``memory_mb``: the
    most that a replicator had in each fifth of the load, ``own_memory_mb``: of that what is no
    page of a file, which the system takes back; ``equal``: whether ``verify`` found the
    first exact cut equal, and delta-rs as many rows."""

    rows: int
    kept_seconds: float
    load_seconds: float
    chunks: int
    kills: int
    written: int
    written_per_second: float
    refused: bool
    memory_mb: Sequence[float]
    own_memory_mb: Sequence[float]
    client_cpu_seconds: float
    server_cpu_seconds: float
    server_mb: float
    verify_seconds: float
    rows_at_cut: int
    equal: bool


class Writer:
    """Changes rows at random keys until it is stopped."""

    def __init__(self, database: Database, rows: int, rate: float) -> None:
        self._database = database
        self._rows = rows
        self._rate = rate
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.written = 0

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def stop(self) -> None:
        """Returns when the last transaction is committed."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        chosen, size = random.Random(1), max(round(self._rate / COMMITS_A_SECOND), 1)
        began = time.monotonic()
        while not self._stop.is_set():
            keys = chosen.sample(range(-self._rows // 10, self._rows), size)
            kept = size - size // 10
            with self._database.batch() as batch:
                names = [(key, f"name {self.written + n}") for n, key in enumerate(keys[:kept])]
                batch.insert_or_update(TABLE, ("SingerId", "LastName"), names)
                batch.delete(TABLE, KeySet(keys=[[key] for key in keys[kept:]]))
            self.written += size
            self._stop.wait(max(self.written / self._rate - (time.monotonic() - began), 0.0))


@dataclass
class Replicators:
    """The processes that replicate, one after the other, and what was seen of them. ``memory``:
    megabytes at each look, ``own_memory``: those that are no file's."""

    command: Sequence[str]
    folder: Path
    kills: int = 0
    cpu_seconds: float = 0.0
    memory: list[float] = field(default_factory=list)
    own_memory: list[float] = field(default_factory=list)
    current: BenchProcess | None = None

    def start(self) -> None:
        """The next one."""
        log = self.folder / f"load-{self.kills:02}.log"
        command = [sys.executable, "-c", PROGRAM, *self.command]
        self.current = BenchProcess.start(f"load {self.kills}", log, command, {})

    def look(self) -> None:
        """Notes its memory. Raises RunError where it has failed."""
        assert self.current is not None, "start comes first"
        self.current.check()
        try:
            resident, own = read_memory(self.current.process.pid)
        except OSError:
            return
        self.memory.append(resident)
        self.own_memory.append(own)

    def end(self) -> None:
        """kill -9."""
        assert self.current is not None, "start comes first"
        self.cpu_seconds += read_cpu_seconds(self.current.process.pid)
        self.current.kill()

    def read_cuts(self) -> list[dict[str, Any]]:
        """All that were written so far."""
        lines = [
            line
            for log in sorted(self.folder.glob("load-*.log"))
            for line in log.read_text().splitlines(keepends=True)
        ]
        return [json.loads(x) for x in lines if x.startswith('{"cut"') and x.endswith("\n")]


class LoadRun:
    """One table, one replica."""

    def __init__(self, server: ServerProcess, folder: Path, plan: LoadPlan) -> None:
        self._server = server
        self._plan = plan
        self.database = create_database(server.address)
        # A folder may have the copies of earlier runs.
        number = sum(1 for _ in folder.glob("run-*"))
        self._folder = folder / f"run-{number}"
        self._folder.mkdir()
        config = self._folder / "job.toml"
        consumer = f"load-{number}"
        config.write_text(CONFIG.format(table=TABLE, consumer=consumer, seconds=plan.chunk_seconds))
        self._place = ["-d", address_of(self.database), "--to", f"delta:{self._folder / 'lake'}"]
        command = ["replicate", "-c", str(config), *self._place, "--json"]
        self.replicators = Replicators(command, self._folder)

    def fill(self) -> None:
        """The rows from before, or those that are missing; then the change stream is made."""
        self.database.reload()
        if any(STREAM in statement for statement in self.database.ddl_statements):
            return
        load(self.database, self._plan.rows)
        self.database.update_ddl([CREATE_STREAM]).result(DDL_SECONDS_MAX)

    def follow(self, writer: Writer) -> list[dict[str, Any]]:
        """Replicates until a cut is exact: all cuts, the last of which is the exact one."""
        self._server.set_faults(Faults(versions_kept_seconds=self._plan.kept_seconds))
        chosen, runner = random.Random(self._plan.seed), self.replicators
        runner.start()
        began = told = time.monotonic()
        seen, kill_at = 0, None
        while True:
            cuts = runner.read_cuts()
            if any(cut["exact"] for cut in cuts):
                break
            runner.look()
            now = time.monotonic()
            if now > began + self._plan.seconds_max:
                raise TimeoutError(f"no exact cut in {self._plan.seconds_max} s: {self._folder}")
            if kill_at is None and runner.kills < self._plan.kills and len(cuts) > seen:
                kill_at = now + chosen.uniform(0.0, self._plan.kill_within)
            if kill_at is not None and now >= kill_at:
                runner.end()
                runner.kills += 1
                seen, kill_at = len(runner.read_cuts()), None
                runner.start()
            if now > told + TELL_SECONDS:
                told = now
                self._tell(now - began, cuts, writer)
            time.sleep(LOOK_SECONDS)
        self._refused = self._is_refused()
        # What is read from now on is kept for as long as verify needs it.
        self._server.set_faults(Faults())
        runner.end()
        first = next(index for index, cut in enumerate(cuts) if cut["exact"])
        return cuts[: first + 1]

    def compare(self, cut: dict[str, Any]) -> tuple[int, bool]:
        """The rows of a cut as delta-rs counts them, and whether it equals Spanner."""
        log = self._folder / "verify.log"
        arguments = ["verify", *self._place, "--at", cut["cut"], "--json"]
        verify = BenchProcess.start("verify", log, [sys.executable, "-c", PROGRAM, *arguments], {})
        code = verify.process.wait()
        copy = DeltaTable(str(self._folder / "lake" / TABLE), version=cut["tables"][TABLE])
        rows = sum(batch.num_rows for batch in copy.scan(["SingerId"]))
        report = json.loads(log.read_text().splitlines()[-1])
        return rows, code == 0 and report["tables"][0]["rows"] == rows

    @property
    def refused(self) -> bool:
        """Whether Spanner refused to read what it had to keep no more, at the end of the load."""
        return self._refused

    def _is_refused(self) -> bool:
        old = datetime.now(UTC) - timedelta(seconds=self._plan.kept_seconds + 1)
        try:
            with self.database.snapshot(read_timestamp=old) as snapshot:
                list(snapshot.execute_sql(f"SELECT 1 FROM {TABLE} LIMIT 1"))  # noqa: S608
        except FailedPrecondition:
            return True
        return False

    def _tell(self, seconds: float, cuts: Sequence[dict[str, Any]], writer: Writer) -> None:
        loading = (cuts[-1].get("loading") or {}).get(TABLE) if cuts else None
        rows = loading["rows"] if loading else 0
        print(
            f"{seconds:.0f} s: {rows:,} rows loaded, {len(cuts)} cuts, {self.replicators.kills}"
            f" kills, {writer.written:,} rows written, {self.replicators.memory[-1]:.0f} MB",
            file=sys.stderr,
            flush=True,
        )


def run_long_load(folder: Path, plan: LoadPlan) -> LongLoad:
    """A whole run, on a server of its own."""
    with spawn(folder / "spanner") as server:
        run = LoadRun(server, folder, plan)
        run.fill()
        before = read_cpu_seconds(server.pid)
        writer = Writer(run.database, plan.rows, plan.rate)
        began = time.monotonic()
        writer.start()
        try:
            cuts = run.follow(writer)
        finally:
            writer.stop()
            run.replicators.end()
        seconds = time.monotonic() - began
        server_mb = psutil.Process(server.pid).memory_info().rss / 1_000_000
        server_cpu = read_cpu_seconds(server.pid) - before
        began = time.monotonic()
        there, equal = run.compare(cuts[-1])
        return LongLoad(
            plan.rows,
            plan.kept_seconds,
            round(seconds, 1),
            sum(TABLE in cut["loaded"] for cut in cuts),
            run.replicators.kills,
            writer.written,
            round(writer.written / seconds, 1),
            run.refused,
            find_peaks(run.replicators.memory),
            find_peaks(run.replicators.own_memory),
            round(run.replicators.cpu_seconds, 1),
            round(server_cpu, 1),
            round(server_mb, 1),
            round(time.monotonic() - began, 1),
            there,
            equal,
        )


def find_peaks(memory: Sequence[float]) -> list[float]:
    """The most in each fifth."""
    size = -(-len(memory) // PARTS) or 1
    return [max(memory[start : start + size]) for start in range(0, len(memory), size)]


def main() -> int:
    """Reads the command line, prints what was seen; 1 where the copy is not equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rate", type=float, default=2_000.0, help="rows written a second")
    parser.add_argument("--kept", type=float, default=60.0, help="versions are kept so long")
    parser.add_argument("--chunk", type=float, default=5.0, help="seconds of a chunk")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument(
        "--kill-within", type=float, default=10.0, help="seconds after the first chunk, at most"
    )
    parser.add_argument("--seconds-max", type=float, default=3_600.0, help="for the load")
    parser.add_argument("--seed", type=int, default=1, help="of the times of kills")
    parser.add_argument("--folder", type=Path, help="keeps the database and the copies")
    options = parser.parse_args()
    plan = LoadPlan(
        options.rows,
        options.rate,
        options.kept,
        options.chunk,
        options.kills,
        options.kill_within,
        options.seconds_max,
        options.seed,
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        seen = run_long_load(folder, plan)
    print(json.dumps(asdict(seen)))
    return 0 if seen.equal and seen.refused else 1


if __name__ == "__main__":
    sys.exit(main())
