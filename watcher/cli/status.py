"""``spanner-watcher status``: every consumer, its state and how far behind it is."""

from __future__ import annotations

import time
from typing import Annotated

import typer
from google.cloud.spanner_v1.database import Database
from rich.table import Table

from watcher.captures.poll import PollCapture
from watcher.cli.common import DatabaseOption, JsonOption, PositionsOption
from watcher.cli.output import CONSOLE, print_json
from watcher.consumers.leases import Consumers
from watcher.consumers.positions import TABLE, Position, SpannerPositions, consumers_table
from watcher.consumers.states import ConsumerStatus
from watcher.errors import NotWatchableError, TableNotFoundError
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect
from watcher.spanner.queries import QueryClient
from watcher.spanner.timestamps import format_timestamp
from watcher.tables.discovery import discover_table
from watcher.tables.shards import group_shards
from watcher.window import Window


def command(
    database: DatabaseOption,
    consumer: Annotated[str | None, typer.Option(help="Only this consumer.")] = None,
    errors: Annotated[
        bool, typer.Option("--errors", help="List the stored errors of the consumer, too.")
    ] = False,
    by_shard_group: Annotated[
        int, typer.Option("--shard-groups", min=0, help="Count the lag in so many groups of shards")
    ] = 0,
    positions_table: PositionsOption = TABLE,
    json_output: JsonOption = False,
) -> None:
    """Show state, position, lag in seconds and in rows, and rate of every consumer and table.

    Lag in rows is an index-only count of what lies after the position. A consumer whose lease has
    run out is shown as not alive: nothing renews its name any more.
    """
    address = DatabaseAddress.parse(database)
    client = connect(address)
    positions = SpannerPositions(client, positions_table)
    positions.create()
    consumers = Consumers(client, consumers_table(positions_table))
    consumers.create()
    lives = {each.consumer: each for each in consumers.all()}
    rows = [
        described(client, address, each, lives.get(each.consumer), by_shard_group)
        for each in positions.every()
        if consumer in (None, each.consumer)
    ]
    found = [
        {
            "consumer": each.consumer,
            "at": format_timestamp(each.occurred_at),
            "kind": each.kind,
            "message": each.message,
        }
        for name in sorted({str(row["consumer"]) for row in rows})
        for each in (consumers.errors(name) if errors else ())
    ]
    if json_output:
        print_json({"consumers": rows, "errors": found})
        return
    show(rows)
    for error in found:
        CONSOLE.print(f"{error['at']}  {error['consumer']}  {error['kind']}: {error['message']}")


def described(
    client: Database,
    address: DatabaseAddress,
    position: Position,
    life: ConsumerStatus | None,
    by_shard_group: int,
) -> dict[str, object]:
    """One consumer of one table."""
    progress = life.progress if life else None
    shown: dict[str, object] = {
        "consumer": position.consumer,
        "table": position.table,
        "state": str(life.state) if life else "NOT_STARTED",
        "alive": life.alive if life else False,
        "position": format_timestamp(position.micros),
        "lag_seconds": round(time.time() - position.micros / 1_000_000, 3),
        "lag_rows": None,
        "delivered_rows": progress.rows if progress else None,
        "rows_per_second": round(progress.rows_per_second, 3) if progress else None,
        "dead_letters": progress.dead_letters if progress else None,
    }
    try:
        watched = discover_table(client, position.table)
    except (NotWatchableError, TableNotFoundError) as error:
        return shown | {"note": str(error)}
    capture = PollCapture(QueryClient(address), watched, ())
    window, changed = capture.look(position.micros)
    shown["lag_rows"] = capture.count(window) if changed else 0
    if by_shard_group:
        shown["lag_rows_by_shard_group"] = lags(capture, window, by_shard_group)
    return shown


def lags(capture: PollCapture, window: Window, count: int) -> dict[str, int]:
    """The lag in rows of each group of shards."""
    return {
        str(group.number): capture.count(window, group)
        for group in group_shards(capture.table.shard_values, count)
    }


def show(rows: list[dict[str, object]]) -> None:
    """A table for people."""
    table = Table()
    for title in ("consumer", "table", "state", "position", "lag", "rows behind", "delivered"):
        table.add_column(title)
    for row in rows:
        alive = "" if row["alive"] else " (not alive)"
        behind = row["lag_rows"]
        delivered = row["delivered_rows"]
        table.add_row(
            str(row["consumer"]),
            str(row["table"]),
            f"{row['state']}{alive}",
            str(row["position"]),
            f"{row['lag_seconds']} s",
            f"{behind:,}" if isinstance(behind, int) else "?",
            f"{delivered:,}" if isinstance(delivered, int) else "?",
        )
    CONSOLE.print(table)
