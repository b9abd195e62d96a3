"""ASSERT_ROWS_MODIFIED: a DML statement that modifies another number of rows fails, as if it had
not been there."""

from __future__ import annotations

import pytest
from fixtures.queries import ask
from google.api_core.exceptions import InvalidArgument, OutOfRange
from google.cloud.spanner_v1.database import Database

TABLE = "CREATE TABLE T (K INT64 NOT NULL, V STRING(9)) PRIMARY KEY (K)"
INSERT = "INSERT INTO T (K) VALUES (1), (2)"


def run(database: Database, sql: str) -> list[list[object]]:
    rows: list[list[object]] = database.run_in_transaction(lambda t: list(t.execute_sql(sql)))
    return rows


@pytest.mark.ddl(TABLE)
def test_a_statement_that_modifies_so_many_rows_runs(database: Database) -> None:
    run(database, f"{INSERT} ASSERT_ROWS_MODIFIED 2")
    update = "UPDATE T AS t SET t.V = 'a' WHERE t.K = 1 ASSERT_ROWS_MODIFIED 1"
    assert run(database, f"{update} THEN RETURN t.V") == [["a"]]
    run(database, "INSERT OR IGNORE INTO T (K) VALUES (1), (3) ASSERT_ROWS_MODIFIED 1")
    run(database, "INSERT INTO T (K) VALUES (1) ON CONFLICT DO NOTHING ASSERT_ROWS_MODIFIED 0")
    run(database, "DELETE FROM T WHERE K > 1 ASSERT_ROWS_MODIFIED 2")
    assert ask(database, "SELECT K FROM T").rows == [(1,)]


@pytest.mark.ddl(TABLE)
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO T (K) VALUES (3) ASSERT_ROWS_MODIFIED 2",
        "UPDATE T SET V = 'a' WHERE TRUE ASSERT_ROWS_MODIFIED 1",
        "DELETE FROM T WHERE K = 9 ASSERT_ROWS_MODIFIED 1 THEN RETURN K",
    ],
)
def test_another_number_fails_and_changes_nothing(database: Database, statement: str) -> None:
    run(database, INSERT)
    with pytest.raises(OutOfRange, match=r"ASSERT_ROWS_MODIFIED expected \d rows modified"):
        run(database, statement)
    assert ask(database, "SELECT K, V FROM T ORDER BY K").rows == [(1, None), (2, None)]


@pytest.mark.ddl(TABLE)
def test_partitioned_dml_asserts_nothing(database: Database) -> None:
    with pytest.raises(InvalidArgument, match="not supported in partitioned DML"):
        database.execute_partitioned_dml("DELETE FROM T WHERE TRUE ASSERT_ROWS_MODIFIED 1")


@pytest.mark.ddl(TABLE)
def test_the_whole_row_is_returned_by_the_name_of_its_table(database: Database) -> None:
    assert run(database, "INSERT INTO T (K) VALUES (1) THEN RETURN T.*") == [[1, None]]
    update = "UPDATE T AS t SET V = 'a' WHERE TRUE THEN RETURN WITH ACTION AS done t.*, 7"
    assert run(database, update) == [[1, "a", 7, "UPDATE"]]
    with pytest.raises(InvalidArgument):
        run(database, "DELETE FROM T AS t WHERE TRUE THEN RETURN u.*")
