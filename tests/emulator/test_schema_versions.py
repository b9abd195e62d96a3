"""Reads at an exact timestamp are judged by the schema that was valid then."""

from __future__ import annotations

import base64
import os
import random
import threading
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from fixtures.server import CreateDatabase, connect, spawn
from google.api_core import exceptions
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from schema_model import SchemaWorld, now, rows

EVERYTHING = KeySet(all_=True)
SEEDS = range(int(os.environ.get("SCHEMA_SEEDS", "2")))
STEPS = int(os.environ.get("SCHEMA_STEPS", "40"))

TABLE = "CREATE TABLE T (K INT64 NOT NULL, V STRING(MAX)) PRIMARY KEY (K)"
SHARDED = (
    "CREATE TABLE S (K INT64 NOT NULL, ShardId INT64 AS (MOD(K, 2)) STORED) PRIMARY KEY (K)",
    "CREATE NULL_FILTERED INDEX ByShard ON S (ShardId)",
)


def ddl(database: Database, *statements: str) -> None:
    database.update_ddl(statements).result(60)


def write(database: Database, table: str, columns: str, *values: Sequence[object]) -> None:
    with database.batch() as batch:
        batch.insert_or_update(table, columns.split(), values)


@pytest.mark.ddl(TABLE)
def test_a_column_is_not_there_before_it_is_added(database: Database) -> None:
    write(database, "T", "K V", [1, "a"])
    before = now(database)
    ddl(database, "ALTER TABLE T ADD COLUMN W INT64 NOT NULL DEFAULT (7)")
    write(database, "T", "K V", [1, "b"])
    assert rows(database, "SELECT * FROM T", before) == [[1, "a"]]
    assert rows(database, "SELECT * FROM T") == [[1, "b", 7]]
    with pytest.raises(exceptions.InvalidArgument, match="Unrecognized name: W"):
        rows(database, "SELECT W FROM T", before)
    with (
        database.snapshot(read_timestamp=before) as snapshot,
        pytest.raises(exceptions.NotFound, match="W"),
    ):
        list(snapshot.read("T", ["W"], EVERYTHING))


@pytest.mark.ddl(TABLE)
def test_a_dropped_column_is_read_with_its_values_of_then(database: Database) -> None:
    write(database, "T", "K V", [1, "a"], [2, "b"])
    first = now(database)
    write(database, "T", "K V", [1, "c"])
    second = now(database)
    ddl(database, "ALTER TABLE T DROP COLUMN V", "ALTER TABLE T ADD COLUMN V INT64")
    third = now(database)
    write(database, "T", "K V", [1, 5])
    sql = "SELECT * FROM T ORDER BY K"
    assert rows(database, sql, first) == [[1, "a"], [2, "b"]]
    assert rows(database, sql, second) == [[1, "c"], [2, "b"]]
    assert rows(database, sql, third) == [[1, None], [2, None]]
    assert rows(database, sql) == [[1, 5], [2, None]]
    with database.snapshot(read_timestamp=first) as snapshot:
        assert list(snapshot.read("T", ["V"], KeySet(keys=[[1]]))) == [["a"]]


@pytest.mark.ddl(TABLE)
def test_a_table_of_the_same_name_is_another_one(database: Database) -> None:
    write(database, "T", "K V", [1, "old"])
    old = now(database)
    ddl(database, "DROP TABLE T")
    between = now(database)
    ddl(database, "CREATE TABLE T (K STRING(9), N INT64) PRIMARY KEY (K)")
    write(database, "T", "K N", ["x", 3])
    assert rows(database, "SELECT * FROM T", old) == [[1, "old"]]
    assert rows(database, "SELECT * FROM T") == [["x", 3]]
    with pytest.raises(exceptions.InvalidArgument, match="Table not found: T"):
        rows(database, "SELECT * FROM T", between)
    with (
        database.snapshot(read_timestamp=between) as snapshot,
        pytest.raises(exceptions.NotFound, match="T"),
    ):
        list(snapshot.read("T", ["K"], EVERYTHING))
    with database.snapshot(read_timestamp=old) as snapshot:
        assert list(snapshot.read("T", ["V"], KeySet(keys=[[1]]))) == [["old"]]


@pytest.mark.ddl(*SHARDED)
def test_each_number_of_shards_has_its_own_time(database: Database) -> None:
    write(database, "S", "K", *([key] for key in range(8)))
    two = now(database)
    ddl(database, "DROP INDEX ByShard")
    none = now(database)
    ddl(
        database,
        "ALTER TABLE S DROP COLUMN ShardId",
        "ALTER TABLE S ADD COLUMN ShardId INT64 AS (MOD(K, 8)) STORED",
        "CREATE NULL_FILTERED INDEX ByShard ON S (ShardId)",
    )
    eight = now(database)
    write(database, "S", "K", [9])
    sql = "SELECT K FROM S@{FORCE_INDEX=ByShard} WHERE ShardId = 1 ORDER BY K"
    assert rows(database, sql, two) == [[1], [3], [5], [7]]
    assert rows(database, sql, eight) == [[1]]
    assert rows(database, sql) == [[1], [9]]
    missing = "The table S does not have a secondary index called ByShard"
    with pytest.raises(exceptions.InvalidArgument, match=missing):
        rows(database, sql, none)
    with pytest.raises(exceptions.InvalidArgument, match="ByShard"):
        rows(database, "SELECT K FROM S@{FORCE_INDEX=ByShard}", two)
    with database.snapshot(read_timestamp=two) as snapshot:
        keys = KeySet(keys=[[1]])
        rows_read = list(snapshot.read("S", ["K", "ShardId"], keys, index="ByShard"))
        assert rows_read == [[1, 1], [3, 1], [5, 1], [7, 1]]
    with (
        database.snapshot(read_timestamp=none) as snapshot,
        pytest.raises(exceptions.NotFound, match="ByShard"),
    ):
        list(snapshot.read("S", ["K"], EVERYTHING, index="ByShard"))


@pytest.mark.ddl(TABLE)
def test_the_schema_of_create_database_holds_before_it(database: Database) -> None:
    """The Go client's tests ask for no rows, and for no error, before a database was made."""
    write(database, "T", "K V", [1, "a"])
    before = now(database) - timedelta(minutes=1)
    ddl(database, "ALTER TABLE T ADD COLUMN W INT64")
    assert rows(database, "SELECT K, V FROM T", before) == []
    with pytest.raises(exceptions.InvalidArgument, match="Unrecognized name: W"):
        rows(database, "SELECT W FROM T", before)


@pytest.mark.ddl(TABLE)
def test_a_transaction_reads_with_one_schema(database: Database) -> None:
    write(database, "T", "K V", [1, "a"], [2, "b"])
    with database.snapshot(multi_use=True) as snapshot:
        assert list(snapshot.execute_sql("SELECT V FROM T WHERE K = 1")) == [["a"]]
        ddl(database, "ALTER TABLE T DROP COLUMN V", "CREATE TABLE U (K INT64) PRIMARY KEY (K)")
        assert list(snapshot.execute_sql("SELECT V FROM T WHERE K = 2")) == [["b"]]
        with pytest.raises(exceptions.InvalidArgument, match="Table not found: U"):
            list(snapshot.execute_sql("SELECT K FROM U"))


@pytest.mark.ddl(TABLE)
def test_partitions_read_what_was_dropped(database: Database) -> None:
    write(database, "T", "K V", *([key, f"v{key}"] for key in range(40)))
    before = now(database)
    ddl(database, "ALTER TABLE T DROP COLUMN V")
    batch = database.batch_snapshot(read_timestamp=before)
    queried = [
        tuple(row)
        for part in batch.generate_query_batches("SELECT K, V FROM T")
        for row in batch.process(part)
    ]
    read = [
        tuple(row)
        for part in batch.generate_read_batches("T", ["K", "V"], EVERYTHING)
        for row in batch.process(part)
    ]
    batch.close()
    assert sorted(queried) == sorted(read) == [(key, f"v{key}") for key in range(40)]


@pytest.mark.ddl(TABLE)
def test_a_type_is_the_one_of_then(database: Database) -> None:
    write(database, "T", "K V", [1, "abc"])
    before = now(database)
    ddl(database, "ALTER TABLE T ALTER COLUMN V BYTES(MAX)")
    assert rows(database, "SELECT V FROM T", before) == [["abc"]]
    assert rows(database, "SELECT V FROM T") == [[base64.b64encode(b"abc")]]


@pytest.mark.ddl(TABLE)
def test_information_schema_shows_the_schema_of_then(database: Database) -> None:
    before = now(database)
    ddl(database, "ALTER TABLE T ADD COLUMN W INT64", "ALTER TABLE T DROP COLUMN V")
    sql = (
        "SELECT COLUMN_NAME FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_NAME = 'T' "
        "ORDER BY ORDINAL_POSITION"
    )
    for _ in range(2):
        assert rows(database, sql, before) == [["K"], ["V"]]
        assert rows(database, sql) == [["K"], ["W"]]


@pytest.mark.ddl(TABLE)
def test_what_differs_each_time_is_not_remembered(database: Database) -> None:
    sql = "SELECT GENERATE_UUID() FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME = 'T'"
    assert rows(database, sql) != rows(database, sql)


@pytest.mark.ddl(TABLE)
def test_catalog_and_rows_are_of_one_schema_while_it_changes(database: Database) -> None:
    write(database, "T", "K V", [1, "a"])
    listed = "SELECT COLUMN_NAME FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_NAME = 'T'"

    def change() -> None:
        for _ in range(15):
            ddl(database, "ALTER TABLE T ADD COLUMN W INT64 DEFAULT (1)")
            ddl(database, "ALTER TABLE T DROP COLUMN W")

    changing = threading.Thread(target=change)
    changing.start()
    seen = set()
    while changing.is_alive():
        with database.snapshot(multi_use=True) as snapshot:
            columns = {name for (name,) in snapshot.execute_sql(listed)}
            result = snapshot.execute_sql("SELECT * FROM T")
            ((_, *values),) = result
            assert {field.name for field in result.fields} == columns
            assert values == (["a", 1] if "W" in columns else ["a"])
            seen.add(len(columns))
    changing.join()
    assert seen == {2, 3}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_moment_shows_the_model_of_then(create_database: CreateDatabase, seed: int) -> None:
    database = create_database()
    world = SchemaWorld(database, random.Random(seed))
    for _ in range(STEPS):
        world.step()
    world.check(database)


def test_every_moment_shows_the_model_of_then_after_a_restart(tmp_path: Path) -> None:
    with spawn(tmp_path) as server:
        database = connect(server.address).database("versions")
        database.create().result(30)
        world = SchemaWorld(database, random.Random(99))
        for _ in range(STEPS):
            world.step()
        server.kill()
    with spawn(tmp_path) as server:
        world.check(connect(server.address).database("versions"))
