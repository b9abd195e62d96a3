"""Runs the demo from the empty directory to the verdict."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from google.cloud.spanner_v1.database import Database
from rich.console import Console
from rich.live import Live
from rich.progress import Progress as Bar

from benchmarks.demo import processes
from benchmarks.demo.clearing import ScheduledClearing
from benchmarks.demo.database import create, rows_by_key
from benchmarks.demo.delivered import ground_truth, micro_batches
from benchmarks.demo.preparation import Watching, make_watchable
from benchmarks.demo.processes import Child
from benchmarks.demo.progress import Follower, Progress, index_rows, screen
from benchmarks.demo.settings import Options, Settings
from benchmarks.demo.summary import Summary, show, summarise
from benchmarks.demo.verification import verify
from emulator.process import spawn

LOOK_EVERY_SECONDS = 0.5
QUERY_START_SECONDS_MAX = 180


@contextmanager
def working_directory(keep: Path | None) -> Iterator[Path]:
    """A new directory: the user's to keep, or a temporary one."""
    if keep is not None:
        keep.mkdir(parents=True)
        yield keep.resolve()
        return
    path = Path(tempfile.mkdtemp(prefix="spanner-watcher-demo-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


class Demo:
    """One run. ``json_output`` keeps everything but the summary off the standard output."""

    def __init__(self, options: Options, keep: Path | None, json_output: bool) -> None:
        self._options = options
        self._keep = keep
        self._json = json_output
        self._console = Console(stderr=json_output)
        self._progress = Progress()

    def run(self) -> Summary:
        """Does everything; raises when a part breaks, returns a verdict when all ran."""
        with working_directory(self._keep) as directory, spawn(directory / "spanner") as server:
            settings = Settings(**asdict(self._options), directory=directory, server=server.address)
            settings.save()
            os.environ["SPANNER_EMULATOR_HOST"] = server.address
            self._console.print(f"embedded Spanner at {server.address}, data in {settings.data}")
            database = self._load(settings)
            watching = make_watchable(settings, database, self._console)
            before = self._stream(settings, database, watching)
            summary = self._verify(settings, database, watching, before)
        if self._json:
            Console().print_json(data=summary.as_json())
        else:
            show(summary, self._console)
        return summary

    def _load(self, settings: Settings) -> Database:
        with Bar(console=self._console) as bar:
            task = bar.add_task("loading Singers", total=settings.rows)
            return create(settings, lambda rows: bar.advance(task, rows))

    def _stream(self, settings: Settings, database: Database, watching: Watching) -> int:
        """Writes, streams and clears; returns the rows in the index before the last clearing."""
        began, follower = time.monotonic(), Follower(settings)
        query = self._start_query(settings, watching)
        children = [query]
        try:
            with Live(console=self._console, refresh_per_second=4) as live:

                def look(phase: str) -> None:
                    follower.look()
                    self._note(follower, index_rows(database, watching.count_index))
                    live.update(screen(self._progress, began, phase))
                    for child in children:
                        child.check()
                    time.sleep(LOOK_EVERY_SECONDS)

                wait_for_first_batch(settings, look)
                with ScheduledClearing(settings, watching) as clearing:
                    self._clearing = clearing
                    children = self._write(settings, watching, children, look)
                    settings.drain_request.touch()
                    while children[0].running:
                        look("draining")
                    children[0].check()
                before = index_rows(database, watching.count_index)
                self._progress.cleared += clearing.now()
                return before
        finally:
            for child in children:
                child.kill()

    def _write(
        self,
        settings: Settings,
        watching: Watching,
        children: list[Child],
        look: Callable[[str], None],
    ) -> list[Child]:
        """Runs the writer to its end, and kills the Spark driver as often as asked."""
        writer = processes.start(
            "writer", settings, "benchmarks.demo.writer", [str(settings.directory / "settings.json")]
        )
        children.append(writer)
        began = time.monotonic()
        pause = settings.write_seconds / (settings.driver_kills + 1)
        kills = [pause * number for number in range(1, settings.driver_kills + 1)]
        while writer.running:
            look("writing and streaming")
            if kills and time.monotonic() - began >= kills[0]:
                kills.pop(0)
                children[0].kill()
                self._progress.driver_kills += 1
                children[0] = self._start_query(settings, watching)
        writer.check()
        return children

    def _start_query(self, settings: Settings, watching: Watching) -> Child:
        arguments = [str(settings.directory / "settings.json"), watching.beginning]
        return processes.start("query", settings, "benchmarks.demo.query", arguments)

    def _note(self, follower: Follower, in_index: int) -> None:
        self._progress.written = follower.written
        self._progress.delivered = follower.delivered
        self._progress.micro_batches = follower.micro_batches
        self._progress.lag_seconds = follower.lag_seconds
        self._progress.index_rows = in_index

    def _verify(
        self, settings: Settings, database: Database, watching: Watching, before: int
    ) -> Summary:
        self._console.print("verifying row by row ...")
        batches = micro_batches(settings, watching.beginning_micros)
        verdict = verify(ground_truth(settings), batches, rows_by_key(database))
        after = index_rows(database, watching.count_index)
        return summarise(verdict, batches, before, after, self._progress.driver_kills)


def wait_for_first_batch(settings: Settings, look: Callable[[str], None]) -> None:
    """Until Spark has planned a batch: the latency of a run should not hold Spark's own start."""
    limit = time.monotonic() + QUERY_START_SECONDS_MAX
    while not any((settings.checkpoint / "offsets").glob("[0-9]*")):
        if time.monotonic() > limit:
            raise processes.ChildError(
                f"Spark planned no micro-batch within {QUERY_START_SECONDS_MAX} s;"
                f" see {settings.log('query')}"
            )
        look("starting Spark")
