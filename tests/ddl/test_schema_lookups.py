"""Objects of a schema found by name: few one by one, many by a map, always the same ones."""

from __future__ import annotations

import pickle
from dataclasses import replace

from ddl.rules.evolve import parse_schema
from spanner_schema.model.schema import SCANS_MAX, Schema


class CountedName(str):
    """Counts how often it is compared without regard to case."""

    __slots__ = ()
    asked = 0

    def casefold(self) -> str:
        CountedName.asked += 1
        return super().casefold()


def make_schema(count: int) -> Schema:
    tables = [f"CREATE TABLE Table{n} (Id INT64) PRIMARY KEY (Id)" for n in range(count)]
    indexes = [f"CREATE INDEX Table{n}By{m} ON Table{n}(Id)" for n in range(count) for m in "ab"]
    return parse_schema([*tables, *indexes])


def test_every_lookup_gives_the_object_of_the_name() -> None:
    schema = make_schema(3 * SCANS_MAX)
    for number, table in enumerate(schema.tables):
        assert schema.table(f"TABLE{number}") is table
        assert schema.indexes_of(f"table{number}") == schema.indexes[2 * number : 2 * number + 2]
        assert schema.index(f"TABLE{number}ByB") is schema.indexes[2 * number + 1]
    assert schema.table("Other") is None
    assert schema.indexes_of("Other") == ()


def test_a_schema_with_other_tables_finds_those() -> None:
    schema = make_schema(2 * SCANS_MAX)
    assert all(schema.table(table.name) for table in schema.tables)
    shorter = replace(schema, tables=schema.tables[1:], indexes=())
    assert all(shorter.table(table.name) is table for table in shorter.tables)
    assert shorter.table("Table0") is None
    assert shorter.indexes_of("Table1") == ()


def test_what_was_looked_up_is_no_part_of_the_value() -> None:
    schema, same = make_schema(2 * SCANS_MAX), make_schema(2 * SCANS_MAX)
    assert all(schema.table(table.name) for table in schema.tables)
    assert schema == same
    assert pickle.loads(pickle.dumps(schema)) == same
    assert repr(schema) == repr(same)


def test_many_lookups_do_not_look_through_all_tables_each_time() -> None:
    count = 300
    tables = tuple(
        replace(table, name=CountedName(table.name)) for table in make_schema(count).tables
    )
    schema = Schema(tables=tables)
    CountedName.asked = 0
    assert [schema.table(f"Table{number}") for number in range(count)] == list(tables)
    assert CountedName.asked < 10 * count
