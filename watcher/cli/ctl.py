"""``spanner-watcher ctl``."""

from __future__ import annotations

from typing import Annotated

import typer

from watcher.cli import actions
from watcher.cli.options import (
    POSITIONS_TABLE,
    DatabaseOption,
    DryRunOption,
    PositionsTableOption,
)
from watcher.consumers.states import Command
from watcher.terminal.commands import CommandApp

app = CommandApp(
    help="Pause, resume, drain or stop a running consumer.\n\n"
    "Works from any machine. The consumer obeys when it renews its lease, within seconds.",
)
ConsumerArgument = Annotated[str, typer.Argument(metavar="CONSUMER", help="The consumer's name.")]


@app.command()
def pause(
    name: ConsumerArgument,
    database: DatabaseOption,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
) -> None:
    """Deliver nothing until resumed.

    The consumer keeps its name, and clearing waits for it."""
    actions.ctl.send_command(database, name, positions_table, Command.PAUSE)


@app.command()
def resume(
    name: ConsumerArgument,
    database: DatabaseOption,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
) -> None:
    """Continue after a pause, or take back a drain that is not done."""
    actions.ctl.send_command(database, name, positions_table, Command.RESUME)


@app.command()
def drain(
    name: ConsumerArgument,
    database: DatabaseOption,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
) -> None:
    """Deliver everything up to now, then stop."""
    actions.ctl.send_command(database, name, positions_table, Command.DRAIN)


@app.command()
def stop(
    name: ConsumerArgument,
    database: DatabaseOption,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
) -> None:
    """Stop after the current window."""
    actions.ctl.send_command(database, name, positions_table, Command.STOP)


@app.command()
def forget(
    name: ConsumerArgument,
    database: DatabaseOption,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table", "-t", metavar="TABLE", help="Unregister only this table; repeatable."
        ),
    ] = None,
    dry_run: DryRunOption = False,
) -> None:
    """Unregister a consumer that will not come back.

    Clearing then no longer waits for it. Removes its position: what it has not delivered may then
    be cleared from the index. Fails for a running consumer, except for tables that it no longer
    watches.
    """
    actions.ctl.unregister_consumer(database, name, positions_table, table, dry_run)


@app.command()
def merge(
    name: ConsumerArgument,
    database: DatabaseOption,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
    dry_run: DryRunOption = False,
) -> None:
    """Merge the parts of a shared consumer into one.

    Its position in each table becomes the least of its parts: nothing is lost, some rows come
    again. The next start may divide it into another number of parts, or run as a single instance.
    Fails while an instance runs.
    """
    actions.ctl.merge_consumer(database, name, positions_table, dry_run)
