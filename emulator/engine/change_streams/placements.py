"""Streams with a function for each placement: where the rows are that a transaction changes, and
what placements that come and go do to partitions.

A row and those that are interleaved below it are in one partition. A change is recorded where its
row was before the transaction; a row that goes to another placement takes its key along, and where
partitions live on while keys move, both sides say so in an event at that timestamp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import apsw

from emulator.engine.change_streams.mods import ModType, RowChange
from emulator.engine.change_streams.mutable import (
    end_partition,
    event_record,
    is_mutable,
    start_record,
    write,
)
from emulator.engine.change_streams.partitions import (
    StreamPartition,
    add_partition,
    create_partitions,
    end_partitions,
    find_partition,
    hash_key,
    low,
    stream_partitions,
)
from emulator.engine.change_streams.values import Json, compact_json
from emulator.storage.change_streams import columns_tracked_by, key_columns
from emulator.storage.sqlite import current_table
from emulator.values.sqlite_text import quote_name
from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.names import same_name
from spanner_schema.model.schema import ChangeStream, Schema, Table
from spanner_schema.syntax import placements

Key = tuple[str, str]
"""The name of a table, and the key of a row of it as JSON."""


def find_by_key(partitions: Sequence[StreamPartition]) -> Callable[[RowChange], StreamPartition]:
    """Finds the partition of a change in a stream that is read as a whole."""
    return lambda mod: find_partition(
        partitions, hash_key(mod.table.name, compact_json(list(mod.key)))
    )


@dataclass(frozen=True, slots=True)
class RowMove:
    """A row that goes from one placement to another, with everything below it."""

    table: Table
    place: int
    source: str
    destination: str


class RowPlaces:
    """Where the rows are that a transaction changes."""

    def __init__(
        self, connection: apsw.Connection, schema: Schema, mods: Sequence[RowChange]
    ) -> None:
        self._connection = connection
        self._schema = schema
        self._owners: dict[str, Table | None] = {}
        self._changed = {
            (mod.table.name, compact_json(list(mod.key))): mod
            for mod in mods
            if mod.table.placement_key is not None
        }

    def find(self, partitions: Sequence[StreamPartition]) -> Callable[[RowChange], StreamPartition]:
        """Finds the partition of a change."""

        def find(mod: RowChange) -> StreamPartition:
            owner = self._find_owner(mod.table)
            if owner is None:
                place = hash_key(mod.table.name, compact_json(list(mod.key)))
                return find_partition(partitions, place, placements.DEFAULT)
            key = mod.key[: len(owner.primary_key)]
            place = hash_key(owner.name, compact_json(list(key)))
            return find_partition(partitions, place, self._find_placement(owner, key))

        return find

    def list_moves(self, stream: ChangeStream) -> Iterator[RowMove]:
        """The rows that go to another placement, where the stream watches their table or one that
        is interleaved below it."""
        for (name, key), mod in self._changed.items():
            source, destination = read_placement(mod, mod.old), read_placement(mod, mod.new)
            moves = mod.kind is ModType.UPDATE and source != destination
            if moves and self._is_watched(stream, mod.table):
                yield RowMove(mod.table, hash_key(name, key), source, destination)

    def _is_watched(self, stream: ChangeStream, owner: Table) -> bool:
        return any(
            columns_tracked_by(stream, table) is not None
            for table in self._schema.tables
            if (found := self._find_owner(table)) is not None and same_name(found.name, owner.name)
        )

    def _find_owner(self, table: Table) -> Table | None:
        """The table whose placement key says where the rows of a table are."""
        if table.name not in self._owners:
            self._owners[table.name] = placements.find_placement_table(self._schema, table)
        return self._owners[table.name]

    def _find_placement(self, owner: Table, key: Sequence[Json]) -> str:
        """The placement of a row of a placement table: before the transaction, if it was there."""
        mod = self._changed.get((owner.name, compact_json(list(key))))
        if mod is not None:
            return read_placement(mod, mod.old or mod.new)
        column = owner.placement_key
        if column is None:
            return placements.DEFAULT
        keys = key_columns(owner)
        conditions = " AND ".join(f"{quote_name(each.name)} IS ?" for each in keys)
        row = self._connection.execute(
            f"SELECT {quote_name(column.name)} FROM {current_table(owner.name)} "
            f"WHERE {conditions or '1'}",
            tuple(to_stored(value, each.type.code) for value, each in zip(key, keys, strict=True)),
        ).fetchone()
        return placements.DEFAULT if row is None else str(row[0])


def read_placement(mod: RowChange, image: Sequence[Json]) -> str:
    """The placement that an image of a row names; empty where there is none."""
    places = (value for value, c in zip(image, mod.table.columns, strict=False) if c.placement_key)
    return str(next(places, ""))


def to_stored(value: Json, code: TypeCode) -> apsw.SQLiteValue:
    """A key's value in an image as SQLite has it."""
    if code in {TypeCode.BYTES, TypeCode.PROTO} and isinstance(value, str):
        return bytes.fromhex(value)
    return value if isinstance(value, int | float | str) else None


@dataclass(slots=True)
class PartitionEvent:
    """What one partition says of the keys that move at a timestamp."""

    partition: StreamPartition
    sources: list[str] = field(default_factory=list)
    destinations: list[str] = field(default_factory=list)


def event_rows(
    moves: Iterator[RowMove], partitions: Sequence[StreamPartition], micros: int, first: int
) -> Iterator[tuple[int, int, int, str]]:
    """Rows of ``$records`` for rows that move, numbered from ``first`` on."""
    events: dict[int, PartitionEvent] = {}
    for move in moves:
        giver = find_partition(partitions, move.place, move.source)
        taker = find_partition(partitions, move.place, move.destination)
        given = events.setdefault(giver.number, PartitionEvent(giver)).destinations
        taken = events.setdefault(taker.number, PartitionEvent(taker)).sources
        given += [taker.token] if taker.token not in given else []
        taken += [giver.token] if giver.token not in taken else []
    for sequence, (number, event) in enumerate(events.items(), start=first):
        text = event_record(
            micros,
            sequence,
            event.partition.token,
            came_from=event.sources,
            went_to=event.destinations,
        )
        yield number, micros, sequence, text


def change_placements(
    connection: apsw.Connection, stream: ChangeStream, before: Schema, after: Schema, micros: int
) -> list[StreamPartition]:
    """Partitions for the placements that a statement creates, and the end of those that it drops;
    the partitions whose readers have news."""
    old, new = placements.list_placement_names(before), placements.list_placement_names(after)
    news: list[StreamPartition] = []
    for placement in new:
        if placement not in old:
            news += open_placement(connection, stream, placement, micros)
    for placement in old:
        if placement not in new:
            news += close_placement(connection, stream, placement, micros)
    return news


def open_placement(
    connection: apsw.Connection, stream: ChangeStream, placement: str, micros: int
) -> list[StreamPartition]:
    """A partition of the default placement announces those of a new one, for those who read the
    stream as a whole."""
    name = stream.name.casefold()
    announcer = min(list_active(connection, name, placements.DEFAULT), key=low)
    if is_mutable(stream):
        tokens = create_partitions(connection, name, micros, placement)
        write(connection, announcer.number, micros, 0, start_record(micros, 0, tokens))
        return [announcer]
    end_partitions(connection, [announcer], micros)
    parents = [announcer.token]
    continue_partition(connection, announcer, micros, parents)
    create_partitions(connection, name, micros, placement, parents)
    return [announcer]


def close_placement(
    connection: apsw.Connection, stream: ChangeStream, placement: str, micros: int
) -> list[StreamPartition]:
    """The partitions of a placement that is dropped end: it has no rows any more."""
    name = stream.name.casefold()
    ended = list_active(connection, name, placement)
    if is_mutable(stream):
        for partition in ended:
            end_partition(connection, partition, micros)
        return ended
    heir = min(list_active(connection, name, placements.DEFAULT), key=low)
    ended = [heir, *ended]
    end_partitions(connection, ended, micros)
    continue_partition(connection, heir, micros, [partition.token for partition in ended])
    return ended


def continue_partition(
    connection: apsw.Connection, ended: StreamPartition, micros: int, parents: Sequence[str]
) -> None:
    """A partition with the keys of one that has ended."""
    span = (ended.low, ended.high)
    add_partition(connection, ended.stream, span, micros, parents, ended.placement)


def list_active(connection: apsw.Connection, stream: str, placement: str) -> list[StreamPartition]:
    """The partitions of a placement that have not ended."""
    partitions = stream_partitions(connection, stream)
    return [p for p in partitions if p.placement == placement and p.ended is None]
