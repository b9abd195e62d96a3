"""Shows how far a schema update is, and says that it goes on where a command is interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import Progress

from ddl.migration.apply import Progress as Report
from ddl.migration.updates import SchemaUpdate
from watcher.cli.output import ERRORS

GOES_ON = (
    "interrupted: Spanner goes on with the statements that it has begun; 'spanner-watcher ddl"
    " status' shows how far they are, and the same command again does what is left"
)


@contextmanager
def shown_progress(phase: str, quiet: bool) -> Iterator[Report]:
    """What takes the progress of a schema update: a bar on a terminal; elsewhere a line for each
    statement, and for each time that Spanner begins or ends to throttle it."""
    begun, told = [False], [("", 0, False)]
    with Progress(console=ERRORS, disable=quiet or not ERRORS.is_terminal) as bar:
        task = bar.add_task(phase, total=None)

        def report(update: SchemaUpdate) -> None:
            begun[0] = True
            done = update.done + update.percent / 100
            text = f"{phase}, {update.describe()}"
            bar.update(task, description=text, total=len(update.statements), completed=done)
            state = (update.operation, update.done, update.throttled)
            running = update.done < len(update.statements)
            if not quiet and not ERRORS.is_terminal and running and state != told[0]:
                told[0] = state
                ERRORS.print(text)

        try:
            yield report
        except KeyboardInterrupt:
            if begun[0] and not quiet:
                ERRORS.print(GOES_ON)
            raise
