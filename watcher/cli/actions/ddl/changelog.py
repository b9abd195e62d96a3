"""Shows the audit table of a table, and creates it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ddl.apply import run_statements
from ddl.changelog import make_history_table
from ddl.render import render_step
from ddl.schema import Dialect
from watcher.cli.actions.ddl.request import load_schema
from watcher.cli.output import CONSOLE, print_json


@dataclass(frozen=True, slots=True)
class HistoryTable:
    """The audit table of ``table``; without a ``name``, the name is derived from that of the table.

    ``timestamp`` names its commit-timestamp column; without it the dialect has a name.
    """

    table: str
    name: str | None
    timestamp: str | None
    interleaved: bool
    keep_days: int | None


def show_history_table(
    history: HistoryTable,
    database: str | None,
    schema: Path | None,
    dialect: Dialect | None,
    apply: bool,
    json_output: bool,
) -> None:
    """Shows the statement, and runs it if ``apply`` is set."""
    loaded, client = load_schema(database, schema, dialect)
    step = make_history_table(
        loaded,
        history.table,
        interleaved=history.interleaved,
        name=history.name,
        timestamp=history.timestamp,
        keep_days=history.keep_days,
    )
    statement = render_step(step, loaded.dialect)
    if json_output:
        print_json({"table": step.table.name, "statements": [statement], "applied": apply})
    else:
        CONSOLE.print(statement)
    if apply and client is not None:
        run_statements(client, [statement])
