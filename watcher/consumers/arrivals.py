"""A consumer that arrives from another database may go on here once it is fenced there: rule 14 of
docs/protocol.md."""

from __future__ import annotations

from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.positions.fences import ARRIVING, MOVED, Location, NameFence
from watcher.consumers.positions.rows import MovedRows, StoredConsumer, StoredRows
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect
from watcher.spanner.dialects import find_dialect
from watcher.spanner.transactions import run_optimistically
from watcher.tables.parts import parse_part_name


def read_consumer(database: Database, positions_table: str, consumer: str) -> StoredConsumer:
    """What is stored of a consumer now."""
    with database.snapshot(multi_use=True) as snapshot:
        return StoredRows(snapshot, positions_table, find_dialect(database)).read(consumer)


def finish_arrival(database: Database, positions_table: str, consumer: str) -> bool:
    """Opens the name of a consumer that has left the other database for good; whether it did. Asks
    that database: the commit that closed its name there is what moved the consumer."""
    here = read_consumer(database, positions_table, consumer)
    if here.fence is None or here.fence.kind != ARRIVING:
        return False
    origin = here.fence.location
    there = read_consumer(
        connect(DatabaseAddress.parse(origin.address)), origin.positions_table, origin.consumer
    )
    part = parse_part_name(consumer)
    moved = Location(consumer if part is None else part[0], "", positions_table)
    if not has_left(there.fence, database, moved):
        return False
    open_name(database, positions_table, moved.consumer)
    return True


def has_left(fence: NameFence | None, database: Database, here: Location) -> bool:
    """Whether a fence says that its consumer was moved here."""
    if fence is None or fence.kind != MOVED:
        return False
    location = fence.location
    same = (location.consumer, location.positions_table) == (here.consumer, here.positions_table)
    return same and DatabaseAddress.parse(location.address).path == database.name


def open_name(database: Database, positions_table: str, consumer: str) -> None:
    """Takes the fences from a consumer that arrives, and its parts; others stay."""

    def write(transaction: Transaction) -> None:
        rows = MovedRows(transaction, positions_table, find_dialect(database))
        for each in rows.read_group(consumer):
            if each.fence is not None and each.fence.kind == ARRIVING:
                rows.open_name(each.name)

    run_optimistically(database, write)
