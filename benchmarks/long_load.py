"""A table is loaded for longer than Spanner keeps versions, while it is written, and through kills.

    python -m benchmarks.long_load --rows 1000000 --rate 2000 --kept 60 --kills 5

The embedded server collects versions after ``--kept`` seconds. Rows change, come and go at random
keys, at ``--rate`` rows a second or as many as the machine allows; the replicator reads a change
stream, and is killed (SIGKILL) after a chunk, ``--kills`` times. Then the first exact cut is
compared with Spanner by ``verify``, and its number of rows by delta-rs.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from benchmarks.processes import BenchProcess
from benchmarks.replica_speed import PROGRAM, TABLE, address_of
from benchmarks.singers import create_database, load
from emulator.faults import Faults
from emulator.process import ServerProcess, spawn

STREAM = f"CREATE CHANGE STREAM Changes FOR {TABLE} OPTIONS (value_capture_type = 'NEW_ROW')"
COMMITS_A_SECOND = 20
DDL_SECONDS_MAX = 60
LOOK_SECONDS = 0.1
LOAD_SECONDS_MAX = 3_600.0
CONFIG = """
tables = ["{table}"]
capture = "change-stream"
lease = "2s"
standby = true
max_rows = 200_000
[replica]
load_seconds = "{seconds}s"
"""


@dataclass(frozen=True, slots=True)
class LongLoad:
    """What was seen. ``written``: rows that were written, also deleted, while the table was loaded;
    ``equal``: whether ``verify`` found the first exact cut equal, and delta-rs as many rows."""

    rows: int
    kept_seconds: float
    load_seconds: float
    chunks: int
    kills: int
    written: int
    written_per_second: float
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


class LoadRun:
    """One table, one replica."""

    def __init__(self, server: ServerProcess, folder: Path, load_seconds: float) -> None:
        self._server = server
        self._folder = folder
        self.database = create_database(server.address)
        self._config = folder / "job.toml"
        self._config.write_text(CONFIG.format(table=TABLE, seconds=load_seconds))
        self._target = ["--to", f"delta:{folder / 'lake'}"]

    def fill(self, rows: int) -> None:
        """The rows from before; then the change stream is made."""
        load(self.database, rows)
        self.database.update_ddl([STREAM]).result(DDL_SECONDS_MAX)

    def follow(self, kills: int, kept_seconds: float) -> tuple[list[dict[str, Any]], int]:
        """Replicates until a cut is exact: all cuts, the last of which is the exact one, and how
        often the replicator was killed meanwhile."""
        self._server.set_faults(Faults(versions_kept_seconds=kept_seconds))
        done, cuts = 0, self._start(0)
        ends_at = time.monotonic() + LOAD_SECONDS_MAX
        while True:
            seen = self._read_cuts()
            if any(cut["exact"] for cut in seen):
                break
            cuts.check()
            if time.monotonic() > ends_at:
                raise TimeoutError(f"no exact cut within {LOAD_SECONDS_MAX} s: see {cuts.log}")
            if done < kills and len(seen) > done:
                cuts.kill()
                done += 1
                cuts = self._start(done)
            time.sleep(LOOK_SECONDS)
        # What is read from now on is kept for as long as verify needs it.
        self._server.set_faults(Faults())
        cuts.kill()
        first = next(place for place, cut in enumerate(seen) if cut["exact"])
        return seen[: first + 1], done

    def compare(self, cut: dict[str, Any]) -> tuple[int, bool]:
        """The rows of a cut as delta-rs counts them, and whether it equals Spanner."""
        arguments = ["verify", "-d", address_of(self.database), *self._target]
        command = [sys.executable, "-c", PROGRAM, *arguments, "--at", cut["cut"], "--json"]
        verify = BenchProcess.start("verify", self._folder / "verify.log", command, {})
        code = verify.process.wait()
        copy = DeltaTable(str(self._folder / "lake" / TABLE), version=cut["tables"][TABLE])
        rows = copy.scan().read_all().num_rows
        report = json.loads((self._folder / "verify.log").read_text().splitlines()[-1])
        return rows, code == 0 and report["tables"][0]["rows"] == rows

    def _start(self, number: int) -> BenchProcess:
        log = self._folder / f"load-{number:02}.log"
        place = ["replicate", "-c", str(self._config), "-d", address_of(self.database)]
        command = [sys.executable, "-c", PROGRAM, *place, *self._target, "--json"]
        return BenchProcess.start(f"load {number}", log, command, {})

    def _read_cuts(self) -> list[dict[str, Any]]:
        lines = [
            line
            for log in sorted(self._folder.glob("load-*.log"))
            for line in log.read_text().splitlines(keepends=True)
        ]
        return [json.loads(x) for x in lines if x.startswith('{"cut"') and x.endswith("\n")]


def run_long_load(
    folder: Path, rows: int, rate: float, kept_seconds: float, load_seconds: float, kills: int
) -> LongLoad:
    """A whole run, on a server of its own."""
    with spawn(folder / "spanner") as server:
        run = LoadRun(server, folder, load_seconds)
        run.fill(rows)
        writer = Writer(run.database, rows, rate)
        began = time.monotonic()
        writer.start()
        try:
            cuts, done = run.follow(kills, kept_seconds)
        finally:
            writer.stop()
        seconds = time.monotonic() - began
        there, equal = run.compare(cuts[-1])
    chunks = sum(TABLE in cut["loaded"] for cut in cuts)
    pace = round(writer.written / seconds, 1)
    return LongLoad(
        rows, kept_seconds, round(seconds, 1), chunks, done, writer.written, pace, there, equal
    )


def main() -> int:
    """Reads the command line, prints what was seen; 1 where the copy is not equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rate", type=float, default=2_000.0, help="rows written a second")
    parser.add_argument("--kept", type=float, default=60.0, help="versions are kept so long")
    parser.add_argument("--chunk", type=float, default=5.0, help="seconds of a chunk")
    parser.add_argument("--kills", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seen = run_long_load(
            Path(folder), options.rows, options.rate, options.kept, options.chunk, options.kills
        )
    print(json.dumps(asdict(seen)))
    return 0 if seen.equal else 1


if __name__ == "__main__":
    sys.exit(main())
