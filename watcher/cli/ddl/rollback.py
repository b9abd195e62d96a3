"""``ddl rollback``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.progress import Progress

from ddl.apply import plan_rollback, roll_back
from watcher.cli.common import DatabaseOption, JsonOption
from watcher.cli.output import CONSOLE, print_json
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect


def command(
    database: DatabaseOption,
    tables: Annotated[
        list[str] | None,
        typer.Option("--table", "-t", help="A table; repeatable. Default: all recorded tables."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the statements; change nothing.")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Remove what 'ddl apply' added, and only that. Rows and other columns stay.

    Fails if another object depends on what would be dropped. Safe to run again.
    """
    client = connect(DatabaseAddress.parse(database))
    statements, selected = plan_rollback(client, tables or ())
    if json_output:
        print_json({"tables": selected, "statements": statements, "dry_run": dry_run})
    else:
        for statement in statements:
            CONSOLE.print(statement, soft_wrap=True)
    if dry_run:
        return
    with Progress(console=CONSOLE, disable=json_output) as progress:
        task = progress.add_task("rolling back", total=len(statements))
        roll_back(client, selected, lambda done: progress.update(task, completed=done))
