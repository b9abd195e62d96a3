"""Limits of schemas and values: names, columns, key parts, indexes, depth, keys, change streams."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database
from talk import commit, ddl, insert, rows

LONG = "n" * 129
TABLE = "CREATE TABLE T (I INT64 NOT NULL, B BOOL NOT NULL, S STRING(MAX), S2 STRING(MAX)) "
TABLE += "PRIMARY KEY (I, B)"
SEVENTEEN = ", ".join(f"C{n}" for n in range(17))


def columns(count: int) -> str:
    return ", ".join(f"C{n} INT64 NOT NULL" for n in range(count))


@pytest.mark.parametrize(
    "statement",
    [
        f"CREATE TABLE {LONG} (I INT64) PRIMARY KEY (I)",
        f"CREATE TABLE X (I INT64, {LONG} INT64) PRIMARY KEY (I)",
        f"ALTER TABLE T ADD COLUMN {LONG} INT64",
        f"CREATE INDEX {LONG} ON T (S)",
        f"CREATE CHANGE STREAM {LONG} FOR ALL",
        f"CREATE VIEW {LONG} SQL SECURITY INVOKER AS SELECT T.I FROM T",
        f"CREATE SEQUENCE {LONG} OPTIONS (sequence_kind='bit_reversed_positive')",
    ],
)
@pytest.mark.ddl(TABLE)
def test_a_name_has_at_most_128_characters(database: Database, statement: str) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        ddl(database, statement)
    ddl(database, statement.replace(LONG, LONG[:128]))


def test_a_table_has_at_most_1024_columns(database: Database) -> None:
    with pytest.raises(exceptions.FailedPrecondition):
        ddl(database, f"CREATE TABLE X ({columns(1025)}) PRIMARY KEY ()")
    ddl(database, f"CREATE TABLE X ({columns(1024)}) PRIMARY KEY ()")
    with pytest.raises(exceptions.FailedPrecondition):
        ddl(database, "ALTER TABLE X ADD COLUMN More INT64")


def test_a_key_has_at_most_16_parts(database: Database) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        ddl(database, f"CREATE TABLE X ({columns(17)}) PRIMARY KEY ({SEVENTEEN})")
    with pytest.raises(exceptions.InvalidArgument):
        ddl(
            database,
            f"CREATE TABLE X ({columns(17)}) PRIMARY KEY (C0)",
            f"CREATE INDEX ByAll ON X ({SEVENTEEN})",
        )


@pytest.mark.ddl(TABLE)
def test_a_table_has_at_most_128_indexes(database: Database) -> None:
    ddl(database, *[f"CREATE INDEX I{n} ON T (S)" for n in range(128)])
    with pytest.raises(exceptions.FailedPrecondition):
        ddl(database, "CREATE INDEX More ON T (S)")
    ddl(database, "DROP INDEX I0", "CREATE INDEX More ON T (S)")


def test_tables_are_interleaved_seven_deep(database: Database) -> None:
    created = ["CREATE TABLE T0 (I INT64) PRIMARY KEY (I)"]
    created += [
        f"CREATE TABLE T{n} (I INT64) PRIMARY KEY (I), INTERLEAVE IN PARENT T{n - 1}"
        for n in range(1, 7)
    ]
    ddl(database, *created)
    with pytest.raises(exceptions.FailedPrecondition):
        ddl(
            database,
            "CREATE TABLE T7 (I INT64) PRIMARY KEY (I), INTERLEAVE IN PARENT T6",
        )


def test_a_database_has_at_most_ten_change_streams(database: Database) -> None:
    for n in range(10):
        ddl(
            database,
            f"CREATE TABLE T{n} (I INT64) PRIMARY KEY (I)",
            f"CREATE CHANGE STREAM S{n} FOR T{n}()",
        )
    with pytest.raises(exceptions.FailedPrecondition):
        ddl(database, "CREATE CHANGE STREAM More FOR ALL")


@pytest.mark.ddl(TABLE)
def test_at_most_three_change_streams_watch_a_column(database: Database) -> None:
    ddl(database, *[f"CREATE CHANGE STREAM S{n} FOR T" for n in range(3)])
    for target in ("FOR ALL", "FOR T", "FOR T(S)"):
        with pytest.raises(exceptions.FailedPrecondition):
            ddl(database, f"CREATE CHANGE STREAM More {target}")
    ddl(database, "ALTER CHANGE STREAM S0 SET FOR T()", "CREATE CHANGE STREAM More FOR ALL")


@pytest.mark.ddl(TABLE)
def test_streams_of_keys_alone_and_of_different_columns_do_not_count(database: Database) -> None:
    ddl(database, *[f"CREATE CHANGE STREAM Keys{n} FOR T()" for n in range(4)])
    ddl(
        database,
        "CREATE CHANGE STREAM Everything FOR ALL",
        "CREATE CHANGE STREAM Whole FOR T",
        "CREATE CHANGE STREAM One FOR T(S)",
        "CREATE CHANGE STREAM Other FOR T(S2)",
    )
    with pytest.raises(exceptions.FailedPrecondition):
        ddl(database, "CREATE CHANGE STREAM Again FOR T(S)")


@pytest.mark.ddl(
    "CREATE TABLE K (A STRING(MAX), B STRING(MAX)) PRIMARY KEY (A, B)",
    "CREATE TABLE V (I INT64, A STRING(MAX), B STRING(MAX), X BYTES(MAX)) PRIMARY KEY (I)",
    "CREATE INDEX ByAB ON V (A, B)",
)
def test_a_key_and_an_index_key_have_at_most_8192_bytes(database: Database) -> None:
    for values in (("a" * 8_193, None), ("a" * 4_097, "b" * 4_097), ("é" * 4_097, None)):
        with pytest.raises(exceptions.InvalidArgument):
            commit(database, insert("K", "A B", values))
        with pytest.raises(exceptions.InvalidArgument):
            commit(database, insert("V", "I A B", (1, *values)))
    commit(database, insert("K", "A B", ("a" * 8_000, None)))
    commit(database, insert("V", "I A B", (1, "a" * 8_000, None)))


@pytest.mark.ddl("CREATE TABLE V (I INT64, X BYTES(MAX)) PRIMARY KEY (I)")
def test_the_largest_bytes_are_written_and_read_inside_an_array_of_structs(
    database: Database,
) -> None:
    largest = "QUJD" * (10 * 1024 * 1024 // 4)
    commit(database, insert("V", "I X", (1, largest)))
    ((structs,),) = rows(database, "SELECT ARRAY(SELECT AS STRUCT X FROM V)")
    assert structs == [[largest.encode()]]


@pytest.mark.parametrize(
    ("query", "limit"),
    [
        (f"SELECT 1 WHERE {' OR '.join(f'{n} = 1' for n in range(1_001))}", "functions"),
        (" UNION ALL ".join(["SELECT 1"] * 201), "UNION operations"),
        (f"SELECT {'STRUCT(' * 16}1{')' * 16}", "nested struct types"),
    ],
)
def test_a_statement_has_limits_of_size(database: Database, query: str, limit: str) -> None:
    with pytest.raises(exceptions.InvalidArgument, match=f"Number of {limit} exceeds the maximum"):
        rows(database, query)


def test_a_statement_within_the_limits_is_answered(database: Database) -> None:
    assert rows(database, " UNION ALL ".join(["SELECT 1"] * 200)) == [[1]] * 200
    terms = " OR ".join(f"x = {n}" for n in range(900))
    assert rows(database, f"SELECT x FROM UNNEST([5, 950]) AS x WHERE {terms}") == [[5]]
    nested = f"{'STRUCT(' * 15}1 AS a{') AS a' * 14})"
    assert rows(database, f"SELECT {nested}{'.a' * 15}") == [[1]]
