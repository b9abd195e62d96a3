"""``ddl changelog``: shows the audit table of a table, and creates it."""

from __future__ import annotations

from typing import Annotated

import typer

from watcher.cli.options import (
    ApplyOption,
    DialectOption,
    JsonOption,
    OptionalDatabaseOption,
    SchemaOption,
    TableOption,
)
from watcher.cli.output import CONSOLE, print_json
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from ddl.migration.apply import run_statements
    from ddl.tracking.changelog import make_history_table
    from spanner_schema.syntax.render import render_step
    from watcher.cli.ddl.request import load_schema


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
    loaded, client = load_schema(database, schema, dialect)
    step = make_history_table(
        loaded,
        table,
        interleaved=interleaved,
        name=name,
        timestamp=timestamp,
        keep_days=keep_days,
    )
    statement = render_step(step, loaded.dialect)
    if json_output:
        print_json({"table": step.table.name, "statements": [statement], "applied": apply})
    else:
        CONSOLE.print(statement)
    if apply and client is not None:
        run_statements(client, [statement])
