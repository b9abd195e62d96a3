"""Runs the demo from the empty directory to the verdict."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

from google.cloud.spanner_v1.database import Database
from rich.console import Console
from rich.progress import Progress as Bar

from conformance.demo.delivered import read_ground_truth, read_micro_batches
from conformance.demo.preparation import load_table, make_watchable, read_rows_by_key
from conformance.demo.progress import count_index_rows
from conformance.demo.replica import ReplicaSummary, show_replica, verify_replica
from conformance.demo.settings import ADDRESS, TABLES, DemoOptions, DemoSettings
from conformance.demo.streaming import Streaming
from conformance.demo.summary import DemoSummary, show, summarise
from conformance.demo.verification import verify
from emulator.process import spawn
from watcher.process.terminal.console import UNLIMITED
from watcher.process.terminal.mode import MODE
from watcher.spanner.address import EMULATOR_HOST, DatabaseAddress
from watcher.spanner.database import create_on_emulator
from watcher.spanner.temporary_databases import create_temporarily


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
    """One run, on an embedded server, or in the ``database`` of an instance that is there.
    ``json_output`` keeps everything but the summary off the standard output."""

    def __init__(
        self,
        options: DemoOptions,
        keep: Path | None,
        json_output: bool,
        database: DatabaseAddress | None = None,
    ) -> None:
        self._address = database
        self._options = options
        self._keep = keep
        self._json = json_output
        self._console = Console(stderr=json_output, quiet=MODE.quiet)
        if not self._console.is_terminal:
            self._console.width = UNLIMITED

    def run(self) -> DemoSummary | ReplicaSummary:
        """Does everything; raises when a part breaks, returns a verdict when all ran."""
        with make_directory(self._keep) as directory, ExitStack() as stack:
            settings = self._create_database(directory, stack)
            settings.save()
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

    def _create_database(self, directory: Path, stack: ExitStack) -> DemoSettings:
        """The database, for as long as the ``stack`` is open."""
        options, statements = asdict(self._options), [TABLES[self._options.dialect]]
        if self._address is not None:
            named = str(self._address)
            stack.enter_context(
                create_temporarily(self._address, statements, self._options.dialect)
            )
            self._console.print(f"{named} is created, and dropped at the end")
            return DemoSettings(**options, directory=directory, server="", database=named)
        server = stack.enter_context(spawn(directory / "spanner"))
        settings = DemoSettings(**options, directory=directory, server=server.address)
        os.environ[EMULATOR_HOST] = server.address
        create_on_emulator(ADDRESS, statements, self._options.dialect)
        self._console.print(f"embedded Spanner at {server.address}, data in {settings.data}")
        return settings

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
            return load_table(settings, lambda rows: bar.advance(task, rows))
