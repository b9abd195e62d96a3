"""Runs the demo from the empty directory to the verdict."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from google.cloud.spanner_v1.database import Database
from rich.console import Console
from rich.progress import Progress as Bar

from emulator.process import spawn
from watcher.demo.delivered import read_ground_truth, read_micro_batches
from watcher.demo.preparation import create_database, make_watchable, read_rows_by_key
from watcher.demo.progress import count_index_rows
from watcher.demo.replica import ReplicaSummary, show_replica, verify_replica
from watcher.demo.settings import DemoOptions, DemoSettings
from watcher.demo.streaming import Streaming
from watcher.demo.summary import DemoSummary, show, summarise
from watcher.demo.verification import verify
from watcher.process.terminal.console import UNLIMITED
from watcher.process.terminal.mode import MODE


@contextmanager
def make_directory(keep: Path | None) -> Iterator[Path]:
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

    def __init__(self, options: DemoOptions, keep: Path | None, json_output: bool) -> None:
        self._options = options
        self._keep = keep
        self._json = json_output
        self._console = Console(stderr=json_output, quiet=MODE.quiet)
        if not self._console.is_terminal:
            self._console.width = UNLIMITED

    def run(self) -> DemoSummary | ReplicaSummary:
        """Does everything; raises when a part breaks, returns a verdict when all ran."""
        with make_directory(self._keep) as directory, spawn(directory / "spanner") as server:
            settings = DemoSettings(
                **asdict(self._options), directory=directory, server=server.address
            )
            settings.save()
            os.environ["SPANNER_EMULATOR_HOST"] = server.address
            self._console.print(f"embedded Spanner at {server.address}, data in {settings.data}")
            database = self._load(settings)
            watching = make_watchable(settings, database, self._console)
            before = Streaming(settings, database, watching, self._console).run()
            if settings.to != "parquet":
                return self._verify_replica(settings)
            self._console.print("verifying row by row ...")
            batches = read_micro_batches(settings, watching.beginning_micros)
            verdict = verify(read_ground_truth(settings), batches, read_rows_by_key(database))
            after = count_index_rows(database, watching.count_index)
            summary = summarise(verdict, batches, before, after, settings.driver_kills)
        if self._json:
            Console().print_json(data=summary.as_json())
        else:
            show(summary, Console())
        return summary

    def _verify_replica(self, settings: DemoSettings) -> ReplicaSummary:
        self._console.print("comparing the replica with Spanner ...")
        summary = verify_replica(settings, read_ground_truth(settings))
        if self._json:
            Console().print_json(data=summary.as_json())
        else:
            show_replica(summary, Console())
        return summary

    def _load(self, settings: DemoSettings) -> Database:
        hidden = not self._console.is_terminal
        with Bar(console=self._console, disable=hidden) as bar:
            task = bar.add_task("loading Singers", total=settings.rows)
            return create_database(settings, lambda rows: bar.advance(task, rows))
