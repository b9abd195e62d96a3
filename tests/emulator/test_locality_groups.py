"""Locality groups, and the options that put tables, columns and indexes into them, are kept and
checked; they change no answer."""

from __future__ import annotations

import pytest
from fixtures.ddl_steps import check_step
from fixtures.postgres_databases import CreatePostgres, query
from fixtures.queries import ask, change
from google.api_core.exceptions import GoogleAPICallError
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.schema import Dialect

GROUP = "CREATE LOCALITY GROUP hot OPTIONS (storage = 'ssd', ssd_to_hdd_spill_timespan = '10d')"
TABLE = (
    "CREATE TABLE T (K INT64, V STRING(9) OPTIONS (locality_group = 'hot'), W INT64)"
    " PRIMARY KEY (K), OPTIONS (locality_group = 'hot')"
)
INDEX = "CREATE INDEX I ON T(V) OPTIONS (locality_group = 'hot')"
pytestmark = pytest.mark.ddl(GROUP, TABLE, INDEX)


def test_groups_are_told_before_what_is_in_them(database: Database) -> None:
    told = change(
        database,
        "CREATE LOCALITY GROUP IF NOT EXISTS hot",
        "CREATE LOCALITY GROUP cold",
        "ALTER LOCALITY GROUP cold SET OPTIONS (storage = 'hdd')",
        "ALTER LOCALITY GROUP hot SET OPTIONS (ssd_to_hdd_spill_timespan = null)",
        "ALTER LOCALITY GROUP default SET OPTIONS (storage = 'ssd')",
        "ALTER LOCALITY GROUP IF EXISTS other SET OPTIONS (storage = 'ssd')",
    )
    assert told[:3] == [
        "CREATE LOCALITY GROUP hot OPTIONS (storage = 'ssd')",
        "CREATE LOCALITY GROUP cold OPTIONS (storage = 'hdd')",
        "ALTER LOCALITY GROUP `default` SET OPTIONS (storage = 'ssd')",
    ]
    shown = ask(database, "SELECT * FROM INFORMATION_SCHEMA.LOCALITY_GROUP_OPTIONS ORDER BY 1")
    assert shown.rows == [
        ("cold", "STORAGE", "hdd"),
        ("default", "STORAGE", "ssd"),
        ("hot", "STORAGE", "ssd"),
    ]


def test_tables_columns_and_indexes_move(database: Database) -> None:
    told = change(
        database,
        "CREATE LOCALITY GROUP cold",
        "ALTER TABLE T SET OPTIONS (locality_group = 'cold', columnar_policy = 'enabled')",
        "ALTER TABLE T ALTER COLUMN V SET OPTIONS (locality_group = null)",
        "ALTER TABLE T ALTER COLUMN W SET OPTIONS (locality_group = 'cold')",
        "ALTER INDEX I SET OPTIONS (locality_group = 'cold')",
        "DROP LOCALITY GROUP hot",
        "DROP LOCALITY GROUP IF EXISTS hot",
    )
    assert "OPTIONS (locality_group = 'cold', columnar_policy = 'enabled')" in told[1]
    assert "V STRING(9),\n  W INT64 OPTIONS (locality_group = 'cold')" in told[1]
    assert told[2] == INDEX.replace("hot", "cold")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (GROUP, "Duplicate name"),
        ("CREATE LOCALITY GROUP _g", "Invalid locality group name: _g"),
        ("CREATE LOCALITY GROUP default", "Default locality group cannot be created"),
        ("CREATE LOCALITY GROUP g OPTIONS (storage = 'tape')", "Unexpected value for option: stor"),
        ("CREATE LOCALITY GROUP g OPTIONS (kind = 'ssd')", "Option: kind is unknown"),
        (
            "CREATE LOCALITY GROUP g OPTIONS (ssd_to_hdd_spill_timespan = '10')",
            "Cannot parse 10 as a valid timestamp",
        ),
        ("ALTER LOCALITY GROUP g SET OPTIONS (storage = 'ssd')", "Locality group not found: g"),
        ("ALTER LOCALITY GROUP hot", "Alter Locality Group must have options"),
        ("DROP LOCALITY GROUP g", "Locality group not found: g"),
        ("DROP LOCALITY GROUP default", "Default locality group cannot be dropped"),
        ("DROP LOCALITY GROUP hot", "Locality group hot cannot be dropped as it is referenced"),
        ("ALTER TABLE T SET OPTIONS (locality_group = 'g')", "Locality group not found: g"),
        ("ALTER TABLE T SET OPTIONS (a = 'g')", "Option: a is unknown"),
        ("ALTER INDEX I SET OPTIONS (a = 'g')", "Option: a is unknown"),
        ("ALTER INDEX N SET OPTIONS (locality_group = 'hot')", "Index not found: N"),
        (
            "ALTER TABLE T ALTER COLUMN W SET OPTIONS (locality_group = 'g')",
            "Locality group not found: g",
        ),
        ("ALTER TABLE T ALTER COLUMN W SET OPTIONS (a = 'g')", "Option: a is unknown"),
        (
            "CREATE TABLE U (K INT64) PRIMARY KEY (K), OPTIONS (locality_group = 'g')",
            "Locality group not found: g",
        ),
        ("CREATE INDEX J ON T(W) OPTIONS (locality_group = 'g')", "Locality group not found: g"),
    ],
)
def test_what_spanner_refuses_is_refused(database: Database, statement: str, message: str) -> None:
    with pytest.raises(GoogleAPICallError) as refused:
        change(database, statement)
    assert message in str(refused.value)
    database.reload()
    assert len(database.ddl_statements) == 3


def test_the_postgresql_dialect_has_them_too(create_postgres: CreatePostgres) -> None:
    database = create_postgres(
        "CREATE LOCALITY GROUP hot STORAGE 'ssd', SSD_TO_HDD_SPILL_TIMESPAN '10d'",
        "CREATE TABLE t (k bigint PRIMARY KEY, v text LOCALITY GROUP hot) LOCALITY GROUP hot",
    )
    told = change(
        database,
        "ALTER LOCALITY GROUP hot STORAGE 'hdd'",
        "ALTER TABLE t ALTER COLUMN v SET LOCALITY GROUP NULL",
    )
    assert told[0] == "CREATE LOCALITY GROUP hot STORAGE 'hdd', SSD_TO_HDD_SPILL_TIMESPAN '10d'"
    options = query(database, "SELECT * FROM information_schema.locality_group_options ORDER BY 2")
    assert [row[-1] for row in options] == ["10d", "hdd"]
    for statement, message in (
        ("DROP LOCALITY GROUP hot", "cannot be dropped as it is referenced"),
        ("ALTER TABLE t SET LOCALITY GROUP cold", "Locality group not found: cold"),
        ("CREATE LOCALITY GROUP cold STORAGE 'tape'", "Unexpected value for option: storage"),
    ):
        with pytest.raises(GoogleAPICallError, match=message):
            change(database, statement)
    change(database, "DROP TABLE t", "DROP LOCALITY GROUP hot")


@pytest.mark.parametrize(
    ("dialect", "statement"),
    [
        (Dialect.GOOGLESQL, "ALTER TABLE T SET OPTIONS (locality_group = 'g')"),
        (Dialect.GOOGLESQL, "ALTER INDEX I SET OPTIONS (locality_group = 'g')"),
        (Dialect.GOOGLESQL, "ALTER TABLE T ALTER COLUMN K SET OPTIONS (locality_group = 'g')"),
        (Dialect.POSTGRESQL, "ALTER TABLE t SET LOCALITY GROUP g"),
        (Dialect.POSTGRESQL, "ALTER INDEX i SET COLUMNAR POLICY enabled"),
        (Dialect.POSTGRESQL, "ALTER TABLE t ALTER COLUMN k SET LOCALITY GROUP g"),
    ],
)
def test_each_step_is_written_as_it_was_read_and_has_a_way_back(
    dialect: Dialect, statement: str
) -> None:
    script = {
        Dialect.GOOGLESQL: "CREATE TABLE T (K INT64) PRIMARY KEY (K); CREATE INDEX I ON T(K)",
        Dialect.POSTGRESQL: "CREATE TABLE t (k bigint PRIMARY KEY); CREATE INDEX i ON t (k)",
    }
    check_step(script[dialect], statement, dialect)
