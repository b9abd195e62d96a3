"""``spanner-watcher ctl``: what operators ask of a running consumer, through the database."""

from __future__ import annotations

from typing import Annotated

import typer

from watcher.cli.common import DatabaseOption, PositionsOption
from watcher.cli.output import CONSOLE
from watcher.consumers.leases import Consumers
from watcher.consumers.positions import TABLE, consumers_table
from watcher.consumers.positions.unregister import unregister
from watcher.consumers.states import Command
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect

app = typer.Typer(
    no_args_is_help=True,
    help="Pause, resume, drain or stop a running consumer from any machine."
    " It obeys with the next renewal of its lease, within seconds.",
)
NameArgument = Annotated[str, typer.Argument(metavar="CONSUMER", help="The consumer's name.")]


def ask(database: str, name: str, positions_table: str, command: Command) -> None:
    """Leaves a command for a consumer."""
    client = connect(DatabaseAddress.parse(database))
    consumers = Consumers(client, consumers_table(positions_table))
    consumers.create()
    consumers.ask(name, command)
    CONSOLE.print(f"{name}: asked to {command}")


@app.command()
def pause(
    name: NameArgument, database: DatabaseOption, positions_table: PositionsOption = TABLE
) -> None:
    """Deliver nothing until resumed; the name stays taken and clearing waits."""
    ask(database, name, positions_table, Command.PAUSE)


@app.command()
def resume(
    name: NameArgument, database: DatabaseOption, positions_table: PositionsOption = TABLE
) -> None:
    """Go on after a pause."""
    ask(database, name, positions_table, Command.RESUME)


@app.command()
def drain(
    name: NameArgument, database: DatabaseOption, positions_table: PositionsOption = TABLE
) -> None:
    """Deliver everything up to now, then stop."""
    ask(database, name, positions_table, Command.DRAIN)


@app.command()
def stop(
    name: NameArgument, database: DatabaseOption, positions_table: PositionsOption = TABLE
) -> None:
    """Stop after the window under way."""
    ask(database, name, positions_table, Command.STOP)


@app.command()
def forget(
    name: NameArgument,
    database: DatabaseOption,
    positions_table: PositionsOption = TABLE,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table", "-t", help="Unregister this table only; may be given several times."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the positions that would go.")
    ] = False,
) -> None:
    """Unregister a consumer that is gone for good, so that clearing goes on without it.

    Its position is lost: what it has not delivered may be cleared from the index. A consumer that
    is alive is refused, unless it does not watch the tables that are named any more.
    """
    client = connect(DatabaseAddress.parse(database))
    tables = unregister(client, positions_table, name, table, dry_run)
    if dry_run:
        shown = ", ".join(sorted(tables)) or "none"
        CONSOLE.print(f"{name}: positions that would go: {shown}")
    else:
        CONSOLE.print(f"{name}: {len(tables)} positions removed")
