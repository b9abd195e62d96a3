"""The records of a change stream, from the wire. Spanner: details of change streams, "Change stream
record format"."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from itertools import compress

from ddl.schema import Type, TypeCode
from watcher.change import Operation, Shape, ValueCapture
from watcher.spanner.results.wire import ResultPart, join_chunks, merge_lists, parse_cell
from watcher.spanner.timestamps import to_micros
from watcher.tables.column_choice import ColumnChoice


@dataclass(frozen=True, slots=True)
class StreamMod:
    """One row of a record: JSON objects. ``new`` of a delete is None, as is ``old`` where the
    stream does not capture it; an insert has no old values, so that its ``old`` is empty.
    ``captured`` is set where the row has fewer values than the record says."""

    key: str
    new: str | None
    old: str | None
    captured: ValueCapture | None = None


@dataclass(frozen=True, slots=True)
class DataRecord:
    """Changes of one table, of one kind, in one transaction and partition.

    ``commit_timestamp`` is in microseconds since 1970.
    """

    commit_timestamp: int
    sequence: str
    transaction_id: str
    last_in_partition: bool
    shape: Shape
    mods: tuple[StreamMod, ...]
    operation: Operation
    captured: ValueCapture
    records_in_transaction: int
    partitions_in_transaction: int
    tag: str
    system: bool

    def measure_values(self) -> int:
        """How many characters its values have."""
        return sum(len(mod.new or "") + len(mod.old or "") for mod in self.mods)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Everything of the partition up to this timestamp was sent."""

    timestamp: int


@dataclass(frozen=True, slots=True)
class ChildPartition:
    """A partition that takes over keys at ``start``. The first partitions have no parents."""

    token: str
    parents: tuple[str, ...]
    start: int


@dataclass(frozen=True, slots=True)
class PartitionStart:
    """Partitions that are to be read from a timestamp on, where keys move between partitions."""

    timestamp: int
    sequence: str
    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartitionMove:
    """Keys that moved at a timestamp: into this partition, from ``sources``. Empty where keys only
    left it."""

    timestamp: int
    sequence: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartitionEnd:
    """The last record of a partition whose keys have moved away."""

    timestamp: int
    sequence: str


MovingRecord = DataRecord | Heartbeat | PartitionStart | PartitionMove | PartitionEnd
"""The records of a stream whose partitions live on while their keys move."""

Record = DataRecord | Heartbeat | ChildPartition


def decode_records(results: Iterable[ResultPart]) -> Iterator[Record]:
    """The records of a query, in the order in which Spanner sends them."""
    for values, _ in join_chunks(results):
        for value in values:
            yield from decode_row(value)


def decode_row(value: bytes) -> Iterator[Record]:
    """The records of a row, whose only column is an array of them."""
    for record in parse_list(value):
        data, beats, children = parse_list(record)
        for each in parse_list(data):
            yield decode_data_record(parse_list(each))
        for each in parse_list(beats):
            yield Heartbeat(decode_timestamp(parse_list(each)[0]))
        for each in parse_list(children):
            yield from decode_children(parse_list(each))


def parse_list(value: bytes) -> list[bytes]:
    """The members of an array or a struct."""
    return merge_lists((value,))


def decode_timestamp(value: bytes) -> int:
    """A timestamp in microseconds since 1970."""
    return to_micros(datetime.fromisoformat(parse_cell(value).text))


def decode_children(fields: Sequence[bytes]) -> Iterator[ChildPartition]:
    """The partitions of a child partitions record."""
    start = decode_timestamp(fields[0])
    for each in parse_list(fields[2]):
        token, parents = parse_list(each)
        yield ChildPartition(
            parse_cell(token).text, tuple(parse_cell(p).text for p in parse_list(parents)), start
        )


def decode_data_record(fields: Sequence[bytes]) -> DataRecord:
    """A data change record from its fields, which are in Spanner's order."""
    operation = Operation(parse_cell(fields[7]).text)
    captured = ValueCapture(parse_cell(fields[8]).text)
    return DataRecord(
        commit_timestamp=decode_timestamp(fields[0]),
        sequence=parse_cell(fields[1]).text,
        transaction_id=parse_cell(fields[2]).text,
        last_in_partition=parse_cell(fields[3]).boolean,
        shape=decode_shape(parse_cell(fields[4]).text, fields[5]),
        mods=tuple(decode_mod(each, operation, captured) for each in parse_list(fields[6])),
        operation=operation,
        captured=captured,
        records_in_transaction=int(parse_cell(fields[9]).text),
        partitions_in_transaction=int(parse_cell(fields[10]).text),
        tag=parse_cell(fields[11]).text,
        system=parse_cell(fields[12]).boolean,
    )


def decode_mod(value: bytes, operation: Operation, captured: ValueCapture) -> StreamMod:
    """A changed row."""
    key, new, old = (parse_cell(each).text for each in parse_list(value))
    return StreamMod(
        key,
        None if operation is Operation.DELETE else new or "{}",
        (old or "{}") if captured.keeps_old else None,
    )


@lru_cache(maxsize=1024)
def decode_shape(table: str, columns: bytes) -> Shape:
    """The columns of a record. Most records of a table have the same ones."""
    names: list[tuple[str, Type]] = []
    key: list[str] = []
    places: list[int] = []
    for each in parse_list(columns):
        name, type_, of_key, place = parse_list(each)
        text = parse_cell(name).text
        names.append((text, decode_type(json.loads(parse_cell(type_).text))))
        places.append(int(parse_cell(place).text))
        if parse_cell(of_key).boolean:
            key.append(text)
    return Shape(table, tuple(names), tuple(key), tuple(places))


def choose_columns(record: DataRecord, choice: ColumnChoice) -> DataRecord:
    """A record of the chosen columns, and of its key."""
    columns, key = record.shape.columns, record.shape.primary_key
    kept = [choice.includes(name) or name in key for name, _ in columns]
    if all(kept):
        return record
    narrow = replace(
        record.shape,
        columns=tuple(compress(columns, kept)),
        positions=tuple(compress(record.shape.positions, kept)),
    )
    names = frozenset(name for name, _ in narrow.columns)
    mods = tuple(
        StreamMod(mod.key, choose_values(mod.new, names), choose_values(mod.old, names))
        for mod in record.mods
    )
    return replace(record, shape=narrow, mods=mods)


def choose_values(values: str | None, names: frozenset[str]) -> str | None:
    """The values of some columns, of a JSON object."""
    if values is None:
        return None
    return json.dumps({name: v for name, v in json.loads(values).items() if name in names})


def decode_type(described: dict[str, object]) -> Type:
    """A type as a record describes it: ``{"code": "ARRAY", "array_element_type": {...}}``."""
    code = TypeCode(str(described["code"]))
    element = described.get("array_element_type")
    return Type(code, element=decode_type(element) if isinstance(element, dict) else None)
