"""``ddl rollback``."""

from __future__ import annotations

from typing import Annotated

import typer

from watcher.cli import actions
from watcher.cli.options import DatabaseOption, DryRunOption, JsonOption


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
    actions.ddl.rollback.remove_tracking(database, tables or (), dry_run, json_output)
