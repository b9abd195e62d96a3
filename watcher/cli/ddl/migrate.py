"""``ddl plan`` and ``ddl apply``: plans what makes tables watchable, shows it and applies it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from spanner_schema.model.schema import Schema
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
from watcher.cli.output import CONSOLE, ERRORS, print_json
from watcher.model.errors import NotWatchableError
from watcher.process.terminal.console import print_error, show_controls
from watcher.process.terminal.loading import to_run
from watcher.process.terminal.values import to_folder

if to_run(__name__):
    from google.cloud.spanner_v1.database import Database

    from ddl.migration.apply import apply_plan, wait_for_running
    from ddl.migration.estimate import TableEstimate, describe_pace, estimate_plan
    from ddl.migration.files import write_files
    from ddl.migration.plan import Plan, PlanStatement, make_plan
    from ddl.tracking.status import TableStatus, list_statuses
    from spanner_schema.model.errors import PlanError
    from spanner_schema.model.options import WatchOptions
    from spanner_schema.model.selection import select_tables
    from spanner_schema.watched.records import read_ownership
    from watcher.cli.ddl.request import WatchRequest, load_schema
    from watcher.cli.ddl.update_progress import shown_progress
    from watcher.spanner.address import DatabaseAddress
    from watcher.spanner.database import connect

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
            callback=to_folder,
            metavar="DIRECTORY",
            help="Write numbered .sql files, up and down, into this directory.",
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
    flags = {name: value for name, value in locals().items() if name in WatchOptions.model_fields}
    request = WatchRequest(tables, exclude, config, flags, strict)
    if sql and json_output:
        raise PlanError("--sql and --json exclude each other: use one of them")
    loaded, client = load_schema(database, schema, dialect)
    names = select_tables(loaded, request.include, request.exclude)
    migration = plan_tables(loaded, client, names, request)
    if sql:
        print_statements(migration)
    else:
        show_plan(migration, json_output, list_estimates(client, loaded, migration))
    report_rest(migration, loaded, names, json_output)
    if out is not None and not migration.empty:
        for path in write_files(migration, out):
            ERRORS.print(f"written: {path}")
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
    flags = {name: value for name, value in locals().items() if name in WatchOptions.model_fields}
    request = WatchRequest(tables, exclude, config, flags, strict)
    migration = apply_migration(request, database, dry_run, json_output)
    if migration.left_out:
        raise typer.Exit(LEFT_OUT)


def apply_migration(
    request: WatchRequest, database: str | None, dry_run: bool, json_output: bool
) -> Plan:
    """Shows a plan and applies it to the database. Raises PlanError."""
    if database is None:
        raise PlanError("no database: name it with --database")
    if not dry_run:
        with shown_progress("waiting for a schema update", json_output) as progress:
            wait_for_running(connect(DatabaseAddress.parse_for_writes(database)), progress)
    loaded, client = load_schema(database, None)
    names = select_tables(loaded, request.include, request.exclude)
    migration = plan_tables(loaded, client, names, request)
    show_plan(migration, json_output, list_estimates(client, loaded, migration))
    report_rest(migration, loaded, names, json_output)
    if dry_run or migration.empty or client is None:
        return migration
    with shown_progress("applying", json_output) as progress:
        apply_plan(client, migration, progress)
    if not json_output:
        ERRORS.print(f"applied {len(migration.statements)} statements")
    return migration


def plan_tables(
    schema: Schema, client: Database | None, names: Sequence[str], request: WatchRequest
) -> Plan:
    """The plan, by what the database has recorded as ours. Raises PlanError, SchemaError."""
    owned = read_ownership(client, schema) if client is not None else {}
    return make_plan(schema, names, request.options, owned, request.strict)


def list_estimates(client: Database | None, schema: Schema, migration: Plan) -> list[TableEstimate]:
    """What the plan takes, table by table; nothing for a schema of a file."""
    if client is None or migration.empty:
        return []
    return estimate_plan(client, schema, migration)


def show_plan(migration: Plan, json_output: bool, estimates: Sequence[TableEstimate] = ()) -> None:
    """Prints a plan as SQL with comments, or as JSON."""
    if json_output:
        print_json(migration.as_json() | {"estimates": [asdict(each) for each in estimates]})
        return
    for estimate in estimates:
        CONSOLE.print(f"-- estimate, {estimate.table}: {estimate.describe()}")
    for each in migration.taken_over:
        CONSOLE.print(f"-- takes over {each.table}.{each.name}: {each.effect}", style="bold")
    for note in migration.notes:
        CONSOLE.print(f"-- note: {note}")
    if estimates and (pace := describe_pace(migration)):
        CONSOLE.print(f"-- note: {pace}")
    if migration.notes or estimates:
        CONSOLE.print()
    for number, statement in enumerate(migration.statements, 1):
        print_statement(number, len(migration.statements), statement)
    sys.stdout.flush()


def report_rest(migration: Plan, schema: Schema, names: Sequence[str], json_output: bool) -> None:
    """Says so, beside the output, when there is nothing to do, how the tables are watched, and
    which of them the plan leaves out."""
    if json_output:
        return
    left_out = {each.table for each in migration.left_out}
    if migration.empty:
        kept = [name for name in names if name not in left_out]
        states = "; ".join(describe_status(each) for each in list_statuses(schema, kept))
        ERRORS.print(f"nothing to do: {states}")
    for each in migration.left_out:
        print_error(f"{each.table} is left out: {each.reason}")
    if left_out:
        ERRORS.print(f"{len(left_out)} of {len(names)} tables are left out (--strict refuses them)")


def describe_status(status: TableStatus) -> str:
    """How a table is watched, in words."""
    shards = f", {status.shards} shards" if status.shards else ""
    index = f", {status.index}" if status.index else ""
    return f"{status.table} is watched ({status.strategy}{shards}{index})"


def print_statement(number: int, count: int, statement: PlanStatement) -> None:
    """Prints a statement whole, under its reason and its cost."""
    kind = "long-running: " if statement.long_running else ""
    if number > 1:
        CONSOLE.print()
    CONSOLE.print(f"-- {number} of {count}, {statement.table}: {statement.reason}", style="dim")
    CONSOLE.print(f"-- cost: {kind}{statement.cost}", style="dim")
    CONSOLE.print(f"{statement.sql};")


def print_statements(migration: Plan) -> None:
    """Prints the statements alone, as a script; nothing if there is nothing to do."""
    for statement in migration.statements:
        sql = show_controls(statement.sql) if sys.stdout.isatty() else statement.sql
        sys.stdout.write(f"{sql};\n")
