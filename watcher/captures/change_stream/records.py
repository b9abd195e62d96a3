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
from watcher.spanner.results.wire import ResultPart, cell, elements, unchunked
from watcher.spanner.timestamps import micros_of
from watcher.tables.column_choice import ColumnChoice


@dataclass(frozen=True, slots=True)
class Mod:
    """One row of a record: JSON objects. ``new`` of a delete is None, as is ``old`` where the
    stream does not capture it; an insert has no old values, so that its ``old`` is empty.
    ``captured`` is set where less is known of the row than the record says."""

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
    mods: tuple[Mod, ...]
    operation: Operation
    captured: ValueCapture
    records_in_transaction: int
    partitions_in_transaction: int
    tag: str
    system: bool


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Everything of the partition up to this timestamp was sent."""

    timestamp: int


@dataclass(frozen=True, slots=True)
class Child:
    """A partition that takes over keys at ``start``. The first partitions have no parents."""

    token: str
    parents: tuple[str, ...]
    start: int


Record = DataRecord | Heartbeat | Child


def records_of(results: Iterable[ResultPart]) -> Iterator[Record]:
    """The records of a query, in the order in which Spanner sends them."""
    for values, _ in unchunked(results):
        for value in values:
            for record in listed(value):
                data, beats, children = listed(record)
                for each in listed(data):
                    yield data_record(listed(each))
                for each in listed(beats):
                    yield Heartbeat(moment(listed(each)[0]))
                for each in listed(children):
                    yield from children_of(listed(each))


def listed(value: bytes) -> list[bytes]:
    """The members of an array or a struct."""
    return elements(cell(value).list)


def moment(value: bytes) -> int:
    """A timestamp in microseconds since 1970."""
    return micros_of(datetime.fromisoformat(cell(value).text))


def children_of(fields: Sequence[bytes]) -> Iterator[Child]:
    """The partitions of a child partitions record."""
    start = moment(fields[0])
    for each in listed(fields[2]):
        token, parents = listed(each)
        yield Child(cell(token).text, tuple(cell(p).text for p in listed(parents)), start)


def data_record(fields: Sequence[bytes]) -> DataRecord:
    """A data change record from its fields, which stand in Spanner's order."""
    operation = Operation(cell(fields[7]).text)
    captured = ValueCapture(cell(fields[8]).text)
    return DataRecord(
        commit_timestamp=moment(fields[0]),
        sequence=cell(fields[1]).text,
        transaction_id=cell(fields[2]).text,
        last_in_partition=cell(fields[3]).boolean,
        shape=shape(cell(fields[4]).text, fields[5]),
        mods=tuple(mod(each, operation, captured) for each in listed(fields[6])),
        operation=operation,
        captured=captured,
        records_in_transaction=int(cell(fields[9]).text),
        partitions_in_transaction=int(cell(fields[10]).text),
        tag=cell(fields[11]).text,
        system=cell(fields[12]).boolean,
    )


def mod(value: bytes, operation: Operation, captured: ValueCapture) -> Mod:
    """A changed row."""
    key, new, old = (cell(each).text for each in listed(value))
    return Mod(
        key,
        None if operation is Operation.DELETE else new or "{}",
        (old or "{}") if captured.keeps_old else None,
    )


@lru_cache(maxsize=1024)
def shape(table: str, columns: bytes) -> Shape:
    """The columns that a record tells of. Most records of a table tell of the same ones."""
    names: list[tuple[str, Type]] = []
    key: list[str] = []
    places: list[int] = []
    for each in listed(columns):
        name, type_, of_key, place = listed(each)
        text = cell(name).text
        names.append((text, type_of(json.loads(cell(type_).text))))
        places.append(int(cell(place).text))
        if cell(of_key).boolean:
            key.append(text)
    return Shape(table, tuple(names), tuple(key), tuple(places))


def with_columns(record: DataRecord, choice: ColumnChoice) -> DataRecord:
    """A record that tells only of the chosen columns, and of its key."""
    columns, key = record.shape.columns, record.shape.primary_key
    kept = [choice.takes(name) or name in key for name, _ in columns]
    if all(kept):
        return record
    narrow = replace(
        record.shape,
        columns=tuple(compress(columns, kept)),
        positions=tuple(compress(record.shape.positions, kept)),
    )
    names = frozenset(name for name, _ in narrow.columns)
    mods = tuple(Mod(mod.key, some(mod.new, names), some(mod.old, names)) for mod in record.mods)
    return replace(record, shape=narrow, mods=mods)


def some(values: str | None, names: frozenset[str]) -> str | None:
    """The values of some columns, of a JSON object."""
    if values is None:
        return None
    return json.dumps({name: v for name, v in json.loads(values).items() if name in names})


def type_of(described: dict[str, object]) -> Type:
    """A type as a record describes it: ``{"code": "ARRAY", "array_element_type": {...}}``."""
    code = TypeCode(str(described["code"]))
    element = described.get("array_element_type")
    return Type(code, element=type_of(element) if isinstance(element, dict) else None)
