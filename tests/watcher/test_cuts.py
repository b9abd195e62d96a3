"""What it costs to find where a window is cut: the index is not counted to its end."""

from __future__ import annotations

from fixtures.singers import capture_of
from google.cloud.spanner_v1 import ExecuteSqlRequest
from google.cloud.spanner_v1.database import Database

from watcher import sql
from watcher.captures.poll import INT64
from watcher.captures.poll_tables import PolledTables
from watcher.stream import micros_of

PROFILE = ExecuteSqlRequest.QueryMode.PROFILE
ROWS = 200


def write(database: Database, first: int, count: int) -> int:
    """Rows of one commit; its timestamp."""
    with database.batch() as batch:
        rows = [(key, "x") for key in range(first, first + count)]
        batch.insert_or_update("Singers", ("SingerId", "LastName"), rows)
    assert batch.committed is not None
    return micros_of(batch.committed)


def counts(database: Database) -> int:
    """How many counts to the end of a window the server was asked for."""
    told = (
        "SELECT SUM(EXECUTION_COUNT) FROM SPANNER_SYS.QUERY_STATS_TOP_HOUR"
        " WHERE STARTS_WITH(TEXT, 'SELECT COUNT(*) FROM `Singers`')"
    )
    with database.snapshot() as snapshot:
        return next(iter(snapshot.execute_sql(told)))[0] or 0


def test_a_count_with_a_limit_reads_no_further(singers: Database) -> None:
    capture = capture_of(singers)
    write(singers, 0, ROWS)
    whole, _ = capture.look(0)
    assert capture.count_some(whole, 8) == 8
    assert capture.count_some(whole, ROWS + 1) == ROWS
    shards = capture.table.shard_values
    params = sql.window_params(whole, shards) | {"limit": "8"}
    types = sql.window_types(shards) | {"limit": INT64}
    with singers.snapshot() as snapshot:
        query = sql.count_some(capture.table)
        results = snapshot.execute_sql(query, params, types, query_mode=PROFILE)
        assert [row[0] for row in results] == [8]
        assert int(results.stats.query_stats["rows_scanned"]) <= 8


def test_a_commit_above_the_limit_is_looked_at_once(singers: Database) -> None:
    capture = capture_of(singers)
    committed = write(singers, 0, ROWS)
    write(singers, ROWS, ROWS)
    whole, _ = capture.look(0)
    before = counts(singers)
    assert PolledTables([capture]).cut({"Singers": whole}, 7) == committed
    assert counts(singers) == before + 1


def test_far_behind_the_rest_is_not_counted(singers: Database) -> None:
    capture = capture_of(singers)
    committed = [write(singers, first, 5) for first in range(0, ROWS, 5)]
    whole, _ = capture.look(0)
    before = counts(singers)
    assert PolledTables([capture]).cut({"Singers": whole}, 10) == committed[1]
    assert counts(singers) == before + 1
