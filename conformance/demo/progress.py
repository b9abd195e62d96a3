"""The live screen of the demo: written, delivered, lag, rows in the index."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from google.cloud.spanner_v1.database import Database
from rich.table import Table

from conformance.demo.settings import DemoSettings
from watcher.model.window import BEGINNING
from watcher.runners.spark.checkpoints import list_committed_batches, list_files, read_windows


@dataclass(slots=True)
class DemoProgress:
    """What the screen shows; counts are rows, the lag is in seconds."""

    written: int = 0
    delivered: int = 0
    micro_batches: int = 0
    lag_seconds: float = 0.0
    index_rows: int = 0
    cleared: int = 0
    driver_kills: int = 0


class Follower:
    """Follows the writer's log and Spark's checkpoint from where it last looked."""

    def __init__(self, settings: DemoSettings) -> None:
        self._settings = settings
        self._offset = 0
        self._newest_commit = BEGINNING
        self._counted: set[int] = set()
        self.written = 0
        self.delivered = 0

    def look(self) -> None:
        """Reads what was added since the last look."""
        self._read_writer_log()
        for number in list_committed_batches(self._settings.checkpoint):
            if number not in self._counted:
                self._counted.add(number)
                self.delivered += sum(map(count_rows, list_files(self._settings.sink, number)))
        if self._settings.cuts_log.exists():
            lines = self._settings.cuts_log.read_text().splitlines()
            self.delivered = sum(json.loads(line)["rows"] for line in lines)

    @property
    def micro_batches(self) -> int:
        """How many micro-batches are committed."""
        return len(self._counted)

    @property
    def lag_seconds(self) -> float:
        """How far the last committed window ends before the newest commit."""
        if not self._counted:
            return 0.0
        reached = read_windows(self._settings.checkpoint, BEGINNING)[max(self._counted)].end
        return max(0.0, (self._newest_commit - reached) / 1_000_000)

    def _read_writer_log(self) -> None:
        if not self._settings.writer_log.exists():
            return
        with self._settings.writer_log.open("rb") as log:
            log.seek(self._offset)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                commit = json.loads(line)
                self.written += len(commit["keys"])
                self._newest_commit = max(self._newest_commit, commit["timestamp"])


def count_rows(path: Path) -> int:
    """The rows of a Parquet file, from its footer."""
    return int(pq.read_metadata(path).num_rows)


def count_index_rows(database: Database, query: str) -> int:
    """The rows in the watching index, by an index-only count."""
    with database.snapshot() as snapshot:
        return int(next(iter(snapshot.execute_sql(query)))[0])


def describe_progress(progress: DemoProgress, began: float, phase: str) -> str:
    """The same as a line, where there is no terminal."""
    return (
        f"{phase} ({time.monotonic() - began:.0f} s): {progress.written:,} written,"
        f" {progress.delivered:,} delivered, {progress.index_rows:,} rows in the index"
    )


def make_screen(progress: DemoProgress, began: float, phase: str) -> Table:
    """The live screen as rich shows it."""
    table = Table(title=f"{phase}  ({time.monotonic() - began:.0f} s)", title_justify="left")
    for heading in ("written", "delivered", "micro-batches", "lag", "rows in index", "cleared"):
        table.add_column(heading, justify="right")
    cells = [
        f"{progress.written:,}",
        f"{progress.delivered:,}",
        f"{progress.micro_batches:,}",
        f"{progress.lag_seconds:.2f} s",
        f"{progress.index_rows:,}",
        f"{progress.cleared:,}",
    ]
    if progress.driver_kills:
        table.add_column("kill -9", justify="right")
        cells.append(str(progress.driver_kills))
    table.add_row(*cells)
    return table
