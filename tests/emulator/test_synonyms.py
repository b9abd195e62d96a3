"""A synonym is another name of a table for reads and writes, and none for DDL."""

from __future__ import annotations

import pytest
from fixtures.ddl_steps import check_step
from fixtures.postgres_databases import CreatePostgres, query, write
from fixtures.queries import ask, change
from google.api_core.exceptions import GoogleAPICallError, PermissionDenied
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.schema import Dialect

TABLES = (
    "CREATE TABLE T (K INT64 NOT NULL, V STRING(MAX), SYNONYM(S)) PRIMARY KEY (K)",
    "CREATE TABLE U (K INT64 NOT NULL) PRIMARY KEY (K)",
)
pytestmark = pytest.mark.ddl(*TABLES)


def insert(database: Database, table: str, *keys: int) -> None:
    with database.batch() as batch:
        batch.insert(table, ["K"], [[key] for key in keys])


def test_reads_and_writes_take_both_names(database: Database) -> None:
    insert(database, "S", 1, 2)
    insert(database, "T", 3)
    with database.batch() as batch:
        batch.update("s", ["K", "V"], [[1, "a"]])
        batch.delete("S", KeySet(keys=[[3]]))
    assert ask(database, "SELECT S.K FROM S JOIN T ON S.K = T.K ORDER BY 1").rows == [(1,), (2,)]
    for sql, row in (
        ("UPDATE S SET S.V = 'b' WHERE S.K = 1 THEN RETURN V", ["b"]),
        ("INSERT INTO S (K) VALUES (5) THEN RETURN K", [5]),
        ("DELETE FROM S WHERE S.K = 5 THEN RETURN K", [5]),
    ):
        found = database.run_in_transaction(lambda t, sql=sql: list(t.execute_sql(sql)))
        assert found == [row]
    with database.snapshot() as snapshot:
        assert list(snapshot.read("S", ["K", "V"], KeySet(all_=True))) == [[1, "b"], [2, None]]


def test_the_schema_shows_them(database: Database) -> None:
    listed = "SELECT TABLE_NAME, TABLE_TYPE FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = ''"
    assert ask(database, f"{listed} ORDER BY 1").rows == [
        ("S", "SYNONYM"),
        ("T", "BASE TABLE"),
        ("U", "BASE TABLE"),
    ]
    shown = "SELECT TABLE_NAME, SYNONYM_TABLE_NAME FROM INFORMATION_SCHEMA.TABLE_SYNONYMS"
    assert ask(database, shown).rows == [("T", "S")]


def test_a_renamed_table_may_keep_its_name(database: Database) -> None:
    insert(database, "U", 1)
    told = change(
        database,
        "ALTER TABLE T DROP SYNONYM S",
        "ALTER TABLE U RENAME TO Fresh, ADD SYNONYM U",
        "CREATE TABLE S (K INT64) PRIMARY KEY (K)",
    )
    assert "SYNONYM(U)" in told[1]
    assert ask(database, "SELECT K FROM U").rows == ask(database, "SELECT K FROM Fresh").rows
    change(database, "DROP TABLE Fresh", "CREATE TABLE U (K INT64) PRIMARY KEY (K)")
    assert ask(database, "SELECT K FROM U").rows == []


def test_privileges_of_the_table_hold_for_its_synonym(database: Database) -> None:
    change(database, "CREATE ROLE reader", "GRANT SELECT(K) ON TABLE T TO ROLE reader")
    restricted = database._instance.database(database.database_id, database_role="reader")
    assert ask(restricted, "SELECT K FROM S").rows == []
    with restricted.snapshot() as snapshot:
        assert list(snapshot.read("S", ["K"], KeySet(all_=True))) == []
    with pytest.raises(PermissionDenied):
        ask(restricted, "SELECT V FROM S")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE INDEX I ON S(V)", "Table not found: S"),
        ("ALTER TABLE S ADD COLUMN X INT64", "Table not found: S"),
        ("DROP TABLE S", "Table not found: S"),
        ("ALTER TABLE T ADD SYNONYM R", "the table already has a synonym S"),
        ("ALTER TABLE T RENAME TO R, ADD SYNONYM T", "the table already has a synonym S"),
        ("ALTER TABLE U ADD SYNONYM S", "Duplicate name in schema: S"),
        ("ALTER TABLE U ADD SYNONYM T", "Duplicate name in schema: T"),
        ("ALTER TABLE U ADD SYNONYM _r", "Synonym name not valid"),
        ("ALTER TABLE U DROP SYNONYM S", "SYNONYM S does not exist on table U"),
        ("CREATE TABLE S (K INT64) PRIMARY KEY (K)", "Duplicate name in schema: S"),
        ("RENAME TABLE U TO S", "Duplicate name in schema: S"),
        (
            "CREATE TABLE X (K INT64, SYNONYM(A), SYNONYM(B)) PRIMARY KEY (K)",
            "the table already has a synonym A",
        ),
    ],
)
def test_what_spanner_refuses_is_refused(database: Database, statement: str, message: str) -> None:
    with pytest.raises(GoogleAPICallError) as refused:
        change(database, statement)
    assert message in str(refused.value)
    database.reload()
    assert len(database.ddl_statements) == len(TABLES)


def test_the_postgresql_dialect_has_them_too(create_postgres: CreatePostgres) -> None:
    database = create_postgres("CREATE TABLE t (k bigint PRIMARY KEY, SYNONYM (s))")
    told = change(
        database, "ALTER TABLE t DROP SYNONYM s", "ALTER TABLE t RENAME WITH SYNONYM TO u"
    )
    assert "SYNONYM (t)" in told[0]
    write(database, "INSERT INTO t VALUES (1)")
    assert query(database, "SELECT t.k FROM t") == query(database, "SELECT k FROM u") == [[1]]
    with pytest.raises(GoogleAPICallError, match='relation "T" does not exist'):
        query(database, 'SELECT k FROM "T"')


@pytest.mark.parametrize(
    ("dialect", "statement"),
    [
        (Dialect.GOOGLESQL, "ALTER TABLE T ADD SYNONYM S"),
        (Dialect.GOOGLESQL, "ALTER TABLE T RENAME TO U, ADD SYNONYM T"),
        (Dialect.POSTGRESQL, "ALTER TABLE t ADD SYNONYM s"),
        (Dialect.POSTGRESQL, "ALTER TABLE t RENAME WITH SYNONYM TO u"),
    ],
)
def test_each_step_is_written_as_it_was_read_and_has_a_way_back(
    dialect: Dialect, statement: str
) -> None:
    table = {
        Dialect.GOOGLESQL: "CREATE TABLE T (K INT64) PRIMARY KEY (K)",
        Dialect.POSTGRESQL: "CREATE TABLE t (k bigint PRIMARY KEY)",
    }
    check_step(table[dialect], statement, dialect)
