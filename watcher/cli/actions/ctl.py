"""Sends commands to a running consumer through the database, and unregisters consumers."""

from __future__ import annotations

from collections.abc import Sequence

from watcher.cli.output import CONSOLE
from watcher.consumers.leases import Consumers, not_found
from watcher.consumers.merging import merge_parts
from watcher.consumers.positions import SpannerPositions
from watcher.consumers.positions.tables import list_names
from watcher.consumers.positions.unregister import unregister
from watcher.consumers.states import Command
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect
from watcher.spanner.timestamps import format_timestamp


def send_command(database: str, consumer: str, positions_table: str, command: Command) -> None:
    """Stores a command where the consumer reads it when it renews its lease."""
    client = connect(DatabaseAddress.parse(database))
    consumers = Consumers(client, positions_table)
    consumers.create()
    for name in consumers.ask(consumer, command):
        CONSOLE.print(f"{name}: command {command} sent")


def unregister_consumer(
    database: str, consumer: str, positions_table: str, tables: Sequence[str] | None, dry_run: bool
) -> None:
    """Removes the positions of a consumer, or of all parts of a shared one, or shows them."""
    client = connect(DatabaseAddress.parse(database))
    removed = unregister(client, positions_table, consumer, tables, dry_run)
    if not removed:
        raise not_found(consumer, list_names(client, positions_table))
    for name, gone in removed.items():
        if dry_run:
            shown = ", ".join(sorted(gone)) or "none"
            CONSOLE.print(f"{name}: positions that would be removed: {shown}")
        else:
            CONSOLE.print(f"{name}: {len(gone)} positions removed")


def merge_consumer(database: str, consumer: str, positions_table: str, dry_run: bool) -> None:
    """Merges the parts of a shared consumer, or shows where it would be."""
    positions = SpannerPositions(connect(DatabaseAddress.parse(database)), positions_table)
    merged = merge_parts(positions, consumer, dry_run)
    done = "would be" if dry_run else "is"
    for table, micros in sorted(merged.items()):
        CONSOLE.print(f"{consumer}: its position in {table} {done} {format_timestamp(micros)}")
