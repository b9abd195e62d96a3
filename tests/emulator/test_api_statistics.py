"""A server that is told to count the scanned rows of every execution, not of a sample."""

from __future__ import annotations

import pytest
from fixtures.server import connect, spawn
from google.cloud.spanner_v1.database import Database

TABLE = "CREATE TABLE T (K INT64) PRIMARY KEY (K)"
QUERY = "SELECT K FROM T"


def average_of_two_scans(database: Database) -> float:
    """Of a table with 10 rows, then with 20."""
    for first in (0, 10):
        with database.batch() as batch:
            batch.insert("T", ("K",), [(first + n,) for n in range(10)])
        with database.snapshot() as snapshot:
            list(snapshot.execute_sql(QUERY))
    average = (
        "SELECT SUM(AVG_ROWS_SCANNED * EXECUTION_COUNT) / SUM(EXECUTION_COUNT)"
        f" FROM SPANNER_SYS.QUERY_STATS_TOP_HOUR WHERE TEXT = '{QUERY}'"
    )
    with database.snapshot() as snapshot:
        return float(next(iter(snapshot.execute_sql(average)))[0])


def test_every_execution_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANNER_EMULATOR_HOST", "")
    with spawn(count_scans=True) as server:
        database = connect(server.address).database("counted", ddl_statements=[TABLE])
        database.create().result(30)
        assert average_of_two_scans(database) == 15.0
