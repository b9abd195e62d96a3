"""A poll reads the rows that changed and no others, however large the table is."""

from __future__ import annotations

import pytest
from fixtures.singers import SINGERS, capture_of, make_watchable
from google.cloud.spanner_v1 import ExecuteSqlRequest
from google.cloud.spanner_v1.database import Database

from watcher.captures import statements
from watcher.spanner.dialects import find_dialect
from watcher.spanner.requests import build_param_types
from watcher.spanner.timestamps import to_datetime

CHANGED = 1_000
ROWS_A_COMMIT = 5_000


def load(database: Database, rows: int) -> None:
    columns = ("SingerId", "FirstName", "LastName")
    for low in range(0, rows, ROWS_A_COMMIT):
        with database.batch() as batch:
            keys = range(low, min(low + ROWS_A_COMMIT, rows))
            batch.insert("Singers", columns, [(key, "First", "Last") for key in keys])


def change(database: Database) -> None:
    with database.batch() as batch:
        rows = [(key * 7, "changed") for key in range(CHANGED)]
        batch.update("Singers", ("SingerId", "LastName"), rows)


def count_scanned(database: Database) -> tuple[int, int]:
    """Rows returned and rows scanned by the poll of everything that changed, as PROFILE counts."""
    capture = capture_of(database)
    window, changed = capture.look(0)
    assert changed
    assert not capture.look(window.end)[1]
    with database.snapshot(read_timestamp=to_datetime(window.end)) as snapshot:
        statement = statements.select_window(capture.table, window)
        types = build_param_types(statement)
        values = {name: (value, types[name]) for name, value in statement.params.items()}
        result = snapshot.execute_sql(
            *find_dialect(database).bind(statement.sql, values),
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


@pytest.mark.both_dialects
@pytest.mark.ddl(SINGERS)
def test_a_poll_scans_one_row_for_each_row_that_changed(database: Database) -> None:
    assert poll_of_a_table_with(database, 10_000) == (CHANGED, CHANGED)


@pytest.mark.ddl(SINGERS)
def test_a_poll_of_a_million_rows_scans_as_few_as_one_of_ten_thousand(database: Database) -> None:
    assert poll_of_a_table_with(database, 1_000_000) == (CHANGED, CHANGED)
