"""``spanner-watcher ctl``: commands to a running consumer, through the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Annotated

import typer

from watcher.cli.options import (
    POSITIONS_TABLE,
    DatabaseOption,
    DryRunOption,
    JsonOption,
    PositionsTableOption,
)
from watcher.cli.output import CONSOLE, print_json
from watcher.consumers.states import Command
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from watcher.consumers.audit import Audit
    from watcher.consumers.leases import Consumers, not_found
    from watcher.consumers.merging import merge_parts
    from watcher.consumers.positions import SpannerPositions
    from watcher.consumers.positions.tables import list_names
    from watcher.consumers.positions.unregister import unregister
    from watcher.spanner.address import DatabaseAddress
    from watcher.spanner.database import connect
    from watcher.spanner.timestamps import format_timestamp

ConsumerArgument = Annotated[str, typer.Argument(metavar="CONSUMER", help="The consumer's name.")]


def sends(command: Command, text: str) -> Callable[..., None]:
    """What sends a command, with its help."""

    def send(
        name: ConsumerArgument,
        database: DatabaseOption,
        positions_table: PositionsTableOption = POSITIONS_TABLE,
        json_output: JsonOption = False,
    ) -> None:
        send_command(database, name, positions_table, command, json_output)

    send.__name__, send.__doc__ = str(command), text
    return send


pause = sends(
    Command.PAUSE,
    """Deliver nothing until resumed.

    The consumer keeps its name, and clearing waits for it.""",
)
resume = sends(Command.RESUME, "Continue after a pause, or take back a drain that is not done.")
drain = sends(Command.DRAIN, "Deliver everything up to now, then stop.")
stop = sends(Command.STOP, "Stop after the current window.")
replay = sends(
    Command.REPLAY,
    """Deliver the dead letters again, where the consumer's changes go.

    Between two windows; what is refused again stays in the file. Newer versions of the same rows
    may have been delivered in the meantime. Takes back a pause or a drain, as resume does. Where no
    consumer runs, 'spanner-watcher replay' gives a file to a function.""",
)


def forget(
    name: ConsumerArgument,
    database: DatabaseOption,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table", "-t", metavar="TABLE", help="Unregister only this table; repeatable."
        ),
    ] = None,
    dry_run: DryRunOption = False,
    json_output: JsonOption = False,
) -> None:
    """Unregister a consumer that will not come back.

    Clearing then no longer waits for it. Removes its position: what it has not delivered may then
    be cleared from the index. Fails for a running consumer, except for tables that it no longer
    watches.
    """
    unregister_consumer(database, name, positions_table, table, dry_run, json_output)


def merge(
    name: ConsumerArgument,
    database: DatabaseOption,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
    dry_run: DryRunOption = False,
    json_output: JsonOption = False,
) -> None:
    """Merge the parts of a shared consumer into one.

    Its position in each table becomes the least of its parts: nothing is lost, some rows come
    again. The next start may divide it into another number of parts, or run as a single instance.
    Fails while an instance runs.
    """
    merge_consumer(database, name, positions_table, dry_run, json_output)


def send_command(
    database: str, consumer: str, positions_table: str, command: Command, json_output: bool = False
) -> None:
    """Stores a command where the consumer reads it when it renews its lease."""
    client = connect(DatabaseAddress.parse_for_writes(database))
    consumers = Consumers(client, positions_table)
    consumers.create()
    with Audit(client, positions_table).record(str(command), consumer):
        asked = list(consumers.ask(consumer, command))
    if json_output:
        print_json({"command": str(command), "consumers": asked})
        return
    for name in asked:
        CONSOLE.print(f"{name}: command {command} sent")


def unregister_consumer(
    database: str,
    consumer: str,
    positions_table: str,
    tables: Sequence[str] | None,
    dry_run: bool,
    json_output: bool = False,
) -> None:
    """Removes the positions of a consumer, or of all parts of a shared one, or shows them."""
    client = connect(DatabaseAddress.parse_for_writes(database))
    audit = Audit(client, positions_table)
    with nullcontext() if dry_run else audit.record("forget", consumer, tables=tables):
        removed = unregister(client, positions_table, consumer, tables, dry_run)
        if not removed:
            raise not_found(consumer, list_names(client, positions_table))
    if json_output:
        positions = {name: sorted(gone) for name, gone in removed.items()}
        print_json({"dry_run": dry_run, "removed": positions})
        return
    for name, gone in removed.items():
        if dry_run:
            shown = ", ".join(sorted(gone)) or "none"
            CONSOLE.print(f"{name}: positions that would be removed: {shown}")
        else:
            CONSOLE.print(f"{name}: {len(gone)} positions removed")


def merge_consumer(
    database: str, consumer: str, positions_table: str, dry_run: bool, json_output: bool = False
) -> None:
    """Merges the parts of a shared consumer, or shows where it would be."""
    client = connect(DatabaseAddress.parse_for_writes(database))
    audit = Audit(client, positions_table)
    with nullcontext() if dry_run else audit.record("merge", consumer):
        merged = merge_parts(SpannerPositions(client, positions_table), consumer, dry_run)
    if json_output:
        at = {table: format_timestamp(micros) for table, micros in sorted(merged.items())}
        print_json({"consumer": consumer, "dry_run": dry_run, "positions": at})
        return
    done = "would be" if dry_run else "is"
    for table, micros in sorted(merged.items()):
        CONSOLE.print(f"{consumer}: its position in {table} {done} {format_timestamp(micros)}")
