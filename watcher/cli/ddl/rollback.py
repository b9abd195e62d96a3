"""``ddl rollback``: removes what ``ddl apply`` added."""

from __future__ import annotations

from typing import Annotated

import typer

from watcher.cli.options import DatabaseOption, DryRunOption, JsonOption
from watcher.cli.output import CONSOLE, ERRORS, print_json
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from ddl.migration.apply import plan_rollback, roll_back
    from watcher.cli.ddl.update_progress import shown_progress
    from watcher.spanner.address import DatabaseAddress
    from watcher.spanner.database import connect


def command(
    database: DatabaseOption,
    tables: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            "-t",
            metavar="TABLE",
            help="A table; repeatable. Default: all recorded tables.",
        ),
    ] = None,
    dry_run: DryRunOption = False,
    json_output: JsonOption = False,
) -> None:
    """Remove what 'ddl apply' added, and only that.

    Rows and other columns stay. Where other objects depend on what would be dropped, names them and
    changes nothing. Safe to run again.
    """
    client = connect(DatabaseAddress.parse_for_writes(database))
    statements, selected = plan_rollback(client, tables or ())
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
    with shown_progress("rolling back", json_output) as progress:
        roll_back(client, selected, progress)
