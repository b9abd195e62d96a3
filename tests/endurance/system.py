"""The server, the application and the consumers of a run, and what is done to them."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

from fixtures.pace import allow
from google.api_core.exceptions import GoogleAPICallError, RetryError
from google.cloud.spanner_v1 import KeySet

from conformance.embedded import EmbeddedSpanner
from conformance.schema_changes import SchemaChange
from ddl.migration.apply import apply_plan, read_schema
from ddl.migration.plan import make_plan
from emulator.process import ServerProcess, spawn
from endurance.deliveries import Output
from endurance.gauges import Event, Sample, Sampler, StalenessLog, look_at_process, measure_disk
from endurance.load import SCHEMA
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import Column, Index, KeyPart, Table
from spanner_schema.model.steps import (
    AddColumn,
    CreateIndex,
    CreateTable,
    DropColumn,
    DropIndex,
    DropTable,
)
from watcher.consumers.clearing import Clearing
from watcher.consumers.positions import SpannerPositions
from watcher.model.errors import UnavailableError
from watcher.tables.discovery import discover_table

STEADY, KILLED, SERVER = "steady", "killed", "server"
SHARDS = 8
RETURN_SECONDS_MAX = 120.0
ROOT = Path(__file__).resolve().parents[2]
PATHS = os.pathsep.join((str(ROOT), str(ROOT / "tests")))
COMMAND = ["-c", "from watcher.cli import main; main()", "watch", "--config"]
TEXT = Type(TypeCode.STRING)
CHANGES = (
    SchemaChange("Extra", AddColumn("Load", Column("Extra", TEXT)), DropColumn("Load", "Extra")),
    SchemaChange(
        "LoadByVersion",
        CreateIndex(Index("LoadByVersion", "Load", (KeyPart("Version"),))),
        DropIndex("LoadByVersion"),
    ),
    SchemaChange(
        "Aside",
        CreateTable(Table("Aside", (Column("Id", TEXT),), (KeyPart("Id"),))),
        DropTable("Aside"),
    ),
)


@dataclass
class Consumer:
    """A consumer and its process."""

    name: str
    config: Path
    log: Path
    output: Output = field(default_factory=Output)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts a process, with all of its imports: its memory is a user's."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *COMMAND, str(self.config)], stdout=subprocess.PIPE, stderr=log
            )
        assert self.process.stdout is not None
        self.output.read(self.process.stdout)

    @property
    def exit_code(self) -> int | None:
        """That of its process; None while it runs."""
        return self.process.poll() if self.process is not None else None

    def kill(self) -> None:
        """kill -9."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def drain(self) -> None:
        """Stops it, and lets a last process deliver everything that there is."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(allow(RETURN_SECONDS_MAX))
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *COMMAND, str(self.config), "--once"],
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self.process.stdout is not None
        self.output.read(self.process.stdout)
        code = self.process.wait(allow(RETURN_SECONDS_MAX))
        self.output.join()
        if code != 0:
            raise RuntimeError(f"consumer '{self.name}' ended with {code}, see {self.log}")


class Endurance:
    """The server, the application, the consumers, and what is done to them."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self.folder = folder
        self.options = options
        self.stopped = False
        self.minutes = 0.0
        """For how long it ran."""
        self.kills: list[Event] = []
        self.changes: list[Event] = []
        self.spanner = EmbeddedSpanner(folder / "data", "endurance", 0.0, spawn=self._spawn)
        database = self.spanner.create(SCHEMA)
        plan = make_plan(read_schema(database), ["Load"], WatchOptions(shards=SHARDS))
        apply_plan(database, plan)
        self.consumers = {name: self._configure(name, database.name) for name in (STEADY, KILLED)}
        self.logs = {name: self._log_staleness(name) for name in self.consumers}
        self.sampler = Sampler(folder / "samples.jsonl", self._sample, list(self.logs.values()))
        self.load: subprocess.Popen[bytes] | None = None

    def _spawn(self, *given: Any) -> ServerProcess:
        self.server = spawn(*given)
        return self.server

    def _log_staleness(self, name: str) -> StalenessLog:
        output = self.consumers[name].output
        return StalenessLog(lambda: output.newest)

    def _configure(self, name: str, database: str) -> Consumer:
        config = self.folder / f"{name}.toml"
        config.write_text(
            f"""
            database = "{database}"
            tables = ["Load"]
            consumer = "{name}"
            start = "earliest"
            interval = "{self.options.interval}"
            lease = "5s"
            standby = true
            [clearing]
            every = "{self.options.clear_every}"
            """
        )
        return Consumer(name, config, self.folder / f"{name}.log")

    # What is looked at.

    def _sample(self) -> Sample:
        pids = {SERVER: self.server.pid}
        for name, consumer in self.consumers.items():
            if consumer.process is not None:
                pids[name] = consumer.process.pid
        found = {name: look_at_process(pid) for name, pid in pids.items()}
        return Sample(
            time.time(),
            {name: look for name, look in found.items() if look is not None},
            self._count_index(),
            measure_disk(self.folder / "data"),
        )

    def _count_index(self) -> int | None:
        """The rows of the index; None while the server does not answer."""
        try:
            database = self.spanner.connect()
            table = discover_table(database, "Load")
            return Clearing(database, table, SpannerPositions(database)).count().rows
        except (GoogleAPICallError, RetryError):
            return None

    # What is done.

    def start(self) -> None:
        """Consumers first, then the application."""
        for consumer in self.consumers.values():
            consumer.start()
        self._await_positions()
        database = self.spanner.connect().name
        command = [sys.executable, "-m", "endurance.load", database, str(self.folder / "truth")]
        command += ["--rate", str(self.options.rate), "--keys", str(self.options.keys)]
        command += ["--seed", str(self.options.seed)]
        with (self.folder / "load.log").open("ab") as log:
            self.load = subprocess.Popen(
                command, stderr=log, env=os.environ | {"PYTHONPATH": PATHS}
            )
        self.sampler.start()

    def _await_positions(self) -> None:
        positions = SpannerPositions(self.spanner.connect())
        ends = time.monotonic() + allow(RETURN_SECONDS_MAX)
        while True:
            try:
                if all(positions.load_all(name) for name in self.consumers):
                    return
            except (GoogleAPICallError, RetryError):
                pass  # the table of positions is not there yet
            if time.monotonic() > ends:
                raise RuntimeError(f"the consumers do not register, see {self.folder}")
            time.sleep(0.1)

    def kill(self, what: str) -> None:
        """kill -9 of the server or of a consumer, which is started again at once."""
        self.kills.append(Event(time.time(), what))
        if what == SERVER:
            self.spanner.restart()
        else:
            self.consumers[what].kill()
            self.consumers[what].start()

    def change_schema(self, change: SchemaChange) -> None:
        """Makes a change, or takes it back."""
        began = time.time()
        statement = self.spanner.change_schema(change)
        self.changes.append(Event(began, statement or f"{change.sign}: refused"))

    def stop(self, *_signal: object) -> None:
        """Lets the run end now."""
        self.stopped = True

    def revive(self) -> None:
        """Starts a consumer again that found no server at its start, as systemd would. Raises
        RuntimeError where something else has ended that nobody killed."""
        assert self.load is not None
        if self.load.poll() is not None:
            raise RuntimeError(f"the application has ended, see {self.folder / 'load.log'}")
        for consumer in self.consumers.values():
            if consumer.exit_code == UnavailableError.exit_code:
                consumer.start()
            elif consumer.exit_code is not None:
                raise RuntimeError(f"consumer '{consumer.name}' has ended, see {consumer.log}")

    def run(self) -> None:
        """Kills and changes by the clock, until the time is over or somebody stops it; then all is
        delivered."""
        before = signal.signal(signal.SIGTERM, self.stop)
        try:
            self._kill_and_change()
        finally:
            signal.signal(signal.SIGTERM, before)
        self.sampler.stop()
        assert self.load is not None
        self.load.send_signal(signal.SIGTERM)
        self.load.wait(allow(RETURN_SECONDS_MAX))
        for consumer in self.consumers.values():
            consumer.drain()

    def _kill_and_change(self) -> None:
        options = self.options
        began = time.monotonic()
        kinds, changes = cycle((KILLED, SERVER, KILLED)), cycle(CHANGES)
        kill_at, change_at = options.kill_every, options.change_every
        while not self.stopped and (now := time.monotonic() - began) < options.minutes * 60:
            if now >= kill_at:
                self.kill(next(kinds))
                kill_at += options.kill_every
            elif now >= change_at:
                self.change_schema(next(changes))
                change_at += options.change_every
            time.sleep(0.1)
            self.revive()
        self.minutes = (time.monotonic() - began) / 60

    def close(self) -> None:
        """Ends the processes."""
        for process in (self.load, *(each.process for each in self.consumers.values())):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
        self.spanner.close()

    def read_table(self) -> set[tuple[int, int]]:
        """Keys and versions that the table has now."""
        with self.spanner.connect().snapshot() as snapshot:
            rows = snapshot.read("Load", ("Id", "Version"), KeySet(all_=True))
            return {(key, version) for key, version in rows}
