"""Columns decoded to Arrow are what the client's own decoding gives, however the wire cuts them."""

from __future__ import annotations

import base64
import math
import random
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from google.cloud.spanner_v1 import PartialResultSet
from google.protobuf.struct_pb2 import ListValue, Value
from hypothesis import given
from hypothesis import strategies as st

from ddl.schema import Type, TypeCode
from watcher.columns import UnsupportedTypeError, arrow_schema, record_batches
from watcher.stream import micros_of, timestamp_text
from watcher.wire import ResultPart, result_part

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
TYPES: dict[TypeCode, tuple[st.SearchStrategy, object]] = {
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
    TypeCode.TIMESTAMP: (MOMENTS, lambda v: Value(string_value=timestamp_text(micros_of(v)))),
    TypeCode.JSON: (st.just('{"a":[1,2]}'), lambda v: Value(string_value=v)),
    TypeCode.UUID: (st.uuids().map(str), lambda v: Value(string_value=v)),
}


def wire(value: object, type_: Type) -> Value:
    if value is None:
        return Value(null_value=0)
    if type_.element is not None:
        items = [wire(item, type_.element) for item in value]  # type: ignore[attr-defined]
        return Value(list_value=ListValue(values=items))
    return TYPES[type_.code][1](value)  # type: ignore[operator]


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


def cut(values: list[Value], randomness: random.Random) -> list[ResultPart]:
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
    return [result_part(message.SerializeToString()) for message in [*messages, current]]


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


@given(tables, st.randoms(use_true_random=False))
def test_what_comes_out_is_what_went_in(
    table: tuple[list[Type], list[tuple[object, ...]]], randomness: random.Random
) -> None:
    columns, rows = table
    values = [wire(v, t) for row in rows for v, t in zip(row, columns, strict=True)]
    schema = arrow_schema((f"c{n}", t) for n, t in enumerate(columns))
    batches = list(record_batches(cut(values, randomness), schema, columns))
    found = pa.Table.from_batches(batches, schema)
    for number in range(len(columns)):
        expected = [row[number] for row in rows]
        assert same(found.column(number).to_pylist(), expected)


def test_what_is_finer_than_microseconds_is_cut_off() -> None:
    message = PartialResultSet.pb()(
        values=[
            Value(string_value="2024-02-29T12:00:00.123456789Z"),
            Value(string_value="2024-02-29T12:00:00Z"),
            Value(null_value=0),
        ]
    )
    type_ = Type(TypeCode.TIMESTAMP)
    part = result_part(message.SerializeToString())
    (batch,) = record_batches([part], arrow_schema([("t", type_)]), [type_])
    assert batch.column(0).to_pylist() == [
        datetime(2024, 2, 29, 12, 0, 0, 123456, UTC),
        datetime(2024, 2, 29, 12, 0, 0, 0, UTC),
        None,
    ]


def test_a_type_without_an_arrow_form_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedTypeError, match="TOKENLIST"):
        arrow_schema([("t", Type(TypeCode.TOKENLIST))])
