"""``spanner-watcher verify``."""

from __future__ import annotations

from typing import Annotated

import typer

from watcher.cli import actions
from watcher.cli.options import JsonOption, OptionalDatabaseOption, TablesOption


def command(
    to: Annotated[
        str,
        typer.Option(
            metavar="FORMAT:FOLDER",
            help="The replica: what 'replicate' writes, such as delta:FOLDER.",
        ),
    ],
    database: OptionalDatabaseOption = None,
    at: Annotated[
        str,
        typer.Option(
            help="latest, or a timestamp such as 2026-01-31T12:00:00Z: the last exact cut at or"
            " before it.",
        ),
    ] = "latest",
    table: TablesOption = None,
    ignore_column: Annotated[
        list[str] | None,
        typer.Option("--ignore-column", help="A column that is not compared; repeatable."),
    ] = None,
    data_boost: Annotated[
        bool,
        typer.Option(
            "--data-boost", help="Read the tables on Spanner's own machines, at their own price."
        ),
    ] = False,
    json_output: JsonOption = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every table.")] = False,
) -> None:
    """Compare a replica with Spanner at one exact timestamp.

    Counts and hashes ranges of keys, inside Spanner (stale reads at the timestamp of the cut, at
    low priority) and in the copy, and divides those that differ until the rows are found. Prints
    the keys of rows that are missing, extra or changed, and the columns that the copy was not to
    have.

    Exits with 0 if the copies equal the tables, 10 if they differ or lack a column, 6 if there is
    no such cut, 7 if Spanner no longer keeps versions of it.

    Example: spanner-watcher verify --to delta:/lake/music
    """
    actions.verify.verify_replica(
        to=to,
        database=database,
        at=at,
        tables=tuple(table or ()),
        ignored_columns=tuple(ignore_column or ()),
        data_boost=data_boost,
        json_output=json_output,
        verbose=verbose,
    )
