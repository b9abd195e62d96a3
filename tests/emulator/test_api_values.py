"""Every scalar type and its arrays, there and back through the real client."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
import struct
import uuid
from collections.abc import Iterator

import pytest
from google.api_core import exceptions
from google.api_core.datetime_helpers import DatetimeWithNanoseconds
from google.cloud.spanner_v1 import JsonObject, KeySet, Type, TypeCode, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.instance import Instance
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

KINDS: dict[str, st.SearchStrategy[object]] = {
    "BOOL": st.booleans(),
    "INT64": st.integers(-(2**63), 2**63 - 1),
    "FLOAT64": st.floats(),
    "FLOAT32": st.floats(width=32),
    "NUMERIC": st.integers(1 - 10**38, 10**38 - 1).map(
        lambda number: decimal.Decimal(number).scaleb(-9, decimal.Context(prec=38))
    ),
    "STRING(MAX)": st.text(max_size=400),
    "BYTES(MAX)": st.binary(max_size=400),
    "DATE": st.dates(),
    "TIMESTAMP": st.builds(
        lambda moment, nanos: DatetimeWithNanoseconds(
            *moment.timetuple()[:6], nanosecond=nanos, tzinfo=datetime.UTC
        ),
        st.datetimes(
            min_value=datetime.datetime(1, 1, 2), max_value=datetime.datetime(9999, 12, 30)
        ),
        st.integers(0, 999_999_999),
    ),
    "JSON": st.recursive(
        st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
        ),
        max_leaves=6,
    ).map(lambda value: JsonObject.from_str(json.dumps(value))),
    "UUID": st.uuids(),
}
NAMES = {kind: kind.partition("(")[0].title() for kind in KINDS}
DDL = [
    f"CREATE TABLE {name} (K INT64 NOT NULL, V {kind}, A ARRAY<{kind}>) PRIMARY KEY (K)"
    for kind, name in NAMES.items()
]


def wire_value(value: object) -> object:
    """What the client is given and gives for a value: BYTES are base64 on both ways."""
    if isinstance(value, list):
        return [wire_value(item) for item in value]
    return base64.b64encode(value) if isinstance(value, bytes) else value


def make_comparable(value: object) -> object:
    """A form in which equal values are equal, also NaN, nanoseconds and JSON."""
    if isinstance(value, list):
        return [make_comparable(item) for item in value]
    if isinstance(value, JsonObject):
        return ("json", json.dumps(json.loads(value.serialize() or "null"), sort_keys=True))
    if isinstance(value, DatetimeWithNanoseconds):
        return value.rfc3339()
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value + 0.0)
    return decimal.Decimal(value).normalize() if isinstance(value, decimal.Decimal) else value


@pytest.fixture(scope="module")
def typed_table(instance: Instance) -> Iterator[Database]:
    database = instance.database("typed-values", ddl_statements=DDL)
    database.create().result(60)
    yield database
    database.drop()


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_values_come_back_as_they_were_written(
    kind: str, typed_table: Database, data: st.DataObject
) -> None:
    values = st.none() | KINDS[kind]
    rows = data.draw(
        st.lists(st.tuples(values, st.none() | st.lists(values, max_size=5)), max_size=20)
    )
    with typed_table.batch() as batch:
        batch.delete(NAMES[kind], KeySet(all_=True))
        batch.insert(
            NAMES[kind],
            ("K", "V", "A"),
            [(k, wire_value(v), wire_value(a)) for k, (v, a) in enumerate(rows)],
        )
    expected = [[make_comparable(wire_value(v)), make_comparable(wire_value(a))] for v, a in rows]
    with typed_table.snapshot(multi_use=True) as snapshot:
        read = snapshot.read(NAMES[kind], ("V", "A"), KeySet(all_=True))
        assert [make_comparable(list(row)) for row in read] == expected
        queried = snapshot.execute_sql(f"SELECT V, A FROM {NAMES[kind]} ORDER BY K")
        assert [make_comparable(list(row)) for row in queried] == expected


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_parameters_come_back_as_they_were_sent(
    kind: str, typed_table: Database, data: st.DataObject
) -> None:
    value = data.draw(st.none() | KINDS[kind])
    many = data.draw(st.lists(st.none() | KINDS[kind], max_size=5))
    code = Type(code=getattr(TypeCode, kind.partition("(")[0]))
    with typed_table.snapshot() as snapshot:
        result = snapshot.execute_sql(
            "SELECT @one, @many",
            params={"one": wire_value(value), "many": wire_value(many)},
            param_types={"one": code, "many": param_types.Array(code)},
        )
        assert make_comparable(list(result)) == [
            [make_comparable(wire_value(value)), make_comparable(wire_value(many))]
        ]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("INT64", str(2**63)),
        ("INT64", "1.5"),
        ("NUMERIC", decimal.Decimal("1e29")),
        ("DATE", "2024-02-30"),
        ("TIMESTAMP", "2024-01-01 00:00:00"),
        ("BYTES(MAX)", "not base64!"),
        ("JSON", "{"),
        ("UUID", "not-a-uuid"),
        ("BOOL", "true"),
        ("FLOAT64", "many"),
    ],
)
def test_values_of_another_type_are_refused(
    kind: str, value: object, typed_table: Database
) -> None:
    table = NAMES[kind]
    refused = pytest.raises((exceptions.FailedPrecondition, ValueError))
    with refused as caught, typed_table.batch() as batch:
        batch.insert(table, ("K", "V"), [(1_000_000, value)])
    if isinstance(caught.value, exceptions.FailedPrecondition):
        assert f"column V in table {table}" in str(caught.value)


def test_a_uuid_reads_as_text_in_any_writing(typed_table: Database) -> None:
    value = uuid.UUID("F47AC10B-58CC-4372-A567-0E02B2C3D479")
    with typed_table.snapshot() as snapshot:
        result = snapshot.execute_sql(
            "SELECT @u",
            params={"u": str(value).upper()},
            param_types={"u": Type(code=TypeCode.UUID)},
        )
        assert list(result) == [[value]]
