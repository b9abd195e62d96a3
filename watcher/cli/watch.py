"""``spanner-watcher watch``: changes as JSON lines, from the scheduled poller."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from watcher.captures.poll import PollCapture
from watcher.cli.common import DatabaseOption, PositionsOption, TableOption, log_to_stderr
from watcher.config import duration_seconds, resolve_start
from watcher.database import DatabaseAddress, connect
from watcher.positions import TABLE, MemoryPositions, Positions, SpannerPositions
from watcher.runners.schedule import Schedule
from watcher.runners.sinks import JsonLines
from watcher.runners.watching import Watching
from watcher.shards import groups
from watcher.table import discover

NAMELESS = "watch"


def command(
    database: DatabaseOption,
    table: TableOption,
    consumer: Annotated[
        str | None,
        typer.Option(
            help="Remember the position under this name, so that the next start goes on from there"
            " and clearing waits for it. Without a name nothing is remembered.",
        ),
    ] = None,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            help="Where a consumer without a position starts: latest, earliest (everything still in"
            " the index), or a timestamp such as 2026-01-31T12:00:00Z.",
        ),
    ] = "latest",
    interval: Annotated[str, typer.Option(help="Pause between polls, such as 500ms or 1s.")] = "1s",
    once: Annotated[bool, typer.Option("--once", help="Deliver what is there, then stop.")] = False,
    max_rows: Annotated[
        int, typer.Option(min=1, help="Cut a window that holds more rows than this.")
    ] = 100_000,
    positions_table: PositionsOption = TABLE,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every window.")] = False,
) -> None:
    """Print the changes of a table as JSON lines, one a change, until SIGTERM or Ctrl-C.

    Each line has an id that is the same on every delivery, the table, the commit timestamp, the
    shard, the key, all values, and the window. Polling sees inserts and updates, not deletes.

    Example: spanner-watcher watch -d spanner://projects/p/instances/i/databases/d -t Singers
    """
    log_to_stderr(verbose)
    seconds = duration_seconds(interval)
    wanted = resolve_start(start)
    address = DatabaseAddress.parse(database)
    client = connect(address)
    watched = discover(client, table)
    capture = PollCapture(address, watched, groups(watched.shard_values, 1))
    positions: Positions = MemoryPositions()
    if consumer is not None:
        positions = SpannerPositions(client, positions_table)
        positions.create()
    watching = Watching(capture, positions, consumer or NAMELESS, JsonLines(sys.stdout), max_rows)
    watching.register(wanted if wanted is not None else capture.look(0)[0].end)
    if once:
        while watching.poll():
            pass
        return
    schedule = Schedule()
    schedule.stop_on_signals()
    schedule.poll(seconds, f"poll {watched.name}", watching.poll)
    schedule.start()
    schedule.wait()
