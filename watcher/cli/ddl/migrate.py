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
        bool, typer.Option("--check", help="Exit with 1 if there is something to do (for CI).")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Write numbered .sql files, up and down, into this directory."),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Show the statements that make tables watchable, with reasons and costs. Changes nothing.

    Reads the schema from a database or from a file. Prints nothing if there is nothing to do.
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
    loaded, _ = load_schema(database, schema, dialect)
    names = select_tables(loaded, request.include, request.exclude)
    migration = make_plan(loaded, names, request.options)
    show_plan(migration, json_output)
    if out is not None and not migration.empty:
        for path in write_files(migration, out):
            CONSOLE.print(f"written: {path}", soft_wrap=True)
    if check and not migration.empty:
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
        bool, typer.Option("--dry-run", help="Show the statements; change nothing.")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Plan, show and apply; return when the new columns and indexes can be read.

    Safe to run again, also after an interruption: adds only what is missing. Fails if the schema
    changes meanwhile. Records what it adds, so that 'ddl rollback' can remove it.
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
