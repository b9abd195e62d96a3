"""The records of a change stream, from the wire. Spanner: details of change streams, "Change stream
record format"."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache

from spanner_schema.model.column_types import Type
from watcher.captures.change_stream.json_records import decode_json
from watcher.captures.change_stream.record_values import (
    ChildPartition,
    DataRecord,
    Heartbeat,
    Record,
    StreamMod,
    decode_type,
)
from watcher.model.change import Operation, Shape, ValueCapture
from watcher.spanner.results.wire import ResultPart, join_chunks, merge_lists, parse_cell
from watcher.spanner.timestamps import to_micros


def decode_records(results: Iterable[ResultPart]) -> Iterator[Record]:
    """The records of a query, in the order in which Spanner sends them."""
    for values, _ in join_chunks(results):
        for value in values:
            yield from decode_row(value)


def decode_row(value: bytes) -> Iterator[Record]:
    """The records of a row, whose only column is an array of them; in the PostgreSQL dialect a
    text."""
    if text := parse_cell(value).text:
        yield from decode_json(text)
        return
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
    # assumes: stream-old-values
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
    positions: list[int] = []
    for each in parse_list(columns):
        name, type_, of_key, position = parse_list(each)
        text = parse_cell(name).text
        names.append((text, decode_type(json.loads(parse_cell(type_).text))))
        positions.append(int(parse_cell(position).text))
        if parse_cell(of_key).boolean:
            key.append(text)
    return Shape(table, tuple(names), tuple(key), tuple(positions))
