"""``spanner-watcher clear``: take out of the index what every consumer has delivered."""

from __future__ import annotations

from typing import Annotated

import typer

from watcher.clearing import Clearing
from watcher.cli.common import (
    DatabaseOption,
    JsonOption,
    PositionsOption,
    TableOption,
)
from watcher.cli.logs import log_as
from watcher.cli.output import CONSOLE, print_json
from watcher.config import duration_seconds
from watcher.database import DatabaseAddress, connect
from watcher.positions import TABLE, SpannerPositions
from watcher.runners.schedule import Schedule
from watcher.stream import timestamp_text
from watcher.table import discover
from watcher.watch_config import GRACE_SECONDS


def command(
    database: DatabaseOption,
    table: TableOption,
    margin: Annotated[
        str, typer.Option(help="Stay this far behind the slowest consumer, such as 10m.")
    ] = "0s",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would be cleared; change nothing.")
    ] = False,
    every: Annotated[
        str | None, typer.Option(help="Clear again and again, with this pause, such as 10m.")
    ] = None,
    positions_table: PositionsOption = TABLE,
    json_output: JsonOption = False,
) -> None:
    """Take delivered rows out of the watching index, by partitioned DML.

    Never beyond the slowest registered consumer. Rows that change meanwhile stay: their timestamp
    is newer. The rows of the table itself stay too; only their timestamp is set to NULL (strategy
    automatic) or Processed to TRUE (strategy processed). Clear seldom and much: partitioned DML
    costs something for each split of the table.
    """
    log_as("logfmt", verbose=False)
    margin_seconds = duration_seconds(margin)
    pause = duration_seconds(every) if every is not None else None
    client = connect(DatabaseAddress.parse(database))
    watched = discover(client, table)
    positions = SpannerPositions(client, positions_table)
    positions.create()
    clearing = Clearing(client, watched, positions, margin_seconds)

    def run() -> None:
        result = clearing.count() if dry_run else clearing.clear()
        shown = {
            "table": watched.name,
            "dry_run": dry_run,
            "rows": result.rows,
            "up_to": timestamp_text(result.safe),
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
