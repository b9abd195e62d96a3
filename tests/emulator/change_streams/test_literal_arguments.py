"""Literals as arguments of read functions: Spanner takes those that have the argument's type.

Found by ``python -m fuzz.run --requests 100000 --seed 512``.
"""

from __future__ import annotations

import pytest
from fixtures.postgres_databases import CreatePostgres
from google.api_core.exceptions import InvalidArgument, OutOfRange
from google.cloud.spanner_v1.database import Database
from stream_reader import now

DDL = ("CREATE TABLE T (Id INT64) PRIMARY KEY (Id)", "CREATE CHANGE STREAM S FOR ALL")
POSTGRES_DDL = ("CREATE TABLE t (id bigint PRIMARY KEY)", "CREATE CHANGE STREAM s FOR ALL")
MANY_NINES = "9" * 5_000


def read(database: Database, sql: str) -> int:
    """The number of rows: a stream's first query names its partitions."""
    with database.snapshot() as snapshot:
        return len(list(snapshot.execute_sql(sql)))


@pytest.mark.ddl(*DDL)
@pytest.mark.parametrize("start", ["TIMESTAMP '{}'", "'{}'", "CAST('{}' AS TIMESTAMP)"])
def test_literals_of_their_types_are_taken(database: Database, start: str) -> None:
    time = start.format(now().isoformat())
    assert read(database, f"SELECT ChangeRecord FROM READ_S({time}, {time}, NULL, 1000)") > 0


@pytest.mark.ddl(*DDL)
@pytest.mark.parametrize(
    ("argument", "literal"),
    [
        ("heartbeat_milliseconds", ".1000"),
        ("heartbeat_milliseconds", "1000.0"),
        ("heartbeat_milliseconds", "1e3"),
        ("heartbeat_milliseconds", "'1000'"),
        ("heartbeat_milliseconds", "' 1_000'"),
        ("heartbeat_milliseconds", "TRUE"),
        ("heartbeat_milliseconds", "9223372036854775808"),
        ("heartbeat_milliseconds", MANY_NINES),
        ("partition_token", "5"),
        ("partition_token", "TIMESTAMP '2020-01-01'"),
        ("end_timestamp", "5"),
        ("end_timestamp", "CAST(5 AS TIMESTAMP)"),
        ("end_timestamp", "DATE '2020-01-01'"),
        ("read_options", "'none'"),
    ],
)
def test_a_literal_of_another_type_is_refused_by_the_name_of_its_argument(
    database: Database, argument: str, literal: str
) -> None:
    arguments = {"start_timestamp": f"'{now().isoformat()}'", "heartbeat_milliseconds": "1000"}
    named = {**arguments, argument: literal}
    call = ", ".join(f"{name} => {value}" for name, value in named.items())
    with pytest.raises(InvalidArgument, match=f"argument {argument} is neither a literal of its"):
        read(database, f"SELECT ChangeRecord FROM READ_S({call})")


@pytest.mark.parametrize("heartbeat", ["1000", "'1000'", "' +1000 '", "'1000'::bigint"])
def test_postgresql_reads_a_quoted_literal_as_its_type(
    create_postgres: CreatePostgres, heartbeat: str
) -> None:
    database = create_postgres(*POSTGRES_DDL)
    time = now().isoformat()
    sql = f"SELECT * FROM spanner.read_json_s('{time}', '{time}', NULL, {heartbeat}, NULL)"
    assert read(database, sql) > 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ("'{}', NULL, NULL, 'abc', NULL", InvalidArgument, 'syntax for type bigint: "abc"'),
        ("'{}', NULL, NULL, '1_000', NULL", InvalidArgument, 'syntax for type bigint: "1_000"'),
        (f"'{{}}', NULL, NULL, '{MANY_NINES}', NULL", OutOfRange, "out of range for type bigint"),
        ("'{}', NULL, NULL, 1000.5, NULL", InvalidArgument, "heartbeat_milliseconds is neither"),
        ("'{}', NULL, 5, 1000, NULL", InvalidArgument, "partition_token is neither"),
        ("5, NULL, NULL, 1000, NULL", InvalidArgument, "start_timestamp is neither"),
        ("'{}', NULL, NULL, 1000, 5", InvalidArgument, "read_options is neither"),
    ],
)
def test_postgresql_refuses_a_literal_of_another_type(
    create_postgres: CreatePostgres, arguments: str, error: type[Exception], message: str
) -> None:
    database = create_postgres(*POSTGRES_DDL)
    with pytest.raises(error, match=message):
        read(
            database,
            f"SELECT * FROM spanner.read_json_s({arguments.format(now().isoformat())})",
        )
