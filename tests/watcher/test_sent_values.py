"""Values found by vectors: what looks like a value within another one, and messages whose fields
come in another order."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from google.cloud.spanner_v1 import PartialResultSet
from google.protobuf.struct_pb2 import ListValue, NullValue, Value
from hypothesis import given, settings
from hypothesis import strategies as st

from spanner_schema.model.column_types import Type, TypeCode
from watcher.spanner.results.columns import build_schema, decode_batches
from watcher.spanner.results.sent_values import SentValues
from watcher.spanner.results.wire import collect_rows, parse_result_part

HEADS = "\x12\x04\x1a\x02\x08\x00\x11\x09\n 2a"
"""What the heads of values are made of."""
NULL_VALUE = NullValue.NULL_VALUE
TOKEN = b"\x22\x03abc"
texts = st.text(HEADS, max_size=30) | st.integers(120, 140).map(lambda size: "\x12" * size)
doubles = st.lists(st.sampled_from(HEADS.encode()), min_size=8, max_size=8).map(
    lambda octets: struct.unpack("<d", bytes(octets))[0]
)
rows = st.tuples(texts | st.none(), doubles, st.lists(texts, max_size=40))
TYPES = [
    Type(TypeCode.STRING),
    Type(TypeCode.FLOAT64),
    Type(TypeCode.ARRAY, element=Type(TypeCode.STRING)),
]


def encode_row(row: tuple[str | None, float, list[str]]) -> list[Value]:
    text, number, items = row
    elements = [Value(string_value=item) for item in items]
    return [
        Value(null_value=NULL_VALUE) if text is None else Value(string_value=text),
        Value(number_value=number),
        Value(list_value=ListValue(values=elements)),
    ]


def encode_message(values: list[Value], **others: object) -> bytes:
    return bytes(PartialResultSet.pb()(values=values, **others).SerializeToString())


def decode(messages: list[bytes], types: list[Type]) -> list[tuple[object, ...]]:
    schema = build_schema((f"c{n}", type_) for n, type_ in enumerate(types))
    batches = list(decode_batches(map(parse_result_part, messages), schema, types))
    table = pa.Table.from_batches(batches, schema)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@settings(max_examples=200)
@given(st.lists(rows, max_size=20))
def test_what_looks_like_a_value_is_none(
    table: list[tuple[str | None, float, list[str]]],
) -> None:
    sent = [encode_message(encode_row(row), resume_token=b"\x12\x04") for row in table]
    assert decode(sent, TYPES) == table
    assert decode([b"".join(sent)], TYPES) == table


def test_values_are_found_without_an_object_each() -> None:
    values = encode_row(("\x12\x04\x1a\x02ab", 2.5, ["x" * 200] * 50))
    parts = [parse_result_part(encode_message(values * 3))]
    (found,) = collect_rows(parts, 3)
    assert isinstance(found, SentValues)
    assert list(found) == [value.SerializeToString() for value in values * 3]
    assert list(found[1::3]) == [values[1].SerializeToString()] * 3


@pytest.mark.parametrize(
    "message",
    [
        TOKEN + encode_message([Value(string_value="a"), Value(string_value="b")]),
        encode_message([Value(string_value="a")])
        + TOKEN
        + encode_message([Value(string_value="b")]),
        encode_message([Value(string_value="a"), Value(string_value="b")]) + b"\x7a\x02\x12\x00",
        b"\x7a\x01x"
        + encode_message([Value(string_value="a"), Value(string_value="b")], last=True),
        TOKEN + encode_message([Value(string_value="a"), Value(string_value="b")]) + TOKEN,
    ],
    ids=["before", "between", "unknown at the end", "unknown at the start", "twice"],
)
def test_other_fields_may_be_anywhere(message: bytes) -> None:
    assert decode([message], [Type(TypeCode.STRING)]) == [("a",), ("b",)]


def test_a_text_that_ends_as_a_message_would_is_not_cut() -> None:
    # The token is sent first; the text ends with the bytes of a token at the end of a message.
    text = "a" + TOKEN.decode()
    sent = TOKEN + encode_message([Value(string_value=text)])
    assert decode([sent], [Type(TypeCode.STRING)]) == [(text,)]


def test_a_chunk_in_a_message_with_its_fields_in_another_order_is_continued() -> None:
    first = b"\x18\x01" + TOKEN + encode_message([Value(string_value="a"), Value(string_value="b")])
    second = encode_message([Value(string_value="c"), Value(string_value="d")])
    assert decode([first, second], [Type(TypeCode.STRING)]) == [("a",), ("bc",), ("d",)]
