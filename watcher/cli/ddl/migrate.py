"""``ddl plan`` and ``ddl apply``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from watcher.cli import actions
from watcher.cli.ddl.options import (
    ConfigOption,
    HiddenOption,
    IndexOption,
    ModuloOption,
    ProcessedColumnOption,
    ShardColumnOption,
    ShardKeyOption,
    ShardOption,
    ShardsOption,
    StoredOption,
    StoringOption,
    StrategyOption,
    StrictOption,
    TakeOverOption,
    TimestampColumnOption,
)
from watcher.cli.options import (
    DialectOption,
    DryRunOption,
    ExcludeOption,
    JsonOption,
    OptionalDatabaseOption,
    SchemaOption,
    TablesOption,
)
from watcher.errors import NotWatchableError

LEFT_OUT = NotWatchableError.exit_code
"""Some tables cannot be watched as they are."""


def plan(
    tables: TablesOption = None,
    exclude: ExcludeOption = None,
    config: ConfigOption = None,
    database: OptionalDatabaseOption = None,
    schema: SchemaOption = None,
    dialect: DialectOption = None,
    strategy: StrategyOption = None,
    shards: ShardsOption = None,
    modulo: ModuloOption = None,
    shard_key: ShardKeyOption = None,
    timestamp_column: TimestampColumnOption = None,
    shard_column: ShardColumnOption = None,
    processed_column: ProcessedColumnOption = None,
    index: IndexOption = None,
    storing: StoringOption = None,
    stored: StoredOption = False,
    hidden: HiddenOption = False,
    shard: ShardOption = None,
    take_over: TakeOverOption = None,
    strict: StrictOption = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 if there is something to do (for CI).")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY", help="Write numbered .sql files, up and down, into this directory."
        ),
    ] = None,
    sql: Annotated[
        bool, typer.Option("--sql", help="Print the statements alone, without reasons and costs.")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Show the statements that make tables watchable.

    Shows each with its reason and its cost, as comments of a script that can be run. Changes
    nothing. Reads the schema from a database or from a file.
    """
    flags = {
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
        "hidden": hidden,
        "shard": shard,
        "take_over": take_over,
    }
    request = actions.ddl.request.WatchRequest(tables, exclude, config, flags, strict)
    migration = actions.ddl.migrate.plan(request, database, schema, dialect, out, sql, json_output)
    if migration.left_out:
        raise typer.Exit(LEFT_OUT)
    if check and not migration.empty:
        raise typer.Exit(1)


def apply(
    tables: TablesOption = None,
    exclude: ExcludeOption = None,
    config: ConfigOption = None,
    database: OptionalDatabaseOption = None,
    strategy: StrategyOption = None,
    shards: ShardsOption = None,
    modulo: ModuloOption = None,
    shard_key: ShardKeyOption = None,
    timestamp_column: TimestampColumnOption = None,
    shard_column: ShardColumnOption = None,
    processed_column: ProcessedColumnOption = None,
    index: IndexOption = None,
    storing: StoringOption = None,
    stored: StoredOption = False,
    hidden: HiddenOption = False,
    shard: ShardOption = None,
    take_over: TakeOverOption = None,
    strict: StrictOption = False,
    dry_run: DryRunOption = False,
    json_output: JsonOption = False,
) -> None:
    """Make tables watchable.

    Plans, shows and applies; returns when the new columns and indexes can be read. Safe to run
    again, also after an interruption: adds only what is missing. Fails if the schema changes
    meanwhile. Records what it adds, so that 'ddl rollback' can remove it. Where a table is watched
    otherwise than asked for, goes over to what was asked for, or says why it cannot.
    """
    flags = {
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
        "hidden": hidden,
        "shard": shard,
        "take_over": take_over,
    }
    request = actions.ddl.request.WatchRequest(tables, exclude, config, flags, strict)
    migration = actions.ddl.migrate.apply(request, database, dry_run, json_output)
    if migration.left_out:
        raise typer.Exit(LEFT_OUT)
