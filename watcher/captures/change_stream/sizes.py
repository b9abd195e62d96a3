"""How large the records of a change stream are: counted without their values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from watcher.captures.change_stream.json_records import decode_json
from watcher.captures.change_stream.record_values import ChildPartition, DataRecord
from watcher.captures.change_stream.records import decode_children, decode_timestamp, parse_list
from watcher.model.change import Operation
from watcher.spanner.results.wire import ResultPart, count_values, join_chunks, parse_cell

Accepts = Callable[[str, Operation, str], bool]
"""Whether records of a table, an operation and a transaction tag are read."""


@dataclass(frozen=True, slots=True)
class RecordSize:
    """How many changes a data change record has, and its length in bytes as Spanner sends it.

    ``commit_timestamp`` is in microseconds since 1970.
    """

    commit_timestamp: int
    rows: int
    bytes: int


def decode_sizes(
    results: Iterable[ResultPart], accepts: Accepts
) -> Iterator[RecordSize | ChildPartition]:
    """The sizes of a query's records and its child partitions, in the order in which Spanner sends
    them. A record that is not accepted has no rows and no bytes."""
    for values, _ in join_chunks(results):
        for value in values:
            if text := parse_cell(value).text:
                yield from decode_json_sizes(text, accepts)
                continue
            for record in parse_list(value):
                data, _, children = parse_list(record)
                for each in parse_list(data):
                    yield decode_size(parse_list(each), len(each), accepts)
                for each in parse_list(children):
                    yield from decode_children(parse_list(each))


def decode_json_sizes(text: str, accepts: Accepts) -> Iterator[RecordSize | ChildPartition]:
    """As ``decode_sizes``, of a row of the PostgreSQL dialect."""
    for record in decode_json(text):
        if isinstance(record, ChildPartition):
            yield record
        elif isinstance(record, DataRecord):
            accepted = accepts(record.shape.table, record.operation, record.tag)
            rows, size = (len(record.mods), len(text)) if accepted else (0, 0)
            yield RecordSize(record.commit_timestamp, rows, size)


def decode_size(fields: Sequence[bytes], length: int, accepts: Accepts) -> RecordSize:
    """The size of a data change record from its fields, which are in Spanner's order."""
    at = decode_timestamp(fields[0])
    table, operation = parse_cell(fields[4]).text, Operation(parse_cell(fields[7]).text)
    if not accepts(table, operation, parse_cell(fields[11]).text):
        return RecordSize(at, 0, 0)
    return RecordSize(at, count_values(parse_cell(fields[6]).list), length)
