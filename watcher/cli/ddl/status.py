"""``ddl status``: shows whether each table is watchable, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Annotated

import typer

from watcher.cli.options import (
    DialectOption,
    ExcludeOption,
    JsonOption,
    OptionalDatabaseOption,
    SchemaOption,
    TablesOption,
)
from watcher.cli.output import CONSOLE, print_json
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from google.cloud.spanner_v1.database import Database

    from ddl.migration.updates import SchemaUpdate, find_running_updates, list_running_updates
    from ddl.tracking.status import TableStatus, count_index_rows, list_statuses
    from spanner_schema.model.errors import PlanError
    from spanner_schema.model.selection import select_tables
    from watcher.cli.ddl.request import load_schema
    from watcher.process.terminal.tables import TableColumn, print_table


def command(
    tables: TablesOption = None,
    exclude: ExcludeOption = None,
    database: OptionalDatabaseOption = None,
    schema: SchemaOption = None,
    dialect: DialectOption = None,
    running: Annotated[
        bool,
        typer.Option(
            "--running", help="Show only the schema updates that run, such as of 'ddl apply'."
        ),
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Show for each table whether it is watched.

    Shows the strategy, what is missing, and the rows in the index. Counts rows in databases of the
    GoogleSQL dialect. Says how far schema updates are that run.
    """
    loaded, client = load_schema(database, schema, dialect)
    if running:
        show_running(client, json_output)
        return
    names = select_tables(loaded, tables or ("*",), exclude or ())
    rows = list_statuses(loaded, names)
    if client is not None:
        rows = [replace(row, index_rows=count_index_rows(client, loaded, row)) for row in rows]
    if json_output:
        print_json([asdict(row) for row in rows])
        return
    columns = (
        TableColumn("table"),
        TableColumn("watched by"),
        TableColumn("shards", drop=2, right=True),
        TableColumn("index", drop=3),
        TableColumn("rows in it", drop=1, right=True),
        TableColumn("missing"),
    )
    print_table(CONSOLE, columns, [make_row(row) for row in rows], "--json has them")
    if client is not None:
        print_updates(find_running_updates(client))


def show_running(client: Database | None, json_output: bool) -> None:
    """Prints how far the schema updates are that run. Raises PlanError without a database."""
    if client is None:
        raise PlanError("no database: --running needs --database")
    updates = list_running_updates(client)
    if json_output:
        print_json([asdict(each) for each in updates])
    else:
        print_updates(updates)


def print_updates(updates: Sequence[SchemaUpdate]) -> None:
    """A line for each schema update that runs."""
    for each in updates:
        statement = "".join(each.statements[each.done : each.done + 1])
        CONSOLE.print(f"runs in Spanner: {each.describe()}; {statement}")


def make_row(row: TableStatus) -> tuple[str, ...]:
    """The cells of a table's line."""
    missing = row.problem or (f"{len(row.missing)} steps: ddl plan" if row.missing else "")
    return (
        row.table,
        row.strategy or "not watched",
        str(row.shards or ""),
        row.index or "",
        f"{row.index_rows:,}" if row.index_rows is not None else "",
        missing,
    )
