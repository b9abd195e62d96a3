"""Removes what ``ddl apply`` added."""

from __future__ import annotations

from collections.abc import Sequence

from rich.progress import Progress

from ddl.apply import plan_rollback, roll_back
from watcher.cli.output import CONSOLE, ERRORS, print_json
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect


def remove_tracking(database: str, tables: Sequence[str], dry_run: bool, json_output: bool) -> None:
    """Shows the statements that remove the recorded columns and indexes, and runs them."""
    client = connect(DatabaseAddress.parse(database))
    statements, selected = plan_rollback(client, tables)
    if json_output:
        print_json({"tables": selected, "statements": statements, "dry_run": dry_run})
    else:
        for statement in statements:
            CONSOLE.print(f"{statement};")
    if dry_run:
        return
    if not selected:
        if not json_output:
            ERRORS.print("nothing to do: 'ddl apply' has recorded nothing that is still there")
        return
    with Progress(console=ERRORS, disable=json_output or not ERRORS.is_terminal) as progress:
        task = progress.add_task("rolling back", total=len(statements))
        roll_back(client, selected, lambda done: progress.update(task, completed=done))
