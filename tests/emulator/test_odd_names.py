"""Names of columns that mean something else to what is below the embedded server."""

from __future__ import annotations

import pytest
from fixtures.queries import ask, fill
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.schema import Dialect
from spanner_schema.syntax.render import quote_column

ROWIDS = """CREATE TABLE T (
  rowid STRING(MAX), oid FLOAT64, K INT64 NOT NULL, G BOOL AS (oid IS NULL) STORED
) PRIMARY KEY (K)"""


@pytest.mark.ddl(ROWIDS, "CREATE CHANGE STREAM S FOR T")
def test_columns_may_be_called_as_sqlite_calls_its_row_numbers(database: Database) -> None:
    with database.batch() as batch:
        batch.insert("T", ("K", "rowid", "oid"), [(1, "a", 1.5), (2, "b", None)])
    fill(database, "UPDATE T SET rowid = 'c' WHERE oid IS NULL", "DELETE FROM T WHERE oid = 1.5")
    # Every row is written again.
    add = "ALTER TABLE T ADD COLUMN Stored INT64 AS (LENGTH(rowid)) STORED"
    database.update_ddl([add]).result(60)
    assert ask(database, "SELECT K, rowid, oid, G, Stored FROM T").rows == [(2, "c", None, True, 1)]
    assert database.execute_partitioned_dml("UPDATE T SET rowid = 'de' WHERE TRUE") == 1
    assert ask(database, "SELECT rowid, Stored FROM T").rows == [("de", 2)]


@pytest.mark.ddl("CREATE TABLE T (rowid INT64, V INT64 AS (rowid + 1) STORED) PRIMARY KEY (rowid)")
def test_a_generated_column_of_such_a_column_is_moved(database: Database) -> None:
    with database.batch() as batch:
        batch.insert("T", ("rowid",), [(7,)])
    add = "ALTER TABLE T ADD COLUMN W INT64 AS (rowid + 2) STORED"
    database.update_ddl([add, "ALTER TABLE T ADD COLUMN X STRING(9)"]).result(60)
    assert ask(database, "SELECT * FROM T").rows == [(7, 8, 9, None)]


TRUTHS = "CREATE TABLE T (K INT64, `TRUE` INT64, `false` STRING(9)) PRIMARY KEY (K)"


@pytest.mark.ddl(TRUTHS, "CREATE CHANGE STREAM S FOR T")
@pytest.mark.both_dialects
def test_columns_may_be_called_as_truth_values(database: Database, dialect: Dialect) -> None:
    with database.batch() as batch:
        batch.insert("T", ("K", "TRUE", "false"), [(1, 7, "a"), (2, None, None)])
    true, false, table, key = (quote_column(name, dialect) for name in ("TRUE", "false", "T", "K"))
    fill(database, f"UPDATE {table} SET {false} = 'c' WHERE {true} IS NULL")
    inner = f"(SELECT {true}, {false}, {key} FROM {table}) AS s"
    rows = ask(database, f"SELECT s.{true}, s.{false} FROM {inner} ORDER BY {key}").rows
    assert rows == [(7, "a"), (None, "c")]
    answer = ask(database, f"SELECT * FROM {inner} WHERE s.{true} = 7 AND true")
    assert answer.rows == [(7, "a", 1)]
    assert answer.names == ["TRUE", "false", "K"]
