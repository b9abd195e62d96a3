"""Records of a change stream that are decoded by column are what they are record by record."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest
from fixtures.any_batch import records
from google.cloud.spanner_v1 import PartialResultSet, ResultSetMetadata, StructType
from google.cloud.spanner_v1 import Type as TypePb
from google.protobuf.struct_pb2 import NULL_VALUE, ListValue, Value
from hypothesis import given
from hypothesis import strategies as st

from spanner_schema.model.column_types import Type
from watcher.captures import StreamRows
from watcher.captures.change_stream import ChangeFilter, record_columns
from watcher.captures.change_stream.record_columns import (
    FIELDS,
    MODS,
    PARTS,
    RecordColumns,
    decode_chunks,
    make_stream_rows,
)
from watcher.captures.change_stream.record_values import (
    ChildPartition,
    DataRecord,
    Heartbeat,
    Record,
)
from watcher.captures.change_stream.records import decode_records
from watcher.captures.change_stream.rows import ChangeBuffer, order_key
from watcher.model.change import Operation
from watcher.model.window import Window
from watcher.spanner.results.wire import ResultPart, parse_result_part
from watcher.spanner.timestamps import format_timestamp

WINDOW = Window(0, 10)
KEYS = {"Singers": ("b", "a")}


@pytest.fixture(scope="module", autouse=True)
def _by_column_however_few() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_columns, "FEW_BYTES", 0)
        yield


def value_of(content: object) -> Value:
    """A value as Spanner's API writes it."""
    if content is None:
        return Value(null_value=NULL_VALUE)
    if isinstance(content, bool):
        return Value(bool_value=content)
    if isinstance(content, list | tuple):
        return Value(list_value=ListValue(values=[value_of(each) for each in content]))
    return Value(string_value=str(content))


def describe_type(type_: Type) -> str:
    """A type as records describe it."""
    described: dict[str, object] = {"code": type_.code.value}
    if type_.element is not None:
        described["array_element_type"] = json.loads(describe_type(type_.element))
    return json.dumps(described)


def fields_of(record: DataRecord) -> list[object]:
    """A data change record as Spanner sends it."""
    columns = [
        [name, describe_type(type_), name in record.shape.primary_key, place]
        for place, (name, type_) in enumerate(record.shape.columns, 1)
    ]
    return [
        format_timestamp(record.commit_timestamp),
        record.sequence,
        record.transaction_id,
        record.last_in_partition,
        record.shape.table,
        columns,
        [[mod.key, mod.new, mod.old] for mod in record.mods],
        record.operation,
        record.captured,
        record.records_in_transaction,
        record.partitions_in_transaction,
        record.tag,
        record.system,
    ]


def row_of(record: Record) -> Value:
    """A row of the result: an array of one record."""
    if isinstance(record, DataRecord):
        return value_of([[[fields_of(record)], [], []]])
    if isinstance(record, Heartbeat):
        return value_of([[[], [[format_timestamp(record.timestamp)]], []]])
    start = format_timestamp(record.start)
    return value_of([[[], [], [[start, "00000001", [[record.token, record.parents]]]]]])


def array_of(members: dict[str, TypePb]) -> TypePb:
    """An array of structs."""
    fields = [StructType.Field(name=name, type_=type_) for name, type_ in members.items()]
    struct = TypePb(code="STRUCT", struct_type=StructType(fields=fields))
    return TypePb(code="ARRAY", array_element_type=struct)


def describe_result(fields: Sequence[str] = FIELDS) -> ResultSetMetadata:
    """The type of a result, as far as its structs have names."""
    text = TypePb(code="STRING")
    data = dict.fromkeys(fields, text) | {"mods": array_of(dict.fromkeys(MODS, text))}
    parts = dict.fromkeys(PARTS, text) | {PARTS[0]: array_of(data)}
    field = StructType.Field(name="ChangeRecord", type_=array_of(parts))
    return ResultSetMetadata(row_type=StructType(fields=[field]))


def messages_of(
    rows: Sequence[Value], metadata: ResultSetMetadata, in_message: int
) -> list[ResultPart]:
    """A result, so many rows a message."""
    firsts = range(0, max(1, len(rows)), in_message)
    parts = [PartialResultSet.pb()(values=rows[first : first + in_message]) for first in firsts]
    parts[0].metadata.CopyFrom(ResultSetMetadata.pb(metadata))
    return [parse_result_part(part.SerializeToString()) for part in parts]


@dataclass(frozen=True)
class Decoded:
    """What a reader makes of a result."""

    changes: list[dict[str, object]]
    children: list[ChildPartition]
    beats: list[Heartbeat]


def list_changes(batches: Sequence[StreamRows]) -> list[dict[str, object]]:
    """The changes of batches, each with its shape."""
    return [
        row | {"shape": rows.shapes[row["shape"]]}
        for rows in batches
        for row in rows.batch.to_pylist()
    ]


def decode_by_row(results: Sequence[ResultPart], change_filter: ChangeFilter) -> Decoded:
    """Record by record."""
    buffer = ChangeBuffer(WINDOW)
    each = list(decode_records(results))
    for record in each:
        if isinstance(record, DataRecord) and change_filter.accepts(record):
            buffer.add(replace(record, shape=order_key(record.shape, KEYS)), "token")
    children = [record for record in each if isinstance(record, ChildPartition)]
    beats = [record for record in each if isinstance(record, Heartbeat)]
    return Decoded(list_changes([buffer.take()]), children, beats)


def decode_by_column(results: Sequence[ResultPart], change_filter: ChangeFilter) -> Decoded:
    """By column, and nothing record by record."""
    each = list(decode_chunks(results))
    columns = [item for item in each if isinstance(item, RecordColumns)]
    children = [item for item in each if isinstance(item, ChildPartition)]
    beats = [item for item in each if isinstance(item, Heartbeat)]
    assert len(columns) + len(children) + len(beats) == len(each)
    made = [make_stream_rows(c, WINDOW, KEYS, "token", change_filter) for c in columns]
    return Decoded(list_changes([rows for rows in made if rows is not None]), children, beats)


def ordinary(record: DataRecord) -> DataRecord:
    """A record whose mods say nothing of their own, as they come from the wire."""
    positions = tuple(range(1, len(record.shape.columns) + 1))
    mods = tuple(replace(mod, captured=None) for mod in record.mods)
    return replace(record, mods=mods, shape=replace(record.shape, positions=positions))


MOMENTS = st.integers(0, 2**50)
tokens = st.text(max_size=4)
heartbeats = st.builds(Heartbeat, MOMENTS)
children = st.builds(ChildPartition, tokens, st.lists(tokens, max_size=2).map(tuple), MOMENTS)
data_records = records(whole=False, seldom=True).map(ordinary)
filters = st.builds(
    ChangeFilter,
    st.frozensets(st.sampled_from(["Singers", "Albums"])),
    st.frozensets(st.sampled_from(list(Operation)), max_size=2),
    st.none() | st.just(""),
)


@given(st.lists(data_records | heartbeats | children, max_size=8), filters, st.integers(1, 5))
def test_records_are_the_same_by_column(
    sent: list[Record], change_filter: ChangeFilter, in_message: int
) -> None:
    rows = [row_of(record) for record in sent]
    results = messages_of(rows, describe_result(), in_message)
    by_column = decode_by_column(results, change_filter)
    assert by_column == decode_by_row(results, change_filter)


def test_records_with_a_member_that_is_not_known_go_one_by_one() -> None:
    fields = [*fields_of_update("UPDATE"), "new"]
    rows = [value_of([[[fields], [], []]])] * len(FIELDS)
    results = messages_of(rows, describe_result((*FIELDS, "new_member")), 3)
    each = list(decode_chunks(results))
    assert each == list(decode_records(results))
    assert all(isinstance(record, DataRecord) for record in each)


def test_texts_that_are_null_are_empty() -> None:
    fields = fields_of_update("UPDATE")
    fields[1] = fields[11] = None
    fields[6] = [["{}", None, None]]
    results = messages_of([value_of([[[fields], [], []]])], describe_result(), 1)
    by_column = decode_by_column(results, ChangeFilter())
    assert by_column == decode_by_row(results, ChangeFilter())
    (change,) = by_column.changes
    assert change["new_values"] == "{}"
    assert change["record_sequence"] == change["transaction_tag"] == ""


def test_an_unknown_operation_is_refused_as_it_is_record_by_record() -> None:
    rows = [value_of([[[fields_of_update("MOVE")], [], []]])]
    with pytest.raises(ValueError, match="MOVE"):
        list(decode_chunks(messages_of(rows, describe_result(), 1)))


def fields_of_update(operation: str) -> list[object]:
    """A data change record of no columns."""
    moment = "2026-01-31T12:00:00Z"
    mods = [["{}", "{}", "{}"]]
    words = [operation, "NEW_ROW", "1", "1", "", False]
    return [moment, "00000000", "transaction", True, "Singers", [], mods, *words]
