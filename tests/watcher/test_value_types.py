"""Every type of Spanner has one entry in each of the two registries, and every entry is used."""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow as pa
import pytest

from ddl.rules.evolve import parse_schema
from spanner_schema.model.column_types import COLUMN_TYPES, Type, TypeCode
from spanner_schema.model.errors import DdlError
from spanner_schema.model.schema import Dialect
from spanner_schema.syntax.render import render_type
from watcher.captures.change_stream.record_values import decode_type
from watcher.envelopes.avro import avro_type
from watcher.envelopes.by_column.cells import render_sent
from watcher.envelopes.change_stream import type_json
from watcher.envelopes.connect_schema import type_schema
from watcher.envelopes.values import PLAIN_CELLS
from watcher.model.value_types import VALUE_TYPES, Form, UnsupportedTypeError, find_code
from watcher.replica.verification.canonical import ComparedColumn, render_parts
from watcher.replica.verification.row_hashes import hash_rows
from watcher.runners.spark.sent_columns import encode_value
from watcher.spanner.json_values import decode_value
from watcher.spanner.key_values import identify_key
from watcher.spanner.requests import build_type
from watcher.spanner.results.columns import choose_decoder, convert_type
from watcher.spanner.results.sent_types import name_sent_type
from watcher.spanner.results.supported_types import is_supported

NEVER_DELIVERED = {TypeCode.TOKENLIST, TypeCode.ARRAY, TypeCode.STRUCT, TypeCode.PG_OID}
NEVER_COMPARED = {TypeCode.INTERVAL}
"""Spanner has no columns of it."""
DELIVERED = [Type(code) for code in TypeCode if code not in NEVER_DELIVERED]
SENT: dict[Form, object] = {
    Form.BOOL: True,
    Form.INTEGER: "7",
    Form.FLOAT32: 1.5,
    Form.FLOAT64: 1.5,
    Form.NUMERIC: "1.5",
    Form.WIDE_NUMERIC: "1.5",
    Form.TEXT: "6f1c7c1e-6d0a-4c3b-9d55-1f7f0c2a9b01",
    Form.BYTES: "YQ==",
    Form.DATE: "2026-01-31",
    Form.TIMESTAMP: "2026-01-31T12:00:00Z",
    Form.JSON: '{"a":1}',
}


def name(type_: Type) -> str:
    return type_.code.value


def has_type(type_: Type, dialect: Dialect) -> bool:
    described = COLUMN_TYPES[type_.code]
    return bool(described.googlesql if dialect is Dialect.GOOGLESQL else described.postgresql)


def test_both_registries_have_every_type() -> None:
    assert set(COLUMN_TYPES) == set(VALUE_TYPES) == set(TypeCode)
    assert {code for code, each in VALUE_TYPES.items() if each is None} == NEVER_DELIVERED
    assert set(SENT) == set(Form)


def test_no_name_means_two_types() -> None:
    names = [each for described in COLUMN_TYPES.values() for each in described.postgresql]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("code", TypeCode, ids=str)
def test_ddl_writes_and_reads_each_type_that_the_dialect_has(
    code: TypeCode, dialect: Dialect
) -> None:
    element = Type(TypeCode.INT64) if code is TypeCode.ARRAY else None
    # DDL gives the name of a message or an enum alone, so that it reads both as messages.
    named = code in (TypeCode.PROTO, TypeCode.ENUM)
    type_ = Type(code, element=element, proto_name="a.Name" if named else None)
    if code in (TypeCode.STRUCT, TypeCode.PG_OID):
        return  # of queries only
    if code is not TypeCode.ARRAY and not has_type(type_, dialect):
        with pytest.raises(DdlError, match=f"has no type {code.value}"):
            render_type(type_, dialect)
        return
    key = "k INT64) PRIMARY KEY (k)" if dialect is Dialect.GOOGLESQL else "k bigint PRIMARY KEY)"
    schema = parse_schema(f"CREATE TABLE T (c {render_type(type_, dialect)}, {key}", dialect)
    read = schema.tables[0].columns[0].type
    assert read.code is (TypeCode.PROTO if named else code)


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("type_", DELIVERED, ids=name)
def test_a_type_is_compared_or_refused(type_: Type, dialect: Dialect) -> None:
    column = ComparedColumn("c", type_)
    if type_.code in NEVER_COMPARED or not has_type(type_, dialect):
        with pytest.raises(UnsupportedTypeError, match=type_.code.value):
            render_parts([column], dialect)
        return
    (part,) = render_parts([column], dialect)
    quoted = "`c`" if dialect is Dialect.GOOGLESQL else '"c"'
    assert quoted in part


USES: dict[str, Callable[[Type, object], object]] = {
    "Arrow": lambda type_, _: convert_type(type_),
    "Spanner's results": lambda type_, sent: choose_decoder(type_)(
        [encode_value(sent).SerializeToString()]
    ),
    "a change": lambda type_, sent: decode_value(sent, type_),
    "a key": lambda type_, sent: identify_key([sent], [type_]),
    "JSON by column": lambda type_, sent: render_sent([sent], type_, PLAIN_CELLS),
    "Avro": lambda type_, _: avro_type(type_),
    "Connect": lambda type_, _: type_schema(type_, optional=True),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("type_", DELIVERED, ids=name)
def test_a_value_of_each_type_is_taken_everywhere(type_: Type, use: str) -> None:
    described = VALUE_TYPES[type_.code]
    assert described is not None
    assert USES[use](type_, SENT[described.form]) is not None


@pytest.mark.parametrize("code", sorted(NEVER_DELIVERED, key=str))
def test_a_type_that_is_not_delivered_is_refused_by_name(code: TypeCode) -> None:
    assert not is_supported(Type(code))
    for use in ("Arrow", "Spanner's results", "Avro", "Connect", "a change", "a key"):
        with pytest.raises(UnsupportedTypeError, match=f"type {code.value} cannot be"):
            USES[use](Type(code), "x")


@pytest.mark.parametrize("type_", DELIVERED, ids=name)
def test_a_copy_hashes_each_type_that_is_compared(type_: Type) -> None:
    described = VALUE_TYPES[type_.code]
    assert described is not None
    column = choose_decoder(type_)([encode_value(SENT[described.form]).SerializeToString()])
    batch = pa.RecordBatch.from_arrays([column], ["c"])
    if type_.code in NEVER_COMPARED:
        with pytest.raises(UnsupportedTypeError, match="INTERVAL cannot be compared"):
            hash_rows(batch, [ComparedColumn("c", type_)])
    else:
        assert len(hash_rows(batch, [ComparedColumn("c", type_)])) == 1


@pytest.mark.parametrize("type_", DELIVERED, ids=name)
def test_the_api_describes_each_type_and_is_understood(type_: Type) -> None:
    assert name_sent_type(build_type(type_)) == type_.code.value
    assert decode_type(json.loads(json.dumps(type_json(type_)))) == type_


def test_a_type_of_a_newer_spanner_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedTypeError, match="DURATION"):
        find_code("DURATION", None)
    with pytest.raises(UnsupportedTypeError, match="PG_MONEY"):
        find_code("NUMERIC", "PG_MONEY")
