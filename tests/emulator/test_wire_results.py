"""Results on the wire: what the client's own reader makes of our bytes."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import pytest
from google.cloud.spanner_v1 import PartialResultSet
from google.cloud.spanner_v1.streamed import StreamedResultSet
from hypothesis import given
from hypothesis import strategies as st

from emulator.errors import SpannerError
from emulator.values.requests import ResultColumn, ResultRows, Stats, Stored
from emulator.wire.encoding import Row
from emulator.wire.results import ResultStream
from emulator.wire.tokens import Resume
from emulator.wire.types import result_metadata
from spanner_schema.model.column_types import StructField, Type, TypeCode


def array(code: TypeCode) -> Type:
    return Type(TypeCode.ARRAY, element=Type(code))


PAIR = Type(
    TypeCode.STRUCT,
    fields=(
        StructField("a", Type(TypeCode.STRING)),
        StructField("b", array(TypeCode.STRING)),
        StructField("c", Type(TypeCode.FLOAT64)),
    ),
)
TYPES = (
    Type(TypeCode.INT64),
    Type(TypeCode.STRING),
    Type(TypeCode.FLOAT64),
    Type(TypeCode.BOOL),
    array(TypeCode.STRING),
    array(TypeCode.INT64),
    array(TypeCode.FLOAT64),
    array(TypeCode.BOOL),
    Type(TypeCode.ARRAY, element=PAIR),
)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=300)
FLOAT = st.floats(allow_nan=False)
PAIRS = st.tuples(
    st.none() | TEXT, st.none() | st.lists(st.none() | TEXT, max_size=3), st.none() | FLOAT
).map(list)
TUPLES = st.tuples(
    st.none() | INT64,
    st.none() | TEXT,
    st.none() | FLOAT,
    st.none() | st.booleans(),
    st.none() | st.lists(st.none() | TEXT, max_size=8),
    st.none() | st.lists(st.none() | INT64, max_size=30),
    st.none() | st.lists(st.none() | FLOAT, max_size=30),
    st.none() | st.lists(st.none() | st.booleans(), max_size=30),
    st.none() | st.lists(st.none() | PAIRS, max_size=6),
)


def store_value(value: object) -> Stored:
    """The storage form of a Python value."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, list):
        return json.dumps([element(item) for item in value])
    return value  # type: ignore[return-value]


def element(value: object) -> object:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, list):
        return [element(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def stream(rows: Sequence[Row], types: Sequence[Type] = TYPES, **sizes: Any) -> ResultStream:
    columns = tuple(ResultColumn(f"c{n}", type_) for n, type_ in enumerate(types))
    result = ResultRows(columns, iter(rows), Stats(), lambda: None)
    return ResultStream(result, result_metadata(columns).SerializeToString(), 1, **sizes)


def parse_messages(messages: Sequence[bytes]) -> list[PartialResultSet]:
    return [PartialResultSet.deserialize(message) for message in messages]


def read(messages: Sequence[PartialResultSet]) -> list[list[object]]:
    return list(StreamedResultSet(iter(messages)))


@given(st.lists(TUPLES, max_size=6), st.sampled_from([20, 64, 100, 1000, 100_000]))
def test_every_value_arrives_whatever_the_size_of_the_pieces(
    values: list[tuple[object, ...]], size: int
) -> None:
    rows = [tuple(map(store_value, row)) for row in values]
    messages = list(stream(rows, chunk_bytes=size, piece_bytes=size).chunks(lambda: b""))
    assert read(parse_messages(messages)) == [list(row) for row in values]


LENGTHS = st.sampled_from([0, 1, 124, 125, 126, 127, 128, 1_023, 1_024, 16_384, 20_000])
STRINGS = st.builds(lambda letter, size: letter * size, st.sampled_from("aä\0\x7f😀"), LENGTHS)
BYTES = st.builds(lambda letter, size: letter * size, st.binary(min_size=1, max_size=1), LENGTHS)


@given(
    st.lists(
        st.tuples(
            st.none() | INT64,
            st.none() | STRINGS,
            st.none() | BYTES,
            st.none() | st.dates(),
            st.none() | STRINGS,
        ),
        min_size=1,
        max_size=6,
    )
)
def test_strings_and_bytes_of_any_length_and_alphabet_arrive(
    values: list[tuple[object, ...]],
) -> None:
    codes = (TypeCode.INT64, TypeCode.STRING, TypeCode.BYTES, TypeCode.DATE, TypeCode.STRING)
    rows: list[Row] = [(n, s, b, d and str(d), t) for n, s, b, d, t in values]  # type: ignore[misc]
    messages = list(stream(rows, [Type(code) for code in codes]).chunks(lambda: b""))
    sent = [[n, s, b and b64encode(b), d, t] for n, s, b, d, t in values]  # type: ignore[arg-type]
    assert read(parse_messages(messages)) == sent


@given(st.lists(TUPLES, min_size=1, max_size=30), st.data())
def test_a_stream_resumed_at_any_token_gives_the_rest(
    values: list[tuple[object, ...]], data: st.DataObject
) -> None:
    rows = [tuple(map(store_value, row)) for row in values]
    messages = parse_messages(
        list(stream(rows, chunk_bytes=100, piece_bytes=150).chunks(lambda: b""))
    )
    ends = [n for n, message in enumerate(messages) if message.resume_token]
    cut = data.draw(st.sampled_from(ends))
    before = read(messages[: cut + 1])
    again = stream(rows, chunk_bytes=100, piece_bytes=150)
    again.skip(Resume.from_bytes(messages[cut].resume_token))
    after = read(parse_messages(list(again.chunks(lambda: b""))))
    assert before + after == [list(row) for row in values]


def test_a_stream_whose_rows_come_in_another_order_is_not_resumed() -> None:
    text = (Type(TypeCode.STRING),)
    rows: list[Row] = [(letter * 50,) for letter in "abcdefgh"]
    messages = parse_messages(list(stream(rows, text, chunk_bytes=100).chunks(lambda: b"")))
    again = stream(rows[::-1], text)
    with pytest.raises(SpannerError, match="another order"):
        again.skip(Resume.from_bytes(messages[0].resume_token))


def test_a_small_result_is_one_message() -> None:
    messages = list(stream([(1, "a", 1.5, 1, "[]", "[]", "[]", "[]", "[]")]).chunks(lambda: b""))
    assert len(messages) == 1
    assert parse_messages(messages)[0].last


@pytest.mark.parametrize("token", [b"", b"x", b"swr1" + b"\xff" * 20, b"\0" * 24])
def test_a_token_that_is_not_ours_is_refused(token: bytes) -> None:
    with pytest.raises(SpannerError, match="resume token"):
        Resume.from_bytes(token)
