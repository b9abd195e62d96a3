"""``ddl changelog``."""

from __future__ import annotations

from typing import Annotated

import typer

from ddl.apply import run_statements
from ddl.changelog import make_history_table
from ddl.render import render_step
from watcher.cli.common import JsonOption
from watcher.cli.ddl.request import DatabaseArgument, DialectOption, SchemaArgument, load_schema
from watcher.cli.output import CONSOLE, print_json


def command(
    table: Annotated[str, typer.Option("--table", "-t", help="The table to keep a history of.")],
    database: DatabaseArgument = None,
    schema: SchemaArgument = None,
    dialect: DialectOption = None,
    interleaved: Annotated[
        bool,
        typer.Option(
            "--interleaved/--apart",
            help="Interleaved: stored beside the row and deleted with it. Apart: outlives the row.",
        ),
    ] = True,
    name: Annotated[str | None, typer.Option(help="The history table's name.")] = None,
    timestamp: Annotated[str, typer.Option(help="Its commit-timestamp column.")] = "ChangedAt",
    keep_days: Annotated[
        int | None, typer.Option(min=1, help="Delete older versions, by a row deletion policy.")
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Create the table; without this it is only shown.")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Show (or create) the audit table of a table: each version of a row, by commit timestamp.

    The commit timestamp comes last in the key: first, it would be a hot spot. Applications insert a
    row into the audit table in the same transaction as the change.
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
        CONSOLE.print(statement, soft_wrap=True)
    if apply and client is not None:
        run_statements(client, [statement])
