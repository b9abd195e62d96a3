"""What each command does while the service refuses calls, ends streams, or loses sessions: it goes
on by itself, and what it has written in the end is what Spanner has, row by row."""

from __future__ import annotations

import json
import logging
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from fixtures.commands import run_command
from fixtures.consumers import options, write
from fixtures.pace import allow
from fixtures.replicas import open_table, read_delta
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, make_watchable, write_singers
from fixtures.watcher_threads import ChangeCollector, run_without_error
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.instance import Instance

from ddl.migration.apply import read_schema
from emulator.process import ServerProcess
from watcher import Watcher
from watcher.model.errors import DatabaseNotFoundError

STREAM = "CREATE CHANGE STREAM Everything FOR Singers"
ALL, CHANGED = range(60), range(40, 60)
UNAVAILABLE = 3
SECONDS_MAX = 60
OLD, NEW = "before", "after"
FAULTS: dict[str, dict[str, float]] = {
    "RESOURCE_EXHAUSTED": {"exhausted_call_probability": 0.3, "seed": 1},
    "UNAVAILABLE": {"unavailable_call_probability": 0.3, "seed": 2},
    "DEADLINE_EXCEEDED": {"deadline_stream_probability": 0.3, "seed": 3},
    "lost sessions": {"lost_sessions": 3},
    "broken streams": {"unavailable_after_rows": 7, "unavailable_streams_max": 9},
    "ABORTED": {"aborted_commit_probability": 0.3, "seed": 4},
}
SetFaults = Callable[..., None]
Truth = dict[int, str]
Fault = dict[str, float]


class World:
    """A watched database, and the commands that run on it, with or without a fault."""

    def __init__(self, database: Database, folder: Path, inject: SetFaults) -> None:
        self.database, self.lake, self._inject = database, folder / "lake", inject
        self.fault: dict[str, float] = {}
        """Of the commands that run from now on."""

    def run(self, *arguments: str) -> str:
        """The output of a command, which has to end well."""
        done = self._run(arguments)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout

    def run_ddl(self, *arguments: str) -> None:
        """A command that changes the schema. One that loses its session says that it may be run
        again: it then does what is left."""
        done = self._run(("ddl", *arguments))
        if done.returncode == UNAVAILABLE:
            assert "the session was lost, run the command again" in done.stderr
            self.fault = {}
            done = self._run(("ddl", *arguments))
        assert done.returncode == 0, done.stderr

    def _run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        self._inject(**self.fault)
        done = run_command(*arguments, "-d", str(address_of(self.database)))
        self._inject()
        return done

    def read_truth(self) -> Truth:
        """The rows as Spanner has them."""
        with self.database.snapshot() as snapshot:
            return dict(snapshot.execute_sql("SELECT SingerId, LastName FROM Singers"))

    def watch(self, *more: str) -> str:
        return self.run("watch", "-t", "Singers", "--consumer", "c", "--once", *more)

    def replicate(self) -> None:
        """Everything up to now; the copy then has each row once, as Spanner has it."""
        where = ("--to", f"delta:{self.lake}", "--consumer", "r", "--once")
        self.run("replicate", "-t", "Singers", *where)
        rows = read_delta(open_table(self.lake, "Singers")).to_pylist()
        truth = self.read_truth()
        assert len(rows) == len(truth)
        assert {row["SingerId"]: row["LastName"] for row in rows} == truth


def check_watched(world: World, *more: str) -> None:
    """Each row that has changed comes once, with its value, and no other row."""
    changes = [json.loads(line) for line in world.watch(*more).splitlines()]
    assert len(changes) == len({change["id"] for change in changes}) == len(CHANGED)
    truth = world.read_truth()
    delivered = {int(each["key"]["SingerId"]): each["values"]["LastName"] for each in changes}
    assert delivered == {key: truth[key] for key in CHANGED}


def watch_poll(world: World, fault: Fault) -> None:
    world.watch("--from", "earliest")
    write_singers(world.database, CHANGED, NEW)
    world.fault = fault
    check_watched(world)


def watch_stream(world: World, fault: Fault) -> None:
    world.watch("--stream", "Everything")
    write_singers(world.database, CHANGED, NEW)
    world.fault = fault
    check_watched(world, "--stream", "Everything")


def replicate(world: World, fault: Fault) -> None:
    world.replicate()
    write_singers(world.database, CHANGED, NEW)
    world.fault = fault
    world.replicate()


def load_copies(world: World, fault: Fault) -> None:
    world.fault = fault
    world.replicate()


def clear(world: World, fault: Fault) -> None:
    world.watch("--from", "earliest")
    before, world.fault = world.read_truth(), fault
    world.run("clear", "-t", "Singers")
    with world.database.snapshot() as snapshot:
        marked = "SELECT COUNT(*) FROM Singers WHERE LastModified IS NOT NULL"
        assert list(snapshot.execute_sql(marked)) == [[0]]
    assert world.read_truth() == before


def verify(world: World, fault: Fault) -> None:
    world.replicate()
    world.fault = fault
    shown = world.run("verify", "--to", f"delta:{world.lake}")
    assert f"equal  Singers: {len(ALL)} rows in Spanner, {len(ALL)} in the copy" in shown


def apply_ddl(world: World, fault: Fault) -> None:
    before, planned = world.read_truth(), read_schema(world.database)
    world.fault = fault
    world.run_ddl("rollback")
    assert "LastModified" not in str(read_schema(world.database).table("Singers"))
    world.run_ddl("apply", "-t", "Singers", "--shards", "8")
    assert read_schema(world.database).table("Singers") == planned.table("Singers")
    assert world.read_truth() == before


COMMANDS = (watch_poll, watch_stream, replicate, load_copies, clear, verify, apply_ddl)


@pytest.fixture
def world(create_database: CreateDatabase, faults: SetFaults, tmp_path: Path) -> World:
    database = create_database(SINGERS, STREAM)
    make_watchable(database)
    write_singers(database, ALL, OLD)
    return World(database, tmp_path, faults)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_command_goes_on_by_itself_and_writes_what_spanner_has(
    world: World, fault: str, command: Callable[[World, Fault], None]
) -> None:
    command(world, FAULTS[fault])


@pytest.mark.parametrize("fault", ["unavailable_call_probability", "exhausted_call_probability"])
def test_a_burst_is_two_lines_in_the_log_and_a_number(
    music: Database, faults: SetFaults, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    def lines(text: str) -> list[str]:
        said = f"{address_of(music)} {text}"  # the server has databases of other tests
        return [each.getMessage() for each in caplog.records if said in each.getMessage()]

    def wait_for(text: str) -> None:
        until = time.monotonic() + allow(SECONDS_MAX)
        while not lines(text):
            assert time.monotonic() < until, caplog.text
            time.sleep(0.05)

    caplog.set_level(logging.WARNING, "watcher")
    seen = ChangeCollector()
    watcher = Watcher(**options(music, consumer="orders", metrics={"port": 0}))
    watcher.on_change(seen)
    with run_without_error(watcher):
        write(music, 1)
        seen.wait(1)
        faults(**{fault: 1.0})
        wait_for("does not answer; retrying")
        faults()
        wait_for("answers again after")
        write(music, 2)
        seen.wait_until(lambda: seen.changes[-1].key["SingerId"] == 2)
    assert len(lines("does not answer; retrying")) == len(lines("answers again after")) == 1
    assert {change.key["SingerId"] for change in seen.changes} == {1, 2}
    sample = watcher.metrics.registry.get_sample_value
    assert (sample("spanner_watcher_failed_calls", {"consumer": "orders"}) or 0) > 0


def test_a_watcher_whose_database_is_dropped_ends_and_says_so(
    instance: Instance, server: ServerProcess, caplog: pytest.LogCaptureFixture
) -> None:
    database = instance.database("dropped-while-watched", ddl_statements=[SINGERS])
    database.create().result(30)
    make_watchable(database)
    write_singers(database, [1], OLD)
    watcher = Watcher(**options(database, tables=["Singers"], consumer="orders"))
    watcher.on_change(lambda _: database.drop())
    with pytest.raises(DatabaseNotFoundError, match="Database not found"):
        watcher.run()
    (line,) = [each.getMessage() for each in caplog.records if "stopping" in each.getMessage()]
    assert "check its name" in line
