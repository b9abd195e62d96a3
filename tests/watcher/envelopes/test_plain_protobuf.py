"""What of a table Protobuf can hold, and which numbers its columns have."""

from __future__ import annotations

import pytest
from fixtures.protobuf_files import list_types, parse_file
from hypothesis import given
from hypothesis import strategies as st

from spanner_schema.model.column_types import Type, TypeCode
from watcher.envelopes import make_envelope
from watcher.envelopes.plain_protobuf import (
    NUMBER_MAX,
    RESERVED,
    PlainProtobuf,
    number_field,
)
from watcher.envelopes.record_schemas import RecordSchemas
from watcher.model.change import Shape
from watcher.model.errors import EnvelopeError

DATABASE = "projects/p1/instances/i1/databases/my-db"
INT64, STRING = Type(TypeCode.INT64), Type(TypeCode.STRING)


def describe(*columns: tuple[str, Type], table: str = "T") -> RecordSchemas:
    chosen = make_envelope("plain-protobuf")
    assert isinstance(chosen, PlainProtobuf)
    return chosen.describe_schemas(DATABASE, Shape(table, columns, (columns[0][0],)))


@given(st.text())
def test_every_column_has_a_number_that_protobuf_allows(name: str) -> None:
    number = number_field(name)
    assert 1 <= number <= NUMBER_MAX
    assert number not in RESERVED
    assert number == number_field(name)


def test_a_columns_number_stays_when_others_come_and_go_and_stand_elsewhere() -> None:
    before = describe(("Id", INT64), ("Name", STRING), ("Age", INT64))
    after = describe(("Id", INT64), ("Born", STRING), ("Age", INT64))
    old, new = (list_types(parse_file(each.value.text)) for each in (before, after))
    assert all(old[key] == new[key] for key in old.keys() & new.keys())
    assert len(old.keys() - new.keys()) == len(new.keys() - old.keys()) == 1


@pytest.mark.parametrize(
    "names",
    [
        ("message", "option", "optional", "google", "string", "syntax", "package"),
        ("Key", "Row", "Value", "Int64Array", "Int64Element", "StringArray"),
        ("ab", "a_b", "AB", "_ab"),
    ],
)
def test_protoc_reads_any_name_of_a_column(names: tuple[str, ...]) -> None:
    arrays = [(f"{name}Z", Type(TypeCode.ARRAY, element=INT64)) for name in names]
    schemas = describe(*((name, STRING) for name in names), *arrays)
    for schema in (schemas.key, schemas.value):
        assert schema is not None
        assert parse_file(schema.text).package == "my_db.T"


@pytest.mark.parametrize("table", ["google.T", "message", "app.Order", "google"])
def test_protoc_reads_any_name_of_a_table(table: str) -> None:
    text = describe(("Id", INT64), ("At", Type(TypeCode.TIMESTAMP)), table=table).value.text
    assert parse_file(text).package == f"my_db.{table}"


def test_columns_that_protobuf_cannot_tell_apart_are_refused() -> None:
    with pytest.raises(EnvelopeError, match=r"'a_b' and 'aB' of table T apart: leave one"):
        describe(("Id", INT64), ("a_b", STRING), ("aB", STRING))
