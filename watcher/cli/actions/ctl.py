"""Sends commands to a running consumer through the database, and unregisters consumers."""

from __future__ import annotations

from collections.abc import Sequence

from google.cloud.spanner_v1.database import Database

from watcher.cli.output import CONSOLE
from watcher.consumers.leases import Consumers
from watcher.consumers.positions import SpannerPositions, consumers_table
from watcher.consumers.positions.unregister import unregister
from watcher.consumers.states import Command
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect


def send_command(database: str, consumer: str, positions_table: str, command: Command) -> None:
    """Stores a command where the consumer reads it when it renews its lease."""
    client = connect(DatabaseAddress.parse(database))
    consumers = Consumers(client, consumers_table(positions_table))
    consumers.create()
    consumers.ask(consumer, command)
    CONSOLE.print(f"{consumer}: command {command} sent")


def unregister_consumer(
    database: str, consumer: str, positions_table: str, tables: Sequence[str] | None, dry_run: bool
) -> None:
    """Removes the positions of a consumer, or shows them."""
    client = connect(DatabaseAddress.parse(database))
    check_known(client, consumer, positions_table)
    removed = unregister(client, positions_table, consumer, tables, dry_run)
    if dry_run:
        names = ", ".join(sorted(removed)) or "none"
        CONSOLE.print(f"{consumer}: positions that would be removed: {names}")
    else:
        CONSOLE.print(f"{consumer}: {len(removed)} positions removed")


def check_known(client: Database, consumer: str, positions_table: str) -> None:
    """Raises ConsumerNotFoundError for a consumer without a state and without a position."""
    positions = SpannerPositions(client, positions_table)
    positions.create()
    if not positions.load_all(consumer):
        Consumers(client, consumers_table(positions_table)).require(consumer)
