"""Shows each consumer: its state, and how far behind it is."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from google.cloud.spanner_v1.database import Database
from rich.table import Table

from watcher.captures.poll import PollCapture
from watcher.cli.output import CONSOLE, print_json
from watcher.consumers.leases import Consumers
from watcher.consumers.positions import Position, SpannerPositions, consumers_table
from watcher.consumers.states import ConsumerStatus
from watcher.errors import NotWatchableError, TableNotFoundError
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect
from watcher.spanner.queries import QueryClient
from watcher.spanner.timestamps import format_timestamp
from watcher.tables.discovery import discover_table
from watcher.tables.shards import group_shards
from watcher.window import Window


def show_status(
    database: str,
    consumer: str | None,
    errors: bool,
    shard_groups: int,
    positions_table: str,
    json_output: bool,
) -> None:
    """Prints a row for each table of each consumer (or of one), and the stored errors."""
    address = DatabaseAddress.parse(database)
    client = connect(address)
    positions = SpannerPositions(client, positions_table)
    positions.create()
    consumers = Consumers(client, consumers_table(positions_table))
    consumers.create()
    statuses = {status.consumer: status for status in consumers.list_all()}
    rows = [
        describe_position(client, address, position, statuses.get(position.consumer), shard_groups)
        for position in positions.list_all()
        if consumer in (None, position.consumer)
    ]
    names = sorted({str(row["consumer"]) for row in rows})
    stored = describe_errors(consumers, names) if errors else []
    if json_output:
        print_json({"consumers": rows, "errors": stored})
        return
    CONSOLE.print(make_status_table(rows))
    for error in stored:
        CONSOLE.print(
            f"{error['at']}  {error['consumer']}  {error['kind']}: {error['message']}",
            markup=False,
        )


def describe_errors(consumers: Consumers, names: Iterable[str]) -> list[dict[str, str]]:
    """The stored errors of these consumers, for JSON."""
    return [
        {
            "consumer": error.consumer,
            "at": format_timestamp(error.occurred_at),
            "kind": error.kind,
            "message": error.message,
        }
        for name in names
        for error in consumers.errors(name)
    ]


def describe_position(
    client: Database,
    address: DatabaseAddress,
    position: Position,
    status: ConsumerStatus | None,
    shard_groups: int,
) -> dict[str, object]:
    """One table of a consumer, for JSON."""
    progress = status.progress if status else None
    row: dict[str, object] = {
        "consumer": position.consumer,
        "table": position.table,
        "state": str(status.state) if status else "NOT_STARTED",
        "alive": status.alive if status else False,
        "position": format_timestamp(position.micros),
        "lag_seconds": round(time.time() - position.micros / 1_000_000, 3),
        "lag_rows": None,
        "delivered_rows": progress.rows if progress else None,
        "rows_per_second": round(progress.rows_per_second, 3) if progress else None,
        "dead_letters": progress.dead_letters if progress else None,
    }
    try:
        table = discover_table(client, position.table)
    except (NotWatchableError, TableNotFoundError) as error:
        return row | {"note": str(error)}
    capture = PollCapture(QueryClient(address), table, ())
    window, changed = capture.look(position.micros)
    row["lag_rows"] = capture.count(window) if changed else 0
    if shard_groups:
        row["lag_rows_by_shard_group"] = count_by_group(capture, window, shard_groups)
    return row


def count_by_group(capture: PollCapture, window: Window, count: int) -> dict[str, int]:
    """Counts the rows of a window in each group of shards."""
    return {
        str(group.number): capture.count(window, group)
        for group in group_shards(capture.table.shard_values, count)
    }


def make_status_table(rows: Iterable[Mapping[str, object]]) -> Table:
    """The rows as a table for people."""
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
    return table
