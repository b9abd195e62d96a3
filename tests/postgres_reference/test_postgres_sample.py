"""A sample of random expressions, in the embedded server and in a real PostgreSQL."""

from __future__ import annotations

import pytest
from google.cloud.spanner_admin_database_v1 import DatabaseDialect
from google.cloud.spanner_v1.instance import Instance

from emulator.sql.coercions import COERCIONS, Reach
from emulator.sql.postgres.type_names import show_type
from emulator.values.served_types import SERVED_TYPES
from postgres_reference.expressions import Generator
from postgres_reference.operands import list_operands
from postgres_reference.run import classify, compare
from postgres_reference.server import find_programs, run_postgres
from spanner_schema.model.column_types import Type
from spanner_schema.model.schema import Dialect

CONTEXTS = {Reach.EXPRESSION: "i", Reach.ASSIGNMENT: "a"}
EXPRESSIONS = 300
SEED = 20_240_229


def test_the_table_of_coercions_is_that_of_pg_cast() -> None:
    programs = find_programs()
    if programs is None:
        pytest.skip("no PostgreSQL is installed: apt-get install postgresql")
    ours = {
        (show_type(Type(source)), show_type(Type(target)), CONTEXTS[reach])
        for reach, cells in COERCIONS[Dialect.POSTGRESQL].items()
        for source, targets in cells.items()
        for target in targets
    }
    with run_postgres(programs) as postgres:
        rows = postgres.psql(
            "SELECT castsource::regtype, casttarget::regtype, castcontext FROM pg_cast"
        )
    names = {show_type(Type(code)) for code, each in SERVED_TYPES.items() if each.postgresql}
    theirs = {tuple(line.split("|")) for line in rows.splitlines()}
    # Everything is assigned to a text, which has no row in pg_cast, and Spanner's intervals are of
    # one precision.
    kept = {each for each in theirs if {*each[:2]} <= names and each[2] in "ai"}
    assert ours == {each for each in kept if each[0] != each[1] and each[1] != "text"}


def test_expressions_have_the_values_that_postgresql_gives_them(instance: Instance) -> None:
    programs = find_programs()
    if programs is None:
        pytest.skip("no PostgreSQL is installed: apt-get install postgresql")
    generator = Generator(SEED)
    expressions = [generator.expression() for _ in range(EXPRESSIONS)]
    database = instance.database("pg-sample", database_dialect=DatabaseDialect.POSTGRESQL)
    database.create().result(60)
    try:
        with run_postgres(programs) as postgres:
            found = list(compare(database, postgres, expressions))
    finally:
        database.drop()
    assert [each for each in found if each and classify(each) == "different"] == []
    assert sum(each is None for each in found) > EXPRESSIONS * 0.9


@pytest.mark.parametrize(
    ("expression", "operands"),
    [
        ("f(a(1, 'x,(y'), NULL::date)", ["a(1, 'x,(y')", "NULL::date"]),
        ("(1.5 + abs(-2))", ["1.5", "abs(-2)"]),
        ("('{1,2}'::bigint[])", ["'{1,2}'"]),
        ("'abc'", []),
    ],
)
def test_the_operands_of_an_expression(expression: str, operands: list[str]) -> None:
    assert list_operands(expression) == operands
