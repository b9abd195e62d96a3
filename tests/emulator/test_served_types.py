"""Every type has one entry in the server's registry, and every entry is used: values come in, are
kept, and are sent as they came."""

from __future__ import annotations

import pytest
from google.cloud.spanner_v1 import TypeAnnotationCode
from google.cloud.spanner_v1 import TypeCode as ApiTypeCode
from google.protobuf.struct_pb2 import Value

from emulator.sql.functions.postgres_casts import PARSERS
from emulator.values.protos import NO_TYPES
from emulator.values.served_types import SERVED_TYPES, Sent
from emulator.wire.encoding import bytes_column, encode_value, frame_value, text_column
from emulator.wire.values import SCALARS, decoder
from spanner_schema.model.column_types import COLUMN_TYPES, Type, TypeCode

SENT: dict[TypeCode, object] = {
    TypeCode.BOOL: True,
    TypeCode.INT64: "7",
    TypeCode.FLOAT32: 1.5,
    TypeCode.FLOAT64: 1.5,
    TypeCode.NUMERIC: "1.5",
    TypeCode.STRING: "é",
    TypeCode.BYTES: "YQ==",
    TypeCode.DATE: "2026-01-31",
    TypeCode.TIMESTAMP: "2026-01-31T12:00:00Z",
    TypeCode.JSON: '{"a":1}',
    TypeCode.UUID: "6f1c7c1e-6d0a-4c3b-9d55-1f7f0c2a9b01",
    TypeCode.INTERVAL: "P1Y2M3DT4H5M6S",
    TypeCode.PG_NUMERIC: "1.50",
    TypeCode.PG_JSONB: '{"a": 1}',
    TypeCode.PG_OID: "7",
}
NAMED = {TypeCode.PROTO, TypeCode.ENUM}
"""Their values need a proto bundle."""


def test_every_type_is_registered() -> None:
    assert set(SERVED_TYPES) == set(TypeCode) - {TypeCode.TOKENLIST}
    assert set(SENT) == set(SCALARS)
    composed = {code for code, served in SERVED_TYPES.items() if served.sent is Sent.PARTS}
    assert set(SCALARS) | NAMED | composed == set(SERVED_TYPES)


@pytest.mark.parametrize("code", SERVED_TYPES, ids=str)
def test_a_type_has_the_numbers_of_the_api_and_its_names_in_postgresql(code: TypeCode) -> None:
    served, described = SERVED_TYPES[code], COLUMN_TYPES[code]
    if served.annotation:
        assert TypeAnnotationCode(served.annotation).name == code.value
    else:
        assert ApiTypeCode(served.number).name == code.value
    assert served.postgresql is not None or not described.postgresql
    if served.postgresql is not None and described.postgresql:
        assert {served.postgresql.shown or served.postgresql.name} <= set(described.postgresql)
        assert code in PARSERS or code is TypeCode.INTERVAL, "from a text, in an array"


@pytest.mark.parametrize("code", SENT, ids=str)
def test_a_value_is_sent_as_it_came(code: TypeCode) -> None:
    sent, type_ = SENT[code], Type(code)
    kind = {bool: "bool_value", float: "number_value", str: "string_value"}[type(sent)]
    value = Value()
    setattr(value, kind, sent)
    stored = decoder(type_, NO_TYPES)(value)
    encoded = encode_value(type_, stored)
    assert Value.FromString(encoded) == value
    assert bytes_column(type_)([stored, None])[0] == frame_value(encoded)
    by_text = text_column(type_)
    assert (by_text is None) == (SERVED_TYPES[code].sent is Sent.FLOAT)
    if by_text is not None and str(sent).isascii():
        assert by_text([stored])[0].encode("latin-1") == frame_value(encoded)
