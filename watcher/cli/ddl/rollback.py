"""``ddl rollback``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.progress import Progress

from ddl.apply import plan_rollback, roll_back
from watcher.cli.common import DatabaseOption, JsonOption
from watcher.cli.output import CONSOLE, print_json
from watcher.spanner.database import DatabaseAddress, connect


def command(
    database: DatabaseOption,
    tables: Annotated[
        list[str] | None,
        typer.Option("--table", "-t", help="A table; may be repeated. Without: all recorded."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Take out what 'ddl apply' put in, and only that. Rows and other columns stay.

    Refuses when something else has come to depend on what would go. Safe to run again.
    """
    client = connect(DatabaseAddress.parse(database))
    statements, chosen = plan_rollback(client, tables or ())
    if json_output:
        print_json({"tables": chosen, "statements": statements, "dry_run": dry_run})
    else:
        for statement in statements:
            CONSOLE.print(statement, soft_wrap=True)
    if dry_run:
        return
    with Progress(console=CONSOLE, disable=json_output) as progress:
        task = progress.add_task("taking out", total=len(statements))
        roll_back(client, chosen, lambda done: progress.update(task, completed=done))
