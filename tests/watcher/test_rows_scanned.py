"""A poll reads the rows that changed and no others, however large the table is."""

from __future__ import annotations

import pytest
from fixtures.singers import SINGERS, capture_of, make_watchable
from google.cloud.spanner_v1 import ExecuteSqlRequest, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from watcher.captures import statements
from watcher.spanner.requests import build_param_types
from watcher.spanner.timestamps import to_datetime

CHANGED = 1_000
LOAD = (
    "INSERT INTO Singers (SingerId, FirstName, LastName)"
    " SELECT k, 'First', 'Last' FROM UNNEST(GENERATE_ARRAY(@low, @high)) AS k"
)


def load(database: Database, rows: int) -> None:
    for low in range(0, rows, 5_000):
        values = {"low": low, "high": min(low + 5_000, rows) - 1}

        def work(transaction: Transaction, values: dict[str, int] = values) -> None:
            types = dict.fromkeys(values, param_types.INT64)
            transaction.execute_update(LOAD, params=values, param_types=types)

        database.run_in_transaction(work)


def change(database: Database) -> None:
    with database.batch() as batch:
        rows = [(key * 7, "changed") for key in range(CHANGED)]
        batch.update("Singers", ("SingerId", "LastName"), rows)


def count_scanned(database: Database) -> tuple[int, int]:
    """Rows returned and rows scanned by the poll of everything that changed, as PROFILE counts."""
    capture = capture_of(database)
    window, changed = capture.look(0)
    assert changed
    with database.snapshot(read_timestamp=to_datetime(window.end)) as snapshot:
        statement = statements.select_window(capture.table, window)
        result = snapshot.execute_sql(
            statement.sql,
            params=statement.params,
            param_types=build_param_types(statement),
            query_mode=ExecuteSqlRequest.QueryMode.PROFILE,
        )
        returned = len(list(result))
        stats = result.stats.query_stats
        return returned, int(stats["rows_scanned"])


def poll_of_a_table_with(database: Database, rows: int) -> tuple[int, int]:
    load(database, rows)
    make_watchable(database)
    change(database)
    return count_scanned(database)


@pytest.mark.ddl(SINGERS)
def test_a_poll_scans_one_row_for_each_row_that_changed(database: Database) -> None:
    assert poll_of_a_table_with(database, 10_000) == (CHANGED, CHANGED)


@pytest.mark.slow
@pytest.mark.ddl(SINGERS)
def test_a_poll_of_a_million_rows_scans_as_few_as_one_of_ten_thousand(database: Database) -> None:
    assert poll_of_a_table_with(database, 1_000_000) == (CHANGED, CHANGED)
