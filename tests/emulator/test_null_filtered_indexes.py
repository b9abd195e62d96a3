"""Null-filtered indexes over columns that cannot be NULL: reads, DML and changes of NOT NULL."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from fixtures.engine_world import (
    INSERT,
    exact_bound,
    open_database,
    query,
    write,
)
from fixtures.server import CreateDatabase
from google.api_core import exceptions
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

TABLE = "CREATE TABLE T (K INT64 NOT NULL, S INT64 NOT NULL, N INT64) PRIMARY KEY (K)"
INDEX = "CREATE NULL_FILTERED INDEX ByShard ON T (S, N)"
FORCED = "SELECT K FROM T@{FORCE_INDEX=ByShard}"
BOTH = f"{FORCED} WHERE S IS NOT NULL AND N IS NOT NULL ORDER BY K"


def ddl(database: Database, *statements: str) -> None:
    database.update_ddl(statements).result(60)


def read_rows(database: Database, sql: str) -> list[list[object]]:
    with database.snapshot() as snapshot:
        return list(snapshot.execute_sql(sql))


def insert_rows(database: Database) -> None:
    with database.batch() as batch:
        batch.insert("T", ("K", "S", "N"), [(1, 1, 10), (2, 1, None), (3, 2, 30)])


@pytest.mark.ddl(TABLE, INDEX)
@pytest.mark.parametrize(
    "where",
    [
        "S IS NOT NULL AND N IS NOT NULL",
        "N IS NOT NULL",
        "S >= 0 AND N IS NOT NULL",
        "N > 0 AND S IS NOT NULL",
        "N BETWEEN 1 AND 99",
    ],
)
def test_a_column_that_cannot_be_null_needs_no_condition(database: Database, where: str) -> None:
    insert_rows(database)
    assert read_rows(database, f"{FORCED} WHERE {where} ORDER BY K") == [[1], [3]]


@pytest.mark.ddl(TABLE, "CREATE NULL_FILTERED INDEX ByShard ON T (S)")
@pytest.mark.parametrize("where", ["", "WHERE S IS NOT NULL", "WHERE S < 9", "WHERE K > 0"])
def test_an_index_over_such_columns_alone_holds_every_row(database: Database, where: str) -> None:
    insert_rows(database)
    assert read_rows(database, f"{FORCED} {where} ORDER BY K") == [[1], [2], [3]]
    with database.snapshot() as snapshot:
        keys = snapshot.read("T", ("K",), KeySet(all_=True), index="ByShard")
        assert sorted(keys) == [[1], [2], [3]]


@pytest.mark.ddl(TABLE, INDEX)
def test_dml_and_partitioned_dml_find_rows_by_such_an_index(database: Database) -> None:
    insert_rows(database)
    where = "WHERE S IS NOT NULL AND N IS NOT NULL"
    update = f"UPDATE T@{{FORCE_INDEX=ByShard}} SET N = N + 1 {where}"
    assert database.run_in_transaction(lambda change: change.execute_update(update)) == 2
    assert database.execute_partitioned_dml(update) == 2
    assert read_rows(database, "SELECT N FROM T ORDER BY K") == [[12], [None], [32]]


def test_nullability_can_change_under_an_index(create_database: CreateDatabase) -> None:
    database = create_database(TABLE, INDEX)
    insert_rows(database)
    ddl(database, "ALTER TABLE T ALTER COLUMN S INT64")
    with database.batch() as batch:
        batch.insert("T", ("K", "S", "N"), [(4, None, 40)])
    assert read_rows(database, BOTH) == [[1], [3]]
    with pytest.raises(exceptions.InvalidArgument, match="ensure S IS NOT NULL"):
        read_rows(database, f"{FORCED} WHERE N IS NOT NULL")


def test_an_earlier_schema_needs_no_condition_that_a_later_one_needs() -> None:
    with open_database(TABLE, INDEX) as database:
        written = write(database, INSERT, "T", "K S N", (1, 1, 10), (2, 1, None))
        database.update_ddl(["ALTER TABLE T ALTER COLUMN S INT64"])
        write(database, INSERT, "T", "K S N", (3, None, 30))
        then = exact_bound(written.commit_timestamp_micros)
        assert query(database, f"{FORCED} WHERE N IS NOT NULL", then) == [(1,)]
        assert query(database, BOTH, then) == [(1,)]


def test_an_index_of_an_earlier_version_of_the_server_is_laid_out_anew(tmp_path: Path) -> None:
    path = tmp_path / "db.sqlite"
    with open_database(TABLE, INDEX, path=path) as database:
        write(database, INSERT, "T", "K S N", (1, 1, 10), (2, 1, None))
    file = apsw.Connection(str(path))
    file.execute('DROP INDEX "i$ByShard"')
    file.execute(
        'CREATE INDEX "i$ByShard" ON "t$T" ("S", "N") WHERE "S" IS NOT NULL AND "N" IS NOT NULL'
    )
    file.close()
    with open_database(path=path) as database:
        assert query(database, BOTH) == [(1,)]
