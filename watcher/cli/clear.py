"""``spanner-watcher clear``."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from watcher.cli import actions
from watcher.cli.options import (
    POSITIONS_TABLE,
    DatabaseOption,
    DryRunOption,
    JsonOption,
    PositionsTableOption,
    ShardColumnOption,
    ShardOption,
    TableOption,
)

MethodName = Literal["partitioned", "index", "auto"]
"""The values of ``watcher.consumers.clearing.Method``, repeated because loading that takes a
second."""


def command(
    database: DatabaseOption,
    table: TableOption,
    margin: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="Keep this distance from the slowest consumer, such as 10m."
        ),
    ] = "0s",
    dry_run: DryRunOption = False,
    method: Annotated[
        MethodName,
        typer.Option(
            metavar="METHOD",
            help="partitioned: scan the whole table in one statement. index: clear the rows that"
            " the index lists, in ordinary transactions. auto: whichever is cheaper.",
        ),
    ] = "partitioned",
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Show what each method would read and write; change nothing."
        ),
    ] = False,
    every: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Clear repeatedly, with this pause, such as 10m."),
    ] = None,
    shard: ShardOption = None,
    shard_column: ShardColumnOption = None,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
    json_output: JsonOption = False,
) -> None:
    """Remove delivered rows from the index that is polled.

    The rows stay in the table. Clears only what every consumer has delivered, and not rows that
    change meanwhile. Sets the timestamp to NULL (strategy automatic) or Processed to TRUE (strategy
    processed), or deletes change sets (strategy change-set; the table is that of the rows or of the
    change sets). Refuses to erase a timestamp that applications write, unless 'ddl apply
    --take-over' let it. Partitioned DML scans the whole table, so clear rarely; use --method index
    for few rows of a large table.
    """
    request = actions.clear.ClearRequest(
        database=database,
        table=table,
        margin=margin,
        method=method,
        dry_run=dry_run,
        shard=shard,
        shard_column=shard_column,
        positions_table=positions_table,
        json_output=json_output,
    )
    if explain:
        actions.clear.explain_methods(request)
    else:
        actions.clear.clear(request, every)
