"""What GetDatabaseDdl tells makes the same schema in an empty database, statement by statement."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence

import pytest
from fixtures.any_schema import AnySchema, schemas
from fixtures.table_facts import quote_table
from google.cloud.spanner_admin_database_v1 import DatabaseDialect
from google.cloud.spanner_v1.instance import Instance
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spanner_schema.model.schema import Dialect

NUMBERS = itertools.count()
GOOGLESQL = [
    "CREATE TABLE A (Id INT64, B INT64, Name STRING(MAX)) PRIMARY KEY (Id)",
    "CREATE TABLE C (Id INT64, A INT64, FOREIGN KEY (A) REFERENCES A (Id)) PRIMARY KEY (Id)",
    "CREATE TABLE B (Id INT64, A INT64) PRIMARY KEY (Id)",
    "ALTER TABLE A ADD FOREIGN KEY (B) REFERENCES B (Id)",
    "ALTER TABLE A ADD CONSTRAINT Late FOREIGN KEY (Id, B) REFERENCES B (Id, A) NOT ENFORCED",
    "ALTER TABLE A ADD CONSTRAINT Own FOREIGN KEY (B) REFERENCES A (Id)",
    "CREATE TABLE Child (Id INT64, N INT64) PRIMARY KEY (Id, N), INTERLEAVE IN PARENT A",
    "CREATE VIEW V SQL SECURITY INVOKER AS SELECT A.Id, A.Name FROM A",
    "CREATE VIEW W SQL SECURITY INVOKER AS SELECT V.Id FROM V",
    "CREATE OR REPLACE VIEW V SQL SECURITY INVOKER AS SELECT A.Id, A.Name, A.B FROM A",
    "CREATE CHANGE STREAM S FOR A (Name), Child",
    "CREATE SEQUENCE Q OPTIONS (sequence_kind = 'bit_reversed_positive')",
    "ALTER TABLE B ALTER COLUMN A SET DEFAULT (GET_NEXT_SEQUENCE_VALUE(SEQUENCE Q))",
    "CREATE ROLE R",
    "GRANT SELECT ON VIEW W TO ROLE R",
]
CIRCLE = "ALTER TABLE B ADD FOREIGN KEY (A) REFERENCES A (Id)"
POSTGRESQL = [
    "CREATE TABLE a (id bigint PRIMARY KEY, b bigint)",
    "CREATE TABLE c (id bigint PRIMARY KEY, a bigint REFERENCES a (id))",
    "CREATE TABLE b (id bigint PRIMARY KEY, a bigint)",
    "ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES b (id)",
    "CREATE VIEW v SQL SECURITY INVOKER AS SELECT a.id FROM a",
]


def tell(instance: Instance, dialect: Dialect, statements: Sequence[str]) -> list[str]:
    """The DDL of a new database with these statements, each executed alone."""
    name = f"told-{os.getpid()}-{next(NUMBERS)}"
    postgres = dialect is Dialect.POSTGRESQL
    kind = DatabaseDialect.POSTGRESQL if postgres else DatabaseDialect.GOOGLE_STANDARD_SQL
    database = instance.database(name, database_dialect=kind)
    database.create().result(60)
    try:
        for statement in statements:
            database.update_ddl([statement]).result(60)
        database.reload()
        return list(database.ddl_statements)
    finally:
        database.drop()


def check(instance: Instance, dialect: Dialect, statements: Sequence[str]) -> list[str]:
    told = tell(instance, dialect, statements)
    assert tell(instance, dialect, told) == told
    return told


def test_tables_are_told_behind_those_that_their_foreign_keys_name(instance: Instance) -> None:
    told = check(instance, Dialect.GOOGLESQL, GOOGLESQL)
    tables = [each.split()[2] for each in told if each.startswith("CREATE TABLE")]
    assert tables == ["B", "A", "C", "Child"]


def test_the_same_in_the_postgresql_dialect(instance: Instance) -> None:
    told = check(instance, Dialect.POSTGRESQL, POSTGRESQL)
    tables = [each.split()[2] for each in told if each.startswith("CREATE TABLE")]
    assert tables == ["b", "a", "c"]


def test_a_circle_keeps_its_order(instance: Instance) -> None:
    """As the kept case of Google's emulator: there is no order in which it could be executed."""
    told = tell(instance, Dialect.GOOGLESQL, [*GOOGLESQL[:3], CIRCLE, *GOOGLESQL[3:4]])
    assert [each.split()[2] for each in told] == ["A", "C", "B"]


@pytest.mark.parametrize("dialect", list(Dialect))
def test_any_schema_is_told_so_that_it_can_be_made_again(
    instance: Instance, dialect: Dialect
) -> None:
    @settings(
        max_examples=6,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(schemas(dialect, 4), st.data())
    def run(schema: AnySchema, data: st.DataObject) -> None:
        names = [facts.name for facts in schema.facts]
        first = quote_table(data.draw(st.sampled_from(names)), dialect)
        googlesql = dialect is Dialect.GOOGLESQL
        word, end = ("INT64", ") PRIMARY KEY (id)") if googlesql else ("bigint", " PRIMARY KEY)")
        added = [
            f"CREATE TABLE Later (id {word}{end}",
            f"ALTER TABLE {first} ADD COLUMN watched_a {word}",
            f"ALTER TABLE {first} ADD FOREIGN KEY (watched_a) REFERENCES Later (id)",
        ]
        check(instance, dialect, [*schema.statements, *added])

    run()
