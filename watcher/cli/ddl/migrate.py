"""``ddl plan`` and ``ddl apply``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress
from rich.table import Table

from ddl.apply import apply_plan
from ddl.errors import PlanError
from ddl.files import write_files
from ddl.plan import Plan, make_plan
from ddl.selection import select_tables
from watcher.cli.common import JsonOption
from watcher.cli.ddl.request import (
    ConfigFile,
    DatabaseArgument,
    DialectOption,
    Exclude,
    IndexOption,
    KeyOption,
    ModuloOption,
    ProcessedOption,
    SchemaArgument,
    ShardColumnOption,
    ShardsOption,
    StoredOption,
    StoringOption,
    StrategyOption,
    Tables,
    TimestampOption,
    WatchRequest,
    load_schema,
)
from watcher.cli.output import CONSOLE, print_json


def plan(
    tables: Tables = None,
    exclude: Exclude = None,
    config: ConfigFile = None,
    database: DatabaseArgument = None,
    schema: SchemaArgument = None,
    dialect: DialectOption = None,
    strategy: StrategyOption = None,
    shards: ShardsOption = None,
    modulo: ModuloOption = None,
    shard_key: KeyOption = None,
    timestamp_column: TimestampOption = None,
    shard_column: ShardColumnOption = None,
    processed_column: ProcessedOption = None,
    index: IndexOption = None,
    storing: StoringOption = None,
    stored: StoredOption = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 when there is something to do (for CI).")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Write numbered .sql files, up and down, into this directory."),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Show the statements that make tables watchable: why each, and what it costs. Changes nothing.

    Reads the schema from a database or from a file. Prints nothing when there is nothing to do.
    """
    request = WatchRequest(
        tables,
        exclude,
        config,
        {
            "strategy": strategy,
            "shards": shards,
            "modulo": modulo,
            "shard_key": shard_key,
            "timestamp_column": timestamp_column,
            "shard_column": shard_column,
            "processed_column": processed_column,
            "index": index,
            "storing": storing,
            "stored": stored,
        },
    )
    found, _ = load_schema(database, schema, dialect)
    made = make_plan(found, select_tables(found, request.include, request.exclude), request.options)
    show_plan(made, json_output)
    if out is not None and not made.empty:
        for path in write_files(made, out):
            CONSOLE.print(f"written: {path}", soft_wrap=True)
    if check and not made.empty:
        raise typer.Exit(1)


def apply(
    tables: Tables = None,
    exclude: Exclude = None,
    config: ConfigFile = None,
    database: DatabaseArgument = None,
    strategy: StrategyOption = None,
    shards: ShardsOption = None,
    modulo: ModuloOption = None,
    shard_key: KeyOption = None,
    timestamp_column: TimestampOption = None,
    shard_column: ShardColumnOption = None,
    processed_column: ProcessedOption = None,
    index: IndexOption = None,
    storing: StoringOption = None,
    stored: StoredOption = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Plan, show and apply; returns when the new columns and indexes can be read.

    Safe to run again, also after an interruption: only what is missing is done. Refuses when the
    schema changes meanwhile. What it puts in is recorded, so that 'ddl rollback' can take it out.
    """
    request = WatchRequest(
        tables,
        exclude,
        config,
        {
            "strategy": strategy,
            "shards": shards,
            "modulo": modulo,
            "shard_key": shard_key,
            "timestamp_column": timestamp_column,
            "shard_column": shard_column,
            "processed_column": processed_column,
            "index": index,
            "storing": storing,
            "stored": stored,
        },
    )
    if database is None:
        raise PlanError("name the database with --database")
    found, client = load_schema(database, None)
    made = make_plan(found, select_tables(found, request.include, request.exclude), request.options)
    show_plan(made, json_output)
    if dry_run or made.empty or client is None:
        return
    with Progress(console=CONSOLE, disable=json_output) as progress:
        task = progress.add_task("applying", total=len(made.statements))
        apply_plan(client, made, lambda done: progress.update(task, completed=done))


def show_plan(made: Plan, json_output: bool) -> None:
    """The plan for people, or as JSON."""
    if json_output:
        print_json(made.as_json())
        return
    if not made.empty:
        CONSOLE.print(plan_table(made))


def plan_table(made: Plan) -> Table:
    """Statements beside their reasons."""
    table = Table(show_lines=True)
    table.add_column("#", justify="right")
    table.add_column("statement", overflow="fold", ratio=3)
    table.add_column("why", overflow="fold", ratio=2)
    table.add_column("costs", overflow="fold", ratio=2)
    for number, statement in enumerate(made.statements, 1):
        kind = "long-running: " if statement.long_running else ""
        table.add_row(str(number), statement.sql, statement.reason, kind + statement.cost)
    return table
