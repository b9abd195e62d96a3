"""Shows how far loads are, a bar for each table, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from watcher.cli.output import ERRORS
from watcher.replica.loads import LoadProgress
from watcher.replica.table_chunks import WatchLoad


class LoadBars:
    """Of the tables of a replica. How much is done is estimated, and so is the time that is left.
    The screen is redrawn only while something is loaded."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def update(self, table: str, progress: LoadProgress | None) -> None:
        """A page of a table was read; None: its load has ended."""
        if progress is None:
            if table in self._tasks:
                self._bars.remove_task(self._tasks.pop(table))
            if not self._tasks:
                self._bars.stop()
            return
        said = f"{progress.rows:,} rows, {progress.bytes / 1_000_000:,.1f} MB"
        if table not in self._tasks:
            self._tasks[table] = self._bars.add_task(f"loading {table}", total=None, said=said)
            self._bars.start()
        total = None if progress.share is None else 1.0
        self._bars.update(
            self._tasks[table], total=total, completed=progress.share or 0.0, said=said
        )


@contextmanager
def shown_loads(quiet: bool) -> Iterator[WatchLoad | None]:
    """What takes the progress of loads; None where nobody would see it."""
    if quiet or not ERRORS.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[said]}"),
        TimeRemainingColumn(),
    )
    bars = Progress(*columns, console=ERRORS)
    try:
        yield LoadBars(bars).update
    finally:
        bars.stop()
