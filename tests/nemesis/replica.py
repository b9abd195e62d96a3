"""A run with a replica: the replicator is killed, its schema changes, its disk is full, others
compact and write its copies, and twins are started by mistake. Exact cuts are compared with what
the writers have written."""

from __future__ import annotations

import os
import subprocess
import threading
from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path

from fixtures.pace import allow
from fixtures.warm_python import WARM_PYTHON, WarmProcess
from google.cloud.spanner_v1.database import Database

from conformance.embedded import restored_address
from conformance.truth import Row, Truth
from conformance.writers import COLUMNS, WATCHED, Writer
from nemesis.outsiders import OUTSIDERS, NoCopyError, RefusedError
from nemesis.run import (
    CONSUMER,
    FINGERPRINTS_MAX,
    REFUSED,
    STOP_SECONDS_MAX,
    TWIN_ENDS,
    WRITERS,
    Report,
    World,
    write_and_strike,
)
from nemesis.surroundings import COMMAND
from watcher.model.errors import ReplicaError
from watcher.replica.cuts.cut import DELTA, Cause, Cut
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.cuts.modes import HISTORY, LATEST, Mode
from watcher.replica.formats import FORMATS, ICEBERG, open_copies
from watcher.replica.reading import ReplicaAt
from watcher.replica.stores.stored_files import remove_folder
from watcher.replica.verification.replicas import verify
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.queries import QueryClient

BUCKET = "NEMESIS_BUCKET"
WRITES = ["append", "delete"]
LEASE_SECONDS = 1.0
FEED_SHARE = 0.6
"""Of runs whose copies may have the change data feed."""


class ReplicaWorld(World):
    """As ``World``, with a replicator of a change stream in place of a watcher."""

    to = DELTA

    @property
    def lake(self) -> str:
        """The folder of the copies; with ``NEMESIS_BUCKET`` one in that bucket."""
        if bucket := os.environ.get(BUCKET):
            return f"{bucket}/lake-{self.seed}"
        return str((self.disk.path if self.disk is not None else self.folder) / "lake")

    def _configure(self, database: Database) -> Path:
        chosen = self.randomness
        self.config_text = f"""
            database = "{database.name}"
            tables = ["Accounts", "Entries", "Events"]
            capture = "change-stream"
            interval = "{chosen.choice([5, 50])}ms"
            max_rows = {chosen.choice([5, 40, 100_000])}
            refresh = "200ms"
            lease = "{round(allow(LEASE_SECONDS))}s"
            CONSUMER
            [replica]
            to = "{self.to}:{self.lake}"
            load_rows = {chosen.choice([3, 40, 100_000])}
            mode = "{(mode := chosen.choice(list_modes(self.to)))}"
            """
        if has_feed(self.to, mode) and chosen.random() < FEED_SHARE:
            self.config_text += "change_feed = true\n"
            self.struck["copies have the change data feed"] += 1
        path = self.folder / "watch.toml"
        path.write_text(f"{self._configure_for(CONSUMER)}\n{self._page_settings()}\n")
        return path

    def _configure_for(self, consumer: str, standby: bool = True) -> str:
        lines = f'consumer = "{consumer}"\nstandby = {str(standby).lower()}'
        return self.config_text.replace("CONSUMER", lines)

    def _start(self, config: Path) -> WarmProcess:
        return WarmProcess(
            ["-c", COMMAND, "replicate", "--config", str(config)],
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "watcher.log").open("ab"),
            env=self.around.environment,
        )

    def start_twin(self) -> None:
        """The same command a second time, by mistake."""
        config = self.folder / "twin.toml"
        config.write_text(self._configure_for(CONSUMER, standby=False))
        self._end_twin(self._start(config), TWIN_ENDS)

    def start_other(self) -> None:
        """Another consumer with the same folder, by mistake."""
        config = self.folder / "other.toml"
        config.write_text(self._configure_for("other"))
        code = self._start(config).wait(allow(STOP_SECONDS_MAX))
        assert code == REFUSED, f"another consumer ended with {code}"

    def compact(self) -> None:
        """OPTIMIZE, at any moment."""
        self._touch("compact")

    def vacuum(self) -> None:
        """VACUUM of all that is not current. Not while files are written, which are not yet."""
        self.watcher.send_signal(15)
        self.watcher.wait(allow(STOP_SECONDS_MAX))
        self._touch("vacuum")
        self.watcher = self._watch()

    def write_outside(self) -> None:
        """Somebody appends to a copy, deletes from it, or restores it."""
        acts = ["append", "delete", "restore"] if OUTSIDERS[self.to].compacts else WRITES
        self._touch(self.randomness.choice(acts))

    def _touch(self, act: str) -> None:
        """Acts on a copy, as somebody else does; if the replicator is faster, nothing is done."""
        name = self.randomness.choice(WATCHED)
        version = self.randomness.random()
        try:
            OUTSIDERS[self.to].do(act, self.lake, name, version)
        except NoCopyError:
            self.struck["there was no copy"] += 1
        except RefusedError:
            self.struck["an outside commit was refused"] += 1

    def load_again(self) -> None:
        """The owner removes a copy whose rows others have written."""
        name = self.randomness.choice(WATCHED)
        self.watcher.send_signal(15)
        self.watcher.wait(allow(STOP_SECONDS_MAX))
        remove_folder(self.lake, name)
        self.watcher = self._watch()

    def _list_blows(self) -> dict[Callable[[], None], int]:
        own = {self.write_outside: 1, self.load_again: 1}
        if OUTSIDERS[self.to].compacts:
            own |= {self.compact: 3, self.vacuum: 1}
        return super()._list_blows() | own

    def load_marked(self) -> None:
        """Every copy that others have written is loaded, as the page of the protocol says."""
        last = Manifest(self.lake).read_last()
        assert last is not None, "there is no cut"
        for name, each in last.tables.items():
            if any(reason.cause is Cause.OUTSIDE_WRITE for reason in each.reasons):
                self.struck["a copy was marked at the end"] += 1
                remove_folder(self.lake, name)
        again = self._watch_once()
        assert again.returncode == 0, again.stderr

    def _watch_once(self) -> subprocess.CompletedProcess[str]:
        command = [*WARM_PYTHON, "-c", "from watcher.cli import main; main()"]
        command += ["replicate", "--config", str(self.config), "--once"]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=allow(STOP_SECONDS_MAX)
        )


class IcebergReplicaWorld(ReplicaWorld):
    """The same with copies in Iceberg."""

    to = ICEBERG


WORLDS = {each.to: each for each in (ReplicaWorld, IcebergReplicaWorld)}


def run_replica(folder: Path, seed: int, seconds: float, to: str = DELTA) -> Report:
    """A whole run, with copies in a format. Raises AssertionError when the replicator or the server
    fails to obey."""
    with restored_address():
        world = WORLDS[to](folder, seed, "change-stream")
        truth, stop = Truth(), threading.Event()
        writers = [Writer(n, seed, world.database, truth, stop) for n in range(WRITERS)]
        world.writers = writers
        threads = [threading.Thread(target=writer.run, daemon=True) for writer in writers]
        try:
            write_and_strike(world, truth, stop, threads, seconds)
            failures = [repr(writer.failure) for writer in writers if writer.failure]
            world.finish()
            world.load_marked()
            return judge(world, truth, failures)
        finally:
            stop.set()
            world.close()


def list_modes(to: str) -> Sequence[Mode]:
    """What copies of a format can keep."""
    own = FORMATS[to].own
    assert own is not None, "runs have copies without Spark"
    return own.modes


def has_feed(to: str, mode: Mode) -> bool:
    """Whether copies may have the change data feed."""
    own = FORMATS[to].own
    return own is not None and own.feed and mode == LATEST


def judge(world: ReplicaWorld, truth: Truth, problems: list[str]) -> Report:
    """Exact cuts against the truth, row by row, of histories also as the last one has them; then
    ``verify`` of the last one."""
    manifest = Manifest(world.lake)
    cuts = list(manifest.iterate_exact())
    chosen = [*cuts[:1], *world.randomness.sample(cuts[1:], min(len(cuts) - 1, FINGERPRINTS_MAX))]
    read = 0
    for cut in chosen:
        try:
            problems += compare(world, truth, cut)
            read += 1
            if cuts[0].mode == HISTORY:
                problems += compare(world, truth, cuts[0], cut.end)
        except ReplicaError:
            world.struck["a cut was vacuumed, or is before the history"] += 1
    if manifest.read_last() != chosen[0]:
        problems.append("the last cut is not exact")
    copies = open_copies(chosen[0].copies, world.lake, CONSUMER)
    queries = QueryClient(DatabaseAddress.parse(world.database().name))
    report = verify(queries, copies, chosen[0])
    if not (report.equal and report.untouched):
        problems.append(f"verify: {report.to_json()}")
    lines = sum(table.copy_rows for table in report.tables)
    return Report(world.seed, problems, len(truth.commits), lines, read, dict(world.struck))


def compare(world: ReplicaWorld, truth: Truth, cut: Cut, at: int | None = None) -> list[str]:
    """What is wrong with an exact cut, or with a history as of a time before its end."""
    replica = ReplicaAt(cut, open_copies(cut.copies, world.lake, CONSUMER), at)
    end = cut.end if at is None else at
    found: dict[Row, str] = {}
    for name, columns in COLUMNS.items():
        rows = replica.read(name, columns).to_pylist()
        keyed = {(name, tuple(row[key] for key in columns[:-1])): row["Version"] for row in rows}
        if len(keyed) != len(rows):
            return [f"cut {cut.end}: {name} has a key twice"]
        found |= keyed
    expected = {}
    for row, states in truth.history().items():
        place = bisect_right(states, end, key=attrgetter("at"))
        if place and (version := states[place - 1].version) is not None:
            expected[row] = version
    if found == expected:
        return []
    there = world.read_tables(end)
    missing = sorted(expected.items() - found.items(), key=repr)
    extra = sorted(found.items() - expected.items(), key=repr)
    told = "as" if there == expected else "not as"
    return [
        f"{cut.mode} at {end} lacks {missing[:5]}, has too much {extra[:5]};"
        f" Spanner is {told} written"
    ]
