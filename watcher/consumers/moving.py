"""Moves a consumer to another name, or to another database: rule 14 of docs/protocol.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.arrivals import has_left, open_name
from watcher.consumers.leases import not_found
from watcher.consumers.positions.cleared import read_cleared
from watcher.consumers.positions.fences import ARRIVING, MOVED, Location, NameFence, check_name
from watcher.consumers.positions.own_names import cleared_table
from watcher.consumers.positions.reader import RowReader
from watcher.consumers.positions.rows import MovedConsumer, MovedRows, StoredConsumer, StoredRows
from watcher.consumers.positions.tables import Columns, create_own_tables, read_own_columns
from watcher.model.errors import ClearedError, ConfigurationError
from watcher.process.failpoints import failpoint
from watcher.spanner.dialects import SqlDialect, find_dialect
from watcher.spanner.timestamps import format_timestamp
from watcher.spanner.transactions import run_optimistically


@dataclass(frozen=True, slots=True)
class WholeConsumer:
    """All that is stored of a consumer: itself, its parts, and how its tables are divided."""

    name: str
    members: tuple[StoredConsumer, ...]
    divisions: Mapping[str, str]

    def rename(self, member: str, name: str) -> str:
        """The name of a member where the consumer has another name."""
        return name + member.removeprefix(self.name)


@dataclass(frozen=True)
class End:
    """One end of a move: where a consumer is stored, or will be."""

    database: Database
    location: Location

    def open_rows(self, transaction: Transaction) -> MovedRows:
        """The rows, to be changed."""
        return MovedRows(transaction, self.location.positions_table, self.sql)

    @cached_property
    def columns(self) -> Columns:
        """Those of the own tables that were there at first: none where nobody has watched."""
        return read_own_columns(self.database, self.location.positions_table)

    @property
    def sql(self) -> SqlDialect:
        """How statements are written there."""
        return find_dialect(self.database)

    @contextmanager
    def open_snapshot(self) -> Iterator[tuple[RowReader, StoredRows]]:
        """The rows as they are now, to be read alone; makes no table."""
        columns = self.columns
        with self.database.snapshot(multi_use=True) as snapshot:
            yield snapshot, StoredRows(snapshot, self.location.positions_table, self.sql, columns)


def read_whole(rows: StoredRows, consumer: str) -> WholeConsumer:
    """All that is stored of a consumer. Raises ConsumerNotFoundError, and ConsumerMovedError for a
    name that is fenced."""
    members = rows.read_group(consumer)
    if not members:
        raise not_found(consumer, rows.read_names())
    for each in members:
        check_name(each.name, each.fence)
    return WholeConsumer(consumer, members, rows.read_divisions(consumer))


def read_movable(rows: StoredRows, consumer: str) -> WholeConsumer:
    """As ``read_whole``. Raises LeaseHeldError, too, while an instance runs or a backfill is not
    done."""
    whole = read_whole(rows, consumer)
    for each in whole.members:
        rows.check_ended(each)
    return whole


def write_whole(rows: MovedRows, whole: WholeConsumer, name: str) -> None:
    """Stores a consumer under a name that nobody has. Nobody owns its leases."""
    for each in whole.members:
        renamed = whole.rename(each.name, name)
        if each.exists:
            state = MovedConsumer(each.read_selection(), each.command)
            rows.write_state([renamed], state)
        rows.write_positions(renamed, each.positions)
    rows.write_divisions(name, whole.divisions)


def remove_whole(rows: MovedRows, whole: WholeConsumer) -> None:
    """Removes everything that is stored of a consumer."""
    for each in whole.members:
        rows.remove(each.name, tuple(each.positions), whole=True)
    rows.delete_division(whole.name)


def move_consumer(source: End, target: End, dry_run: bool = False) -> WholeConsumer:
    """Moves a consumer; what it was. From one commit on the new name can go on and the old one
    cannot, however often a process dies on the way: run it again then.

    Raises ConsumerNotFoundError, LeaseHeldError while an instance runs, ConfigurationError for a
    name that is taken, and ConsumerMovedError for a consumer that went somewhere else.
    """
    if source.location == target.location:
        raise ConfigurationError(f"{source.location.describe()} is there already")
    if has_gone(source, target):
        if not dry_run:
            open_name(target.database, target.location.positions_table, target.location.consumer)
        return WholeConsumer(source.location.consumer, (), {})
    with source.open_snapshot() as (_, rows):
        whole = read_movable(rows, source.location.consumer)
    with target.open_snapshot() as (snapshot, rows):
        check_room(rows, target.location, source.location)
        check_kept(snapshot, target, whole)
    if dry_run:
        return whole
    for end in (source, target):
        create_own_tables(end.database, end.location.positions_table)
    target = replace(target)  # its columns are read again: somebody may have cleared meanwhile
    if source.database.name == target.database.name:
        return move_within(source, target)
    move_across(source, target, whole)
    return whole


def has_gone(source: End, target: End) -> bool:
    """Whether the consumer has left for the target already: a process died before it said so."""
    with source.open_snapshot() as (_, rows):
        fence = rows.read(source.location.consumer).fence
    return has_left(fence, target.database, target.location)


def move_within(source: End, target: End) -> WholeConsumer:
    """Another name in the same database: one transaction."""

    def move(transaction: Transaction) -> WholeConsumer:
        old, new = source.open_rows(transaction), target.open_rows(transaction)
        whole = read_movable(old, source.location.consumer)
        check_room(new, target.location, None)
        check_kept(transaction, target, whole)
        leave(old, whole, target.location)
        write_arrived(new, whole, target.location)
        return whole

    return run_optimistically(source.database, move)


def move_across(source: End, target: End, whole: WholeConsumer) -> None:
    """To another database: a fenced copy there, the commit here that moves it, the fence away."""

    def arrive(transaction: Transaction) -> None:
        rows = target.open_rows(transaction)
        check_room(rows, target.location, source.location)
        check_kept(transaction, target, whole)
        write_arrived(rows, whole, target.location)
        for each in whole.members:
            name = whole.rename(each.name, target.location.consumer)
            rows.fence(name, NameFence(ARRIVING, source.location))

    def switch(transaction: Transaction) -> None:
        rows = source.open_rows(transaction)
        if read_movable(rows, source.location.consumer) != whole:
            raise ConfigurationError(
                f"consumer '{source.location.consumer}' has run while it was moved: stop all its"
                " instances and run the same command again"
            )
        leave(rows, whole, target.location)

    run_optimistically(target.database, arrive)
    failpoint("after-arrival-before-move")
    run_optimistically(source.database, switch)
    failpoint("after-move-before-opening")
    open_name(target.database, target.location.positions_table, target.location.consumer)


def check_kept(reader: RowReader, end: End, whole: WholeConsumer) -> None:
    """Raises ClearedError where rows that the consumer has not delivered may have been cleared."""
    lost = find_lost(reader, end, whole)
    if lost:
        shown = describe_lost(lost)
        raise ClearedError(
            f"rows that consumer '{whole.name}' has not delivered may have been cleared in"
            f" {end.location.address} ({shown}): start a new consumer there, with a backfill"
        )


def find_lost(reader: RowReader, end: End, whole: WholeConsumer) -> dict[str, int]:
    """Up to where rows above the positions of a polling consumer may have left the index, by
    table."""
    if (cleared_table(end.location.positions_table), "ClearedTo") not in end.columns:
        return {}
    polled = [each for each in whole.members if not is_streamed(each)]
    tables = sorted({table for each in polled for table in each.positions})
    cleared = read_cleared(reader, end.location.positions_table, tables, end.sql)
    return {
        table: at
        for table, at in cleared.items()
        if any(at > each.positions[table].position for each in polled if table in each.positions)
    }


def is_streamed(stored: StoredConsumer) -> bool:
    """Whether a consumer reads a change stream, which nobody clears."""
    selection = stored.read_selection()
    return selection is not None and selection.streamed


def describe_lost(lost: Mapping[str, int]) -> str:
    """In words."""
    return ", ".join(f"{table} up to {format_timestamp(at)}" for table, at in sorted(lost.items()))


def write_arrived(rows: MovedRows, whole: WholeConsumer, location: Location) -> None:
    """The consumer at its new location, where a fence or a move that was not finished may have
    left something."""
    remove_whole(rows, WholeConsumer(location.consumer, rows.read_group(location.consumer), {}))
    write_whole(rows, whole, location.consumer)


def leave(rows: MovedRows, whole: WholeConsumer, target: Location) -> None:
    """The old name has nothing any more, and nobody can take it."""
    remove_whole(rows, whole)
    rows.fence(whole.name, NameFence(MOVED, target))


def check_room(rows: StoredRows, target: Location, origin: Location | None) -> None:
    """Raises ConfigurationError for a name that another consumer has, or will have. The name of one
    that was moved away is free again, and that of a move that was not finished is its own."""
    group = rows.read_group(target.consumer)
    own = None if origin is None else NameFence(ARRIVING, origin)
    closed = [each.fence for each in group if each.fence is not None]
    if len(closed) == len(group) and all(f == own or f.kind == MOVED for f in closed):
        return
    for each in group:
        check_name(each.name, each.fence)
    raise ConfigurationError(
        f"there is a {target.describe()} already: choose another name, or unregister it first with"
        f" 'spanner-watcher ctl forget {target.consumer}'"
    )
