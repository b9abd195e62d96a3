"""``spanner-watcher ctl``: what operators ask of a running consumer, through the database."""

from __future__ import annotations

from typing import Annotated

import typer

from watcher.cli.common import DatabaseOption, PositionsOption
from watcher.cli.output import CONSOLE
from watcher.consumers import Command, Consumers
from watcher.database import DatabaseAddress, connect
from watcher.positions import TABLE, SpannerPositions, consumers_table

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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the positions that would go.")
    ] = False,
) -> None:
    """Take a consumer that is gone for good off the list, so that clearing goes on without it.

    Its position is lost: what it has not delivered may be cleared from the index.
    """
    client = connect(DatabaseAddress.parse(database))
    positions = SpannerPositions(client, positions_table)
    positions.create()
    consumers = Consumers(client, consumers_table(positions_table))
    consumers.create()
    if dry_run:
        tables = ", ".join(sorted(positions.of(name))) or "none"
        CONSOLE.print(f"{name}: positions that would go: {tables}")
        return
    consumers.forget(name)
    CONSOLE.print(f"{name}: {positions.forget(name)} positions removed")
