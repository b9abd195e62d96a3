"""Columns decoded to Arrow are what the client's own decoding gives, however the wire cuts them."""

from __future__ import annotations

import base64
import json
import math
import random
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.cloud.spanner_v1 import PartialResultSet, ResultSetMetadata, StructType
from google.cloud.spanner_v1 import Type as TypePb
from google.cloud.spanner_v1.streamed import StreamedResultSet
from google.protobuf.struct_pb2 import NULL_VALUE, ListValue, Value
from hypothesis import given, settings
from hypothesis import strategies as st

from spanner_schema.model.column_types import Type, TypeCode
from watcher.model.value_types import UnsupportedTypeError
from watcher.spanner.results.columns import build_schema, decode_batches
from watcher.spanner.results.sent_values import UnexpectedValueError
from watcher.spanner.results.supported_types import Nanoseconds
from watcher.spanner.results.timestamp_columns import LossyTimestampError
from watcher.spanner.results.wire import parse_result_part
from watcher.spanner.timestamps import format_timestamp, to_micros

MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(
    lambda moment: moment.replace(tzinfo=UTC)
)
NUMERICS = st.decimals(Decimal(-(10**28)), Decimal(10**28), places=9, allow_nan=False)


def float_value(value: float) -> Value:
    if math.isfinite(value):
        return Value(number_value=value)
    word = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return Value(string_value=word)


# Of each type: values as Arrow gives them back, and how the wire writes one.
TYPES: dict[TypeCode, tuple[st.SearchStrategy, Callable[[Any], Value]]] = {
    TypeCode.BOOL: (st.booleans(), lambda v: Value(bool_value=v)),
    TypeCode.INT64: (
        st.integers(-(2**63), 2**63 - 1),
        lambda v: Value(string_value=str(v)),
    ),
    TypeCode.FLOAT64: (st.floats(), float_value),
    TypeCode.FLOAT32: (st.floats(width=32), float_value),
    TypeCode.NUMERIC: (NUMERICS, lambda v: Value(string_value=f"{v:f}")),
    TypeCode.STRING: (
        st.text(st.characters(exclude_categories=["Cs"])),
        lambda v: Value(string_value=v),
    ),
    TypeCode.BYTES: (
        st.binary(),
        lambda v: Value(string_value=base64.b64encode(v).decode()),
    ),
    TypeCode.DATE: (st.dates(date(1, 1, 1)), lambda v: Value(string_value=v.isoformat())),
    TypeCode.TIMESTAMP: (MOMENTS, lambda v: Value(string_value=format_timestamp(to_micros(v)))),
    TypeCode.JSON: (st.just('{"a":[1,2]}'), lambda v: Value(string_value=v)),
    TypeCode.UUID: (st.uuids().map(str), lambda v: Value(string_value=v)),
}


def wire(value: object, type_: Type) -> Value:
    if value is None:
        return Value(null_value=NULL_VALUE)
    if type_.element is not None:
        items = [wire(item, type_.element) for item in value]  # type: ignore[attr-defined]
        return Value(list_value=ListValue(values=items))
    encoded: Value = TYPES[type_.code][1](value)
    return encoded


scalars = st.sampled_from(sorted(TYPES, key=lambda code: code.value)).map(Type)
types = st.one_of(scalars, scalars.map(lambda t: Type(TypeCode.ARRAY, element=t)))


def values_of(type_: Type) -> st.SearchStrategy:
    if type_.element is not None:
        return st.one_of(st.none(), st.lists(values_of(type_.element), max_size=4))
    return st.one_of(st.none(), TYPES[type_.code][0])


tables = st.lists(types, min_size=1, max_size=4).flatmap(
    lambda columns: st.tuples(
        st.just(columns), st.lists(st.tuples(*map(values_of, columns)), max_size=8)
    )
)


def cut(values: list[Value], randomness: random.Random) -> list[bytes]:
    """Messages that split the values anywhere: between rows, inside rows, inside strings."""
    messages, current = [], PartialResultSet.pb()()
    for whole in values:
        value = whole
        if value.WhichOneof("kind") == "string_value" and randomness.random() < 0.3:
            place = randomness.randint(0, len(value.string_value))
            current.values.append(Value(string_value=value.string_value[:place]))
            current.chunked_value = True
            messages.append(current)
            current = PartialResultSet.pb()()
            value = Value(string_value=value.string_value[place:])
        elif value.WhichOneof("kind") == "list_value" and randomness.random() < 0.5:
            first, second = cut_list(list(value.list_value.values), randomness)
            current.values.append(first)
            current.chunked_value = True
            messages.append(current)
            current = PartialResultSet.pb()()
            value = second
        current.values.append(value)
        if randomness.random() < 0.3:
            messages.append(current)
            current = PartialResultSet.pb()()
    return [message.SerializeToString() for message in [*messages, current]]


def cut_list(items: list[Value], randomness: random.Random) -> tuple[Value, Value]:
    """Two lists that a client joins to the one: strings at the seam are joined, so one is split."""
    place = randomness.randint(0, len(items))
    left, right = items[:place], items[place:]
    if right and right[0].WhichOneof("kind") == "string_value":
        text = right[0].string_value
        middle = randomness.randint(0, len(text))
        left = [*left, Value(string_value=text[:middle])]
        right = [Value(string_value=text[middle:]), *right[1:]]
    elif right and left and left[-1].WhichOneof("kind") == right[0].WhichOneof("kind"):
        # Strings were handled above; numbers and words are not joined by a client.
        assert left[-1].WhichOneof("kind") in {"number_value", "bool_value", "null_value"}
    return Value(list_value=ListValue(values=left)), Value(list_value=ListValue(values=right))


def same(left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


def decode(
    messages: list[bytes], columns: list[Type], nanoseconds: Nanoseconds = Nanoseconds.TRUNCATE
) -> list[list[object]]:
    schema = build_schema(((f"c{n}", t) for n, t in enumerate(columns)), nanoseconds)
    batches = decode_batches(map(parse_result_part, messages), schema, columns, nanoseconds)
    table = pa.Table.from_batches(list(batches), schema)
    return [table.column(number).to_pylist() for number in range(len(columns))]


def single(values: list[Value], type_: Type) -> list[object]:
    message = PartialResultSet.pb()(values=values).SerializeToString()
    return decode([message], [type_])[0]


@settings(max_examples=300)
@given(tables, st.randoms(use_true_random=False))
def test_what_comes_out_is_what_went_in(
    table: tuple[list[Type], list[tuple[object, ...]]], randomness: random.Random
) -> None:
    columns, rows = table
    values = [wire(v, t) for row in rows for v, t in zip(row, columns, strict=True)]
    decoded = decode(cut(values, randomness), columns)
    for number, column in enumerate(decoded):
        assert same(column, [row[number] for row in rows])


def type_pb(type_: Type) -> TypePb:
    if type_.element is not None:
        return TypePb(code="ARRAY", array_element_type=type_pb(type_.element))
    return TypePb(code=type_.code.value)


def convert_to_client(value: object, type_: Type) -> object:
    """One of our values in the client's form."""
    if value is None or type_.element is not None:
        return None if value is None else [convert_to_client(v, type_.element) for v in value]  # type: ignore[attr-defined,arg-type]
    if type_.code is TypeCode.BYTES:
        return base64.b64encode(value)  # type: ignore[arg-type]
    if type_.code is TypeCode.JSON:
        return json.loads(value)  # type: ignore[arg-type]
    return uuid.UUID(value) if type_.code is TypeCode.UUID else value  # type: ignore[arg-type]


@given(tables, st.randoms(use_true_random=False))
def test_columns_are_what_the_client_decodes(
    table: tuple[list[Type], list[tuple[object, ...]]], randomness: random.Random
) -> None:
    columns, rows = table
    values = [wire(v, t) for row in rows for v, t in zip(row, columns, strict=True)]
    messages = cut(values, randomness)
    fields = [StructType.Field(name=f"c{n}", type_=type_pb(t)) for n, t in enumerate(columns)]
    parts = [PartialResultSet.deserialize(data) for data in messages]
    parts[0].metadata = ResultSetMetadata(row_type=StructType(fields=fields))
    client = list(StreamedResultSet(iter(parts)))
    ours = list(zip(*decode(messages, columns), strict=True))
    assert len(client) == len(ours)
    for theirs, row in zip(client, ours, strict=True):
        for type_, left, right in zip(columns, theirs, row, strict=True):
            assert same(left, convert_to_client(right, type_))


@given(st.lists(st.integers(0, 20_000), max_size=5), st.sampled_from(["x", "\u20ac"]))
def test_texts_of_any_length_come_whole(lengths: list[int], letter: str) -> None:
    texts = [letter * length for length in lengths]
    decoded = single([Value(string_value=text) for text in texts], Type(TypeCode.STRING))
    assert decoded == texts


@given(st.lists(st.binary(max_size=2_000), max_size=6))
def test_bytes_of_any_length_come_whole(values: list[bytes]) -> None:
    sent = [Value(string_value=base64.b64encode(value).decode()) for value in values]
    assert single(sent, Type(TypeCode.BYTES)) == values


def test_long_lists_of_long_texts_come_whole() -> None:
    texts = [["x" * length for length in range(0, 400, 7)], [], ["y" * 20_000]]
    type_ = Type(TypeCode.ARRAY, element=Type(TypeCode.STRING))
    assert single([wire(value, type_) for value in texts], type_) == texts


def test_a_length_that_is_written_unusually_is_understood() -> None:
    # 0x1a, then the length 1 as a varint of two bytes.
    sent = b"\x12\x04\x1a\x81\x00x" + b"\x12\x03\x1a\x01y"
    assert decode([sent], [Type(TypeCode.STRING)]) == [["x", "y"]]


@pytest.mark.parametrize("sent", [Value(bool_value=True), Value()], ids=["bool", "nothing"])
def test_a_value_of_another_kind_is_refused(sent: Value) -> None:
    with pytest.raises(UnexpectedValueError):
        single([sent], Type(TypeCode.INT64))


FINER = Value(string_value="2024-02-29T12:00:00.123456789Z")


def test_what_is_finer_than_microseconds_is_cut_off() -> None:
    sent = [FINER, Value(string_value="2024-02-29T12:00:00Z"), Value(null_value=NULL_VALUE)]
    assert single(sent, Type(TypeCode.TIMESTAMP)) == [
        datetime(2024, 2, 29, 12, 0, 0, 123456, UTC),
        datetime(2024, 2, 29, 12, 0, 0, 0, UTC),
        None,
    ]


def message_of(*values: Value) -> bytes:
    return bytes(PartialResultSet.pb()(values=values).SerializeToString())


def test_what_is_finer_than_microseconds_is_kept_as_text() -> None:
    decoded = decode([message_of(FINER)], [Type(TypeCode.TIMESTAMP)], Nanoseconds.STRING)
    assert decoded == [["2024-02-29T12:00:00.123456789Z"]]


def test_what_is_finer_than_microseconds_is_refused() -> None:
    type_ = Type(TypeCode.TIMESTAMP)
    with pytest.raises(LossyTimestampError, match="123456789"):
        decode([message_of(FINER)], [type_], Nanoseconds.REFUSE)
    exact = Value(string_value="2024-02-29T12:00:00.123456000Z")
    assert decode([message_of(exact)], [type_], Nanoseconds.REFUSE) == [
        [datetime(2024, 2, 29, 12, 0, 0, 123456, UTC)]
    ]


def test_a_type_without_an_arrow_form_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedTypeError, match="TOKENLIST"):
        build_schema([("t", Type(TypeCode.TOKENLIST))])
