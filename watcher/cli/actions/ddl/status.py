"""Shows whether each table is watchable, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from rich.table import Table

from ddl.schema import Dialect
from ddl.selection import select_tables
from ddl.status import TableStatus, count_index_rows, list_statuses
from watcher.cli.actions.ddl.request import load_schema
from watcher.cli.output import CONSOLE, print_json


def show_status(
    tables: Sequence[str] | None,
    exclude: Sequence[str] | None,
    database: str | None,
    schema: Path | None,
    dialect: Dialect | None,
    json_output: bool,
) -> None:
    """Prints one row for each table."""
    loaded, client = load_schema(database, schema, dialect)
    names = select_tables(loaded, tables or ("*",), exclude or ())
    rows = list_statuses(loaded, names)
    if client is not None and loaded.dialect is Dialect.GOOGLESQL:
        rows = [replace(row, index_rows=count_index_rows(client, row)) for row in rows]
    if json_output:
        print_json([asdict(row) for row in rows])
        return
    CONSOLE.print(make_status_table(rows))


def make_status_table(rows: list[TableStatus]) -> Table:
    """One line for each table."""
    table = Table()
    for title in ("table", "watched by", "shards", "index", "rows in it", "missing"):
        table.add_column(title, overflow="fold")
    for row in rows:
        missing = row.problem or (f"{len(row.missing)} steps: ddl plan" if row.missing else "")
        table.add_row(
            row.table,
            row.strategy or "[dim]not watched[/]",
            str(row.shards or ""),
            row.index or "",
            f"{row.index_rows:,}" if row.index_rows is not None else "",
            missing,
        )
    return table
