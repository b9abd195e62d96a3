"""A server that is killed under a running watcher, and comes back: what it costs and says."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fixtures.server import connect, spawn
from fixtures.singers import SINGERS, address_of, make_watchable
from fixtures.warm_python import WarmProcess
from google.api_core.exceptions import GoogleAPICallError, RetryError
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from emulator.process import ServerProcess
from watcher.spanner.database import open_database

COMMAND = ["-u", "-c", "from watcher.cli import main; main()"]
SECONDS_MAX = 60
OUTAGE_SECONDS = 8.0
BEGINS = re.compile(r"does not answer; retrying")
ENDS = re.compile(r"answers again after (\d+\.\d) s")
MANY = range(10, 310)
ROWS_A_COMMIT = 100
PICTURE = b64encode(bytes(200_000))
STOPPING = "press Ctrl-C again to exit at once"


class World:
    """A server that can be killed and started again, and a ``watch`` process."""

    def __init__(self, folder: Path, lease: str = "2s") -> None:
        self.folder = folder
        self.server: ServerProcess = spawn(folder / "data")
        made = connect(self.server.address).database("gone", ddl_statements=[SINGERS])
        made.create().result(60)
        make_watchable(made)
        self.name = str(address_of(made))
        write(made, 1)
        config = folder / "watch.toml"
        config.write_text(
            f'database = "{self.name}"\ntables = ["Singers"]\nconsumer = "one"\n'
            f'start = "earliest"\ninterval = "20ms"\nlease = "{lease}"\n'
            'refresh = "1h"\ngrace = "60s"\n'
        )
        self.log = folder / "watch.log"
        self.process = WarmProcess(
            [*COMMAND, "watch", "--config", str(config)],
            stdout=subprocess.PIPE,
            stderr=self.log.open("w"),
        )

    def await_key(self, key: int) -> None:
        """Until a row is delivered; one whose position was not saved may come again before it."""
        assert self.process.stdout is not None
        while int(json.loads(self.process.stdout.readline())["key"]["SingerId"]) != key:
            pass

    def read_change(self) -> tuple[int, str]:
        """The key and the last name of the next change."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        change = json.loads(line)
        return int(change["key"]["SingerId"]), change["values"]["LastName"]

    def restart(self) -> Database:
        """The server on the same port, with the same data."""
        port = int(self.server.address.rsplit(":", maxsplit=1)[-1])
        self.server = spawn(self.folder / "data", port)
        database: Database = connect(self.server.address).database("gone")
        return database

    def find_log_lines(self, pattern: re.Pattern[str] | str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if re.search(pattern, line)]

    def wait_for(self, pattern: re.Pattern[str] | str) -> None:
        until = time.monotonic() + SECONDS_MAX
        while not self.find_log_lines(pattern):
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.05)

    def cpu_seconds(self) -> float:
        """What the process has used, in user and system mode."""
        status = Path(f"/proc/{self.process.command_pid}/stat").read_text()
        fields = status.rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.server.running:
            self.server.kill()


def write(database: Database, key: int) -> None:
    with database.batch() as batch:
        batch.insert_or_update("Singers", ("SingerId", "LastName"), [(key, "x")])


def write_many(database: Database, name: str, keys: range) -> None:
    """Rows that fill what client and server keep of a stream."""
    for start in range(0, len(keys), ROWS_A_COMMIT):
        some = keys[start : start + ROWS_A_COMMIT]
        with database.batch() as batch:
            rows = [(key, name, PICTURE) for key in some]
            batch.insert_or_update("Singers", ("SingerId", "LastName", "Picture"), rows)


@contextmanager
def running(world: World) -> Iterator[World]:
    try:
        world.await_key(1)
        yield world
    finally:
        world.end()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with running(World(tmp_path)) as new_world:
        yield new_world


def test_an_outage_costs_little_and_is_logged_once_when_it_begins_and_once_when_it_ends(
    world: World,
) -> None:
    world.server.kill()
    world.wait_for(BEGINS)
    begun, used = time.monotonic(), world.cpu_seconds()
    time.sleep(OUTAGE_SECONDS)
    share = (world.cpu_seconds() - used) / (time.monotonic() - begun)
    write(world.restart(), 2)
    world.await_key(2)
    world.wait_for(ENDS)
    assert share < 0.5
    assert len(world.find_log_lines(BEGINS)) == 1
    (line,) = world.find_log_lines(ENDS)
    match = ENDS.search(line)
    assert match is not None
    assert float(match[1]) >= OUTAGE_SECONDS
    assert len(world.log.read_text().splitlines()) == 2


def test_a_window_is_read_again_when_its_stream_cannot_be_resumed(tmp_path: Path) -> None:
    """A query without ORDER BY may meet its rows in another order after a restart of the server."""
    with running(World(tmp_path, lease="60s")) as world:
        database = connect(world.server.address).database("gone")
        write_many(database, "first", MANY)
        newest = dict([world.read_change()])
        write_many(database, "second", MANY[::2])
        world.server.kill()
        world.restart()
        missing = {key: "second" if key in MANY[::2] else "first" for key in MANY}
        while missing:
            key, name = world.read_change()
            newest[key] = name
            if missing.get(key) == name:
                del missing[key]
        assert {newest[key] for key in MANY[::2]} == {"second"}
        assert world.find_log_lines("cannot continue a stream where it broke")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_the_process_at_once(world: World, number: signal.Signals) -> None:
    world.server.kill()
    world.wait_for(BEGINS)
    world.process.send_signal(number)
    world.wait_for(STOPPING)
    world.process.send_signal(number)
    assert world.process.wait(SECONDS_MAX) in (0, 128 + number)


def test_one_signal_ends_it_though_the_server_is_gone(world: World) -> None:
    world.server.kill()
    world.wait_for(BEGINS)
    world.process.send_signal(signal.SIGTERM)
    assert world.process.wait(SECONDS_MAX / 2) == 0, world.log.read_text()


def test_a_transaction_that_found_no_server_does_not_spoil_the_next(tmp_path: Path) -> None:
    server = spawn(tmp_path / "data")
    connect(server.address).database("gone", ddl_statements=[SINGERS]).create().result(60)
    database = open_database(address_of(connect(server.address).database("gone")))
    server.kill()
    with pytest.raises((GoogleAPICallError, RetryError)):
        database.run_in_transaction(insert_singer)
    port = int(server.address.rsplit(":", maxsplit=1)[-1])
    with spawn(tmp_path / "data", port):
        database.run_in_transaction(insert_singer)
        with database.snapshot() as snapshot:
            assert list(snapshot.execute_sql("SELECT SingerId FROM Singers")) == [[1]]


def insert_singer(transaction: Transaction) -> None:
    transaction.insert("Singers", ("SingerId",), [(1,)])
