"""Kills the driver of a replica by Spark, or first a worker and then the driver, at random moments
while three tables change, again and again; after each kill ``verify`` judges the last exact cut:

    PYTHONPATH=.:tests python tests/end_to_end/kill_spark_replica.py --runs 100 [--stream] [--to X]

Needs the format's jars (from Maven, or SPANNER_WATCHER_JARS), except for Parquet. The first run is
killed during the initial load.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "end_to_end")]

from fixtures.changing_schemas import STREAM_DDL, table_ddl  # noqa: E402 (the path comes first)
from fixtures.dialects import create_in  # noqa: E402
from fixtures.replicas import verify_folder  # noqa: E402
from fixtures.server import connect  # noqa: E402
from fixtures.singers import make_watchable  # noqa: E402
from fixtures.spark_formats import find_format_settings  # noqa: E402
from fixtures.spark_replica_process import run_replicate, start_replicate, write_config  # noqa: E402
from fixtures.writing import run_beside  # noqa: E402
from google.cloud.spanner_v1 import KeySet  # noqa: E402
from google.cloud.spanner_v1.database import Database  # noqa: E402
from kill_spark import descendants, end, find_newest  # noqa: E402

from emulator.process import spawn  # noqa: E402
from spanner_schema.model.schema import Dialect  # noqa: E402
from watcher.model.errors import ReplicaError  # noqa: E402
from watcher.process.failpoints import NAMES  # noqa: E402
from watcher.replica.cuts.manifest import Manifest  # noqa: E402

TABLES = ("A", "B", "C")
PLACES = tuple(name for name in NAMES if name.startswith("after-replica"))
WORKER = "a worker"
KEYS = 200
START_SECONDS_MAX = 300.0
MORE_SECONDS_MAX = 10.0
PAUSE_SECONDS = 0.1


@dataclass(slots=True)
class KillReport:
    """What was seen. ``ended`` counts how runs ended; ``commits`` are the writer's."""

    seed: int
    ended: dict[str, int] = field(default_factory=dict)
    verified: int = 0
    commits: int = 0


class Writer:
    """One transaction over all tables at a time; with a stream also deletes."""

    def __init__(self, database: Database, seed: int, deletes: bool) -> None:
        self._database = database
        self._choice = random.Random(seed)
        self._deletes = deletes
        self.commits = 0

    def write(self) -> None:
        """Writes some keys of every table."""
        keys = self._choice.sample(range(KEYS), 3)
        self.commits += 1
        with self._database.batch() as batch:
            for name in TABLES:
                rows = [(key, self.commits) for key in keys[1:]]
                batch.insert_or_update(name, ("Id", "Version"), rows)
                if self._deletes:
                    batch.delete(name, KeySet(keys=[(keys[0],)]))


def kill(process: subprocess.Popen[str]) -> None:
    """kill -9 of the driver and all that it has started."""
    for pid in [process.pid, *descendants(process.pid)]:
        end(pid)
    process.wait()


def kill_worker(process: subprocess.Popen[str]) -> None:
    """kill -9 of one process of Python that the driver has started, where there is one; its task
    fails, and so may the query."""
    for pid in find_newest(process.pid, "daemon"):
        end(pid)


def wait_for_cut(process: subprocess.Popen[str], folder: Path, choice: random.Random) -> None:
    """Waits for a new cut, or not, and then for a random time."""
    known = newest_end(folder)
    early = choice.random() < 0.3
    ends_at = time.monotonic() + (choice.uniform(5, 40) if early else START_SECONDS_MAX)
    while process.poll() is None and time.monotonic() < ends_at:
        if newest_end(folder) != known:
            break
        time.sleep(0.05)
    time.sleep(choice.uniform(0, MORE_SECONDS_MAX) if process.poll() is None else 0)


def name_end(process: subprocess.Popen[str], what: str | None) -> str:
    """Where a run was killed. Raises AssertionError for one that has failed by itself."""
    code = process.poll()
    if what == WORKER:
        return f"{WORKER}, {'which ended the query' if code else 'then anywhere'}"
    assert code in (None, -signal.SIGKILL), f"ended with {code}"
    return what if what and code is not None else "anywhere"


def newest_end(folder: Path) -> int:
    """The end of the last cut; 0 for none."""
    last = Manifest(str(folder)).read_last()
    return last.end if last is not None else 0


def judge(database: Database, folder: Path) -> bool:
    """Whether there is an exact cut; it then equals Spanner, or AssertionError is raised."""
    try:
        cut = Manifest(str(folder)).find_exact()
    except ReplicaError:
        return False
    report = verify_folder(database, folder, cut)
    assert report.equal, report.to_json()
    return True


def create_watched_database(address: str, dialect: Dialect) -> Database:
    """Tables that can be polled, and a change stream of them."""
    ddl = [*map(table_ddl, TABLES), STREAM_DDL]
    database = create_in(dialect, connect(address), "kills", ddl)
    make_watchable(database, *TABLES, shards=2)
    return database


def run(
    folder: Path, runs: int, seed: int, streamed: bool, to: str, dialect: Dialect
) -> KillReport:
    """All runs, over one database and one replica."""
    settings = find_format_settings(to)
    assert settings is not None, f"there is no {to} for this Spark"
    choice, report = random.Random(seed), KillReport(seed)
    config, lake = write_config(folder / "job.toml", settings, to), folder / "lake"
    flags = ("--stream", "S", "--interval", "0s") if streamed else ("--interval", "0s")
    with spawn() as server:
        database = create_watched_database(server.address, dialect)
        writer = Writer(database, seed, streamed)
        with run_beside(writer.write, PAUSE_SECONDS) as begun:
            assert begun.wait(START_SECONDS_MAX)
            for number in range(runs):
                what = choice.choice([*PLACES, WORKER, None])
                place = what if what in PLACES else None
                process = start_replicate(database, config, TABLES, *flags, place=place)
                try:
                    wait_for_cut(process, lake, choice)
                    if what == WORKER:
                        kill_worker(process)
                        wait_for_cut(process, lake, choice)
                    how = name_end(process, what)
                finally:
                    kill(process)
                report.ended[how] = report.ended.get(how, 0) + 1
                report.verified += judge(database, lake)
                print(f"run {number + 1}: killed {how}; {writer.commits} commits", flush=True)
        assert run_replicate(database, config, TABLES, *flags) == 0
        assert judge(database, lake), "no exact cut"
        report.verified += 1
        report.commits = writer.commits
    return report


def main() -> None:
    """Reads the command line, prints what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--stream", action="store_true", help="a change stream, with deletes")
    parser.add_argument("--to", default="delta", choices=("delta", "iceberg", "parquet"))
    parser.add_argument("--dialect", default="googlesql", choices=[str(d) for d in Dialect])
    parser.add_argument("--folder", type=Path, help="kept for looking at it; else temporary")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        dialect = Dialect(options.dialect)
        print(run(folder, options.runs, options.seed, options.stream, options.to, dialect))


if __name__ == "__main__":
    main()
