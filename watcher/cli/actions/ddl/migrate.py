"""Plans what makes tables watchable, shows it and applies it."""

from __future__ import annotations

from pathlib import Path

from rich.progress import Progress
from rich.table import Table

from ddl.apply import apply_plan
from ddl.errors import PlanError
from ddl.files import write_files
from ddl.plan import Plan, make_plan
from ddl.schema import Dialect
from ddl.selection import select_tables
from watcher.cli.actions.ddl.request import WatchRequest, load_schema
from watcher.cli.output import CONSOLE, print_json


def plan(
    request: WatchRequest,
    database: str | None,
    schema: Path | None,
    dialect: Dialect | None,
    out: Path | None,
    json_output: bool,
) -> Plan:
    """Shows a plan, and writes it as files into ``out``."""
    loaded, _ = load_schema(database, schema, dialect)
    names = select_tables(loaded, request.include, request.exclude)
    migration = make_plan(loaded, names, request.options)
    show_plan(migration, json_output)
    if out is not None and not migration.empty:
        for path in write_files(migration, out):
            CONSOLE.print(f"written: {path}", soft_wrap=True)
    return migration


def apply(request: WatchRequest, database: str | None, dry_run: bool, json_output: bool) -> None:
    """Shows a plan and applies it to the database. Raises PlanError."""
    if database is None:
        raise PlanError("no database: name it with --database")
    loaded, client = load_schema(database, None)
    names = select_tables(loaded, request.include, request.exclude)
    migration = make_plan(loaded, names, request.options)
    show_plan(migration, json_output)
    if dry_run or migration.empty or client is None:
        return
    with Progress(console=CONSOLE, disable=json_output) as progress:
        task = progress.add_task("applying", total=len(migration.statements))
        apply_plan(client, migration, lambda done: progress.update(task, completed=done))


def show_plan(migration: Plan, json_output: bool) -> None:
    """Prints a plan as a table, or as JSON."""
    if json_output:
        print_json(migration.as_json())
        return
    if not migration.empty:
        CONSOLE.print(make_plan_table(migration))


def make_plan_table(migration: Plan) -> Table:
    """A plan as a table: statements, reasons and costs."""
    table = Table(show_lines=True)
    table.add_column("#", justify="right")
    table.add_column("statement", overflow="fold", ratio=3)
    table.add_column("why", overflow="fold", ratio=2)
    table.add_column("costs", overflow="fold", ratio=2)
    for number, statement in enumerate(migration.statements, 1):
        kind = "long-running: " if statement.long_running else ""
        table.add_row(str(number), statement.sql, statement.reason, kind + statement.cost)
    return table
