"""SPANNER_SYS.QUERY_STATS_TOP_*: what statements cost, as far as it was measured."""

from __future__ import annotations

from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.spanner_v1 import ExecuteSqlRequest
from google.cloud.spanner_v1.database import Database
from talk import commit, dml, insert, rows

TABLES = ["MINUTE", "10MINUTE", "HOUR"]
SCHEMA = (
    "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)",
    "CREATE INDEX ByV ON T (V)",
)
pytestmark = pytest.mark.ddl(*SCHEMA)


def read_statistics(
    database: Database, text: str, columns: str, table: str = "HOUR"
) -> list[list[Any]]:
    """Columns of a statistics table for one text. A test that spans two intervals is rare."""
    return rows(
        database,
        f"SELECT {columns} FROM SPANNER_SYS.QUERY_STATS_TOP_{table} WHERE TEXT = '{text}'",
    )


@pytest.mark.parametrize("table", TABLES)
def test_executions_rows_and_scans_are_counted(database: Database, table: str) -> None:
    commit(database, insert("T", "K V", *[(k, k % 10) for k in range(100)]))
    whole, forced = "SELECT V FROM T", "SELECT K FROM T@{FORCE_INDEX=ByV} WHERE V = 3"
    for _ in range(3):
        rows(database, whole)
        rows(database, forced)
    sums = "SUM(EXECUTION_COUNT), MAX(AVG_ROWS), MAX(AVG_ROWS_SCANNED)"
    assert read_statistics(database, whole, sums, table) == [[3, 100.0, 100.0]]
    assert read_statistics(database, forced, sums, table) == [[3, 10.0, 10.0]]


def test_time_is_measured(database: Database) -> None:
    text = "SELECT COUNT(*) FROM UNNEST(GENERATE_ARRAY(1, 16000)) AS n"
    rows(database, text)
    columns = "AVG_LATENCY_SECONDS > 0, AVG_CPU_SECONDS > 0, ALL_FAILED_EXECUTION_COUNT"
    assert read_statistics(database, text, columns) == [[True, True, 0]]
    columns = "TEXT_FINGERPRINT = FARM_FINGERPRINT(TEXT), TEXT_TRUNCATED, INTERVAL_END IS NULL"
    assert read_statistics(database, text, columns) == [[True, False, False]]


def test_tags_transactions_and_failures_count_apart(database: Database) -> None:
    text = "SELECT 1 AS One"
    with database.snapshot() as snapshot:
        list(snapshot.execute_sql(text, request_options={"request_tag": "app=x"}))
    dml(database, text)
    columns = "REQUEST_TAG, EXECUTION_COUNT, RUN_IN_RW_TRANSACTION_EXECUTION_COUNT"
    assert sorted(read_statistics(database, text, columns)) == [["", 1, 1], ["app=x", 1, 0]]
    dml(database, "INSERT INTO T (K) VALUES (1), (2)")
    assert read_statistics(database, "INSERT INTO T (K) VALUES (1), (2)", "AVG_ROWS") == [[2.0]]
    with pytest.raises(exceptions.AlreadyExists):
        dml(database, "INSERT INTO T (K) VALUES (1)")
    columns = "EXECUTION_COUNT, ALL_FAILED_EXECUTION_COUNT"
    assert read_statistics(database, "INSERT INTO T (K) VALUES (1)", columns) == [[0, 1]]


@pytest.mark.parametrize(
    ("text", "scanned"),
    [
        ("UPDATE T SET V = 1 WHERE V + 0 = 3", 100.0),
        ("UPDATE T SET V = 1 WHERE K < 7", 7.0),
        ("DELETE FROM T@{FORCE_INDEX=ByV} WHERE V = 3", 10.0),
    ],
)
@pytest.mark.parametrize("partitioned", [False, True])
def test_dml_tells_the_rows_that_it_scans(
    database: Database, text: str, scanned: float, partitioned: bool
) -> None:
    commit(database, insert("T", "K V", *[(k, k % 10) for k in range(100)]))
    if partitioned:
        database.execute_partitioned_dml(text)
    else:
        dml(database, text)
    assert read_statistics(database, text, "AVG_ROWS_SCANNED") == [[scanned]]


def test_profiled_dml_tells_the_rows_that_it_scans(database: Database) -> None:
    commit(database, insert("T", "K V", *[(k, k % 10) for k in range(100)]))

    def work(transaction: Any) -> Any:
        mode = ExecuteSqlRequest.QueryMode.PROFILE
        text = "INSERT INTO T (K, V) SELECT K + 100, V FROM T WHERE V + 0 = 3 THEN RETURN K"
        result = transaction.execute_sql(text, query_mode=mode)
        assert len(list(result)) == 10
        return dict(result.stats.query_stats)

    assert database.run_in_transaction(work)["rows_scanned"] == "100"


def test_the_tables_are_listed(database: Database) -> None:
    listed = "SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = 'SPANNER_SYS'"
    names = {row[0] for row in rows(database, listed)}
    assert names >= {f"QUERY_STATS_TOP_{table}" for table in TABLES}
    assert "LOCK_STATS_TOP_MINUTE" in names
    with pytest.raises(exceptions.InvalidArgument, match="Table not found"):
        rows(database, "SELECT * FROM SPANNER_SYS.NO_SUCH_STATS_TOP_MINUTE")
