"""The middle of the demo: the writer writes, Spark delivers, the index is cleared, all at once."""

from __future__ import annotations

import time
from contextlib import nullcontext

from google.cloud.spanner_v1.database import Database
from rich.console import Console
from rich.live import Live

from conformance.demo import processes
from conformance.demo.preparation import DemoTable
from conformance.demo.processes import ChildError, DemoProcess
from conformance.demo.progress import (
    DemoProgress,
    Follower,
    count_index_rows,
    describe_progress,
    make_screen,
)
from conformance.demo.settings import DemoSettings
from watcher.consumers.clearing import Clearing
from watcher.consumers.positions import SpannerPositions
from watcher.runners.schedule import Schedule
from watcher.tables.values import WatchedTable

LOOK_EVERY_SECONDS = 0.5
QUERY_START_SECONDS_MAX = 180


class Streaming:
    """One run of writer, query and clearing; ``run`` returns when everything is delivered."""

    def __init__(
        self, settings: DemoSettings, database: Database, watching: DemoTable, console: Console
    ) -> None:
        self._settings = settings
        self._database = database
        self._watching = watching
        self._clearing = ScheduledClearing(settings, database, watching.table)
        self._follower = Follower(settings)
        self._progress = DemoProgress()
        self._began = time.monotonic()
        self._console = console
        self._live = Live(console=console, refresh_per_second=4)
        self._said = ""
        self._children: dict[str, DemoProcess] = {}

    def run(self) -> int:
        """Returns how many rows were in the index before the last clearing."""
        try:
            with self._live if self._console.is_terminal else nullcontext():
                self._start_query()
                self._wait_for_first_batch()
                with self._clearing:
                    self._write()
                    self._drain()
                before = count_index_rows(self._database, self._watching.count_index)
                self._clearing.now()
                self._look("done", pause_seconds=0)
                return before
        finally:
            for child in self._children.values():
                child.kill()

    def _start_query(self) -> None:
        arguments = [str(self._settings.file), self._watching.beginning]
        module = "conformance.demo.query"
        self._children["query"] = processes.start_child("query", self._settings, module, arguments)

    def _wait_for_first_batch(self) -> None:
        """The latency of a run should not hold the start of Spark itself."""
        limit = time.monotonic() + QUERY_START_SECONDS_MAX
        while not any((self._settings.checkpoint / "commits").glob("[0-9]*")):
            if time.monotonic() > limit:
                raise ChildError(
                    f"Spark finished no micro-batch within {QUERY_START_SECONDS_MAX} s:"
                    f" see {self._settings.log('query')}"
                )
            self._look("starting Spark")

    def _write(self) -> None:
        """Runs the writer to its end, and kills the Spark driver as often as asked."""
        writer = processes.start_child(
            "writer", self._settings, "conformance.demo.writer", [str(self._settings.file)]
        )
        self._children["writer"] = writer
        began = time.monotonic()
        pause = self._settings.write_seconds / (self._settings.driver_kills + 1)
        while writer.running:
            self._look("writing and streaming")
            kills = self._progress.driver_kills
            due = began + pause * (kills + 1)
            if kills < self._settings.driver_kills and time.monotonic() >= due:
                self._children["query"].kill()
                self._progress.driver_kills += 1
                self._start_query()
        writer.check()

    def _drain(self) -> None:
        """Asks the query to deliver what is left and to end."""
        self._settings.drain_request.touch()
        while self._children["query"].running:
            self._look("draining")
        self._look("drained", pause_seconds=0)

    def _look(self, phase: str, pause_seconds: float = LOOK_EVERY_SECONDS) -> None:
        """Shows where things stand; raises when a process has ended badly."""
        self._follower.look()
        self._progress.written = self._follower.written
        self._progress.delivered = self._follower.delivered
        self._progress.micro_batches = self._follower.micro_batches
        self._progress.lag_seconds = self._follower.lag_seconds
        self._progress.index_rows = count_index_rows(self._database, self._watching.count_index)
        self._progress.cleared = self._clearing.cleared
        if self._console.is_terminal:
            self._live.update(make_screen(self._progress, self._began, phase))
        elif phase != self._said:
            self._said = phase
            self._console.print(describe_progress(self._progress, self._began, phase))
        for child in self._children.values():
            child.check()
        time.sleep(pause_seconds)


class ScheduledClearing:
    """Clears at the settings' interval while the ``with`` block runs; ``cleared`` counts rows."""

    def __init__(self, settings: DemoSettings, database: Database, table: WatchedTable) -> None:
        positions = SpannerPositions(database)
        self._clearing = Clearing(database, table, positions)
        self._schedule = Schedule()
        self._schedule.every(settings.clear_every_seconds, "clear", self.now)
        self.cleared = 0

    def now(self) -> None:
        """Clears once."""
        self.cleared += self._clearing.clear().rows

    def __enter__(self) -> ScheduledClearing:
        self._schedule.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._schedule.stop()
        self._schedule.wait()
