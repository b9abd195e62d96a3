"""``ddl changelog``."""

from __future__ import annotations

from typing import Annotated

import typer

from watcher.cli import actions
from watcher.cli.options import (
    ApplyOption,
    DialectOption,
    JsonOption,
    OptionalDatabaseOption,
    SchemaOption,
    TableOption,
)


def command(
    table: TableOption,
    database: OptionalDatabaseOption = None,
    schema: SchemaOption = None,
    dialect: DialectOption = None,
    interleaved: Annotated[
        bool,
        typer.Option(
            "--interleaved/--apart",
            help="Interleaved: stored beside the row and deleted with it. Apart: outlives the row.",
        ),
    ] = True,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The history table's name.")
    ] = None,
    timestamp: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Its commit-timestamp column: ChangedAt, or changed_at in the PostgreSQL dialect.",
        ),
    ] = None,
    keep_days: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="DAYS", help="Delete older versions, by a row deletion policy."
        ),
    ] = None,
    apply: ApplyOption = False,
    json_output: JsonOption = False,
) -> None:
    """Show (or create) the audit table of a table.

    It holds each version of a row, by commit timestamp. The commit timestamp comes last in the key:
    first, it would be a hot spot. Applications insert a row into the audit table in the same
    transaction as the change.
    """
    actions.ddl.changelog.show_history_table(
        actions.ddl.changelog.HistoryTable(table, name, timestamp, interleaved, keep_days),
        database,
        schema,
        dialect,
        apply,
        json_output,
    )
