"""``spanner-watcher clear``: take out of the index what every consumer has delivered."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from watcher.cli.common import (
    DatabaseOption,
    JsonOption,
    PositionsOption,
    TableOption,
)
from watcher.cli.logs import log_as
from watcher.cli.output import CONSOLE, print_json
from watcher.consumers.clearing import Clearing, Explanation, Method
from watcher.consumers.positions import TABLE, SpannerPositions
from watcher.runners.schedule import Schedule
from watcher.settings.fields import duration_seconds
from watcher.settings.watcher import GRACE_SECONDS
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect
from watcher.spanner.timestamps import format_timestamp
from watcher.tables.discovery import discover_table


def command(
    database: DatabaseOption,
    table: TableOption,
    margin: Annotated[
        str, typer.Option(help="Stay this far behind the slowest consumer, such as 10m.")
    ] = "0s",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would be cleared; change nothing.")
    ] = False,
    method: Annotated[
        Method,
        typer.Option(
            help="partitioned scans the whole table in one statement; index takes the rows that the"
            " index names, in ordinary transactions; auto takes the cheaper one."
        ),
    ] = Method.PARTITIONED,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Show what each method would read and write; change nothing."
        ),
    ] = False,
    every: Annotated[
        str | None, typer.Option(help="Clear again and again, with this pause, such as 10m.")
    ] = None,
    positions_table: PositionsOption = TABLE,
    json_output: JsonOption = False,
) -> None:
    """Take delivered rows out of the watching index.

    Never beyond the slowest consumer. Rows that change meanwhile stay: their timestamp
    is newer. The rows of the table itself stay too; only their timestamp is set to NULL (strategy
    automatic) or Processed to TRUE (strategy processed). Clear seldom and much: partitioned DML
    scans the table. For few rows of a large table there is --method index.
    """
    log_as("logfmt", verbose=False)
    margin_seconds = duration_seconds(margin)
    pause = duration_seconds(every) if every is not None else None
    client = connect(DatabaseAddress.parse(database))
    watched = discover_table(client, table)
    positions = SpannerPositions(client, positions_table)
    clearing = Clearing(client, watched, positions, margin_seconds, method)
    if explain:
        show(clearing.explain(), json_output)
        return
    if not dry_run:
        positions.create()

    def run() -> None:
        result = clearing.count() if dry_run else clearing.clear()
        shown = {
            "table": watched.name,
            "dry_run": dry_run,
            "rows": result.rows,
            "up_to": format_timestamp(result.safe),
            "slowest_consumer": result.slowest_consumer,
        }
        if json_output:
            print_json(shown)
        else:
            verb = "would be cleared" if dry_run else "cleared"
            CONSOLE.print(
                f"{watched.name}: {result.rows:,} rows {verb} from the index, up to"
                f" {shown['up_to']} (consumer '{result.slowest_consumer}')"
            )

    if pause is None:
        run()
        return
    schedule = Schedule()
    schedule.stop_on_signals(GRACE_SECONDS)
    schedule.every(pause, f"clear {watched.name}", run)
    schedule.start()
    schedule.wait()


def show(explanation: Explanation, json_output: bool) -> None:
    """What each method would read and write."""
    safe = format_timestamp(explanation.safe)
    if json_output:
        print_json(asdict(explanation) | {"safe": safe})
        return
    partitioned, by_index = explanation.partitioned, explanation.by_index
    more = " or more" if explanation.at_least else ""
    CONSOLE.print(
        f"{explanation.table}: {partitioned.rows_written:,} rows may be cleared, up to {safe}"
        f" (consumer '{explanation.slowest_consumer}')\n"
        f"partitioned: scans {partitioned.table_rows_read:,}{more} rows of the table, writes"
        f" {partitioned.rows_written:,}, in a transaction for each split"
    )
    if by_index is None:
        CONSOLE.print("index: there is no index to read")
    else:
        CONSOLE.print(
            f"index: reads {by_index.index_entries_read:,} entries of the index and"
            f" {by_index.table_rows_read:,} rows of the table by their keys, writes"
            f" {by_index.rows_written:,}, in {by_index.transactions:,} transactions"
        )
    CONSOLE.print(f"auto takes: {explanation.auto}")
