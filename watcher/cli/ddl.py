"""``spanner-watcher ddl``: plan and apply the migration that makes tables watchable."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.progress import Progress
from rich.table import Table

from ddl.apply import apply_plan, read_schema
from ddl.errors import PlanError
from ddl.options import Strategy, WatchOptions
from ddl.parse import parse_schema
from ddl.plan import Plan, make_plan
from watcher.cli.common import JsonOption
from watcher.cli.output import CONSOLE, print_json
from watcher.config import explained
from watcher.database import DatabaseAddress, connect

app = typer.Typer(no_args_is_help=True, help="Make the tables of a database watchable.")

Tables = Annotated[
    list[str], typer.Option("--table", "-t", help="A table to make watchable; may be repeated.")
]
StrategyOption = Annotated[
    Strategy,
    typer.Option(
        help="automatic: Spanner writes the timestamp by itself and clearing sets it to NULL, the"
        " applications change nothing. processed: clearing sets Processed to TRUE and keeps the"
        " timestamp, the applications' UPDATEs reset Processed."
    ),
]
ShardsOption = Annotated[
    int,
    typer.Option("--shards", help="Distinct values of the computed shard; at least one a node."),
]
KeyOption = Annotated[
    list[str] | None,
    typer.Option("--shard-key", help="Hash these columns; default: the primary key."),
]
TimestampOption = Annotated[
    str, typer.Option("--timestamp-column", help="Name of the commit-timestamp column.")
]
ShardColumnOption = Annotated[
    str, typer.Option("--shard-column", help="Name of the computed shard column.")
]
ProcessedOption = Annotated[
    str, typer.Option("--processed-column", help="Name of the Processed column.")
]
IndexOption = Annotated[str | None, typer.Option("--index", help="Name of the index.")]
StoringOption = Annotated[
    list[str] | None,
    typer.Option("--storing", help="Keep these columns in the index too, to save the join back."),
]
StoredOption = Annotated[
    bool,
    typer.Option(
        "--stored", help="Store the shard in the table as well; writes every row of it once."
    ),
]
DatabaseArgument = Annotated[
    str | None,
    typer.Option(
        "--database",
        "-d",
        metavar="ADDRESS",
        help="spanner://projects/PROJECT/instances/INSTANCE/databases/DATABASE",
    ),
]


@app.command()
def plan(
    tables: Tables,
    database: DatabaseArgument = None,
    schema: Annotated[
        Path | None, typer.Option("--schema", "-s", help="A file with the DDL of the database.")
    ] = None,
    strategy: StrategyOption = Strategy.AUTOMATIC,
    shards: ShardsOption = 16,
    shard_key: KeyOption = None,
    timestamp_column: TimestampOption = "LastModified",
    shard_column: ShardColumnOption = "ShardId",
    processed_column: ProcessedOption = "Processed",
    index: IndexOption = None,
    storing: StoringOption = None,
    stored: StoredOption = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 when there is something to do (for CI).")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Show the statements that make tables watchable, each with its reason. Changes nothing.

    Reads the schema from a database or from a file. Prints nothing when there is nothing to do.
    """
    options = watch_options(
        strategy=strategy,
        shards=shards,
        shard_key=shard_key,
        timestamp_column=timestamp_column,
        shard_column=shard_column,
        processed_column=processed_column,
        index=index,
        storing=storing or (),
        stored=stored,
    )
    if (database is None) == (schema is None):
        raise PlanError("name either --database or --schema")
    if schema is not None:
        if not schema.is_file():
            raise PlanError(f"there is no file {schema}")
        found = parse_schema(schema.read_text())
    else:
        found = read_schema(connect(DatabaseAddress.parse(database or "")))
    made = make_plan(found, tables, options)
    show_plan(made, json_output)
    if check and not made.empty:
        raise typer.Exit(1)


@app.command()
def apply(
    tables: Tables,
    database: DatabaseArgument = None,
    strategy: StrategyOption = Strategy.AUTOMATIC,
    shards: ShardsOption = 16,
    shard_key: KeyOption = None,
    timestamp_column: TimestampOption = "LastModified",
    shard_column: ShardColumnOption = "ShardId",
    processed_column: ProcessedOption = "Processed",
    index: IndexOption = None,
    storing: StoringOption = None,
    stored: StoredOption = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Plan, show and apply; returns when the new columns and indexes can be read.

    Safe to run again: only what is missing is done. Refuses when the schema changes meanwhile.
    """
    options = watch_options(
        strategy=strategy,
        shards=shards,
        shard_key=shard_key,
        timestamp_column=timestamp_column,
        shard_column=shard_column,
        processed_column=processed_column,
        index=index,
        storing=storing or (),
        stored=stored,
    )
    if database is None:
        raise PlanError("name the database with --database")
    client = connect(DatabaseAddress.parse(database))
    made = make_plan(read_schema(client), tables, options)
    show_plan(made, json_output)
    if dry_run or made.empty:
        return
    with Progress(console=CONSOLE, disable=json_output) as progress:
        task = progress.add_task("applying", total=len(made.statements))
        apply_plan(client, made, lambda done: progress.update(task, completed=done))


def watch_options(**given: object) -> WatchOptions:
    """The flags as one validated model. Raises PlanError."""
    try:
        return WatchOptions.model_validate(given)
    except ValidationError as error:
        raise PlanError(explained(error)) from error


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
    table.add_column("takes")
    for number, statement in enumerate(made.statements, 1):
        takes = "long-running backfill" if statement.long_running else "metadata only"
        table.add_row(str(number), statement.sql, statement.reason, takes)
    return table
