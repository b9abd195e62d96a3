"""Reads, writes and transactions through the real client."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from google.api_core import exceptions
from google.cloud import spanner
from google.cloud.spanner_v1 import (
    COMMIT_TIMESTAMP,
    DirectedReadOptions,
    ExecuteSqlRequest,
    KeyRange,
    KeySet,
    RequestOptions,
    ResultSetStats,
    param_types,
)
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction
from google.rpc import code_pb2

from spanner_schema.model.schema import Dialect

TABLE = "CREATE TABLE t (k INT64 NOT NULL, v STRING(MAX)) PRIMARY KEY (k)"
STAMPED = (
    "CREATE TABLE s (k INT64 NOT NULL, v STRING(MAX), "
    "c TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (k)"
)
RETURNING = {Dialect.GOOGLESQL: "THEN RETURN", Dialect.POSTGRESQL: "RETURNING"}
PARAMETER = {Dialect.GOOGLESQL: ("@k", "k"), Dialect.POSTGRESQL: ("$1", "p1")}
"""How a statement and a request name it."""
EVERYTHING = KeySet(all_=True)

pytestmark = [pytest.mark.ddl(TABLE, STAMPED), pytest.mark.both_dialects]


def rows(database: Database, sql: str, **options: object) -> list[list[object]]:
    with database.snapshot(**options) as snapshot:
        return list(snapshot.execute_sql(sql))


def table(database: Database, **options: object) -> list[list[object]]:
    return rows(database, "SELECT K, V FROM T ORDER BY K", **options)


def fill(database: Database, *pairs: tuple[int, str | None]) -> object:
    with database.batch() as batch:
        batch.insert("t", ("k", "v"), pairs)
    return batch.committed


def test_each_kind_of_mutation_does_what_it_says(database: Database) -> None:
    fill(database, (1, "a"), (2, "b"), (3, "c"), (4, "d"))
    with database.batch() as batch:
        batch.insert("t", ("k", "v"), [(5, "new")])
        batch.update("t", ("k", "v"), [(1, "updated")])
        batch.insert_or_update("t", ("k", "v"), [(2, "upserted"), (6, "inserted")])
        batch.replace("t", ("k",), [(3,)])
        batch.delete("t", KeySet(keys=[[4], [99]]))
    assert table(database) == [
        [1, "updated"],
        [2, "upserted"],
        [3, None],
        [5, "new"],
        [6, "inserted"],
    ]


@pytest.mark.parametrize(
    ("write", "error"),
    [
        (lambda b: b.insert("t", ("k",), [(1,)]), exceptions.AlreadyExists),
        (lambda b: b.update("t", ("k", "v"), [(9, "x")]), exceptions.NotFound),
        (lambda b: b.insert("Missing", ("k",), [(1,)]), exceptions.NotFound),
        (lambda b: b.insert("t", ("k", "Missing"), [(1, "x")]), exceptions.NotFound),
        (lambda b: b.insert("t", ("k",), [("text",)]), exceptions.FailedPrecondition),
        (lambda b: b.insert("t", ("k", "v"), [(None, "x")]), exceptions.FailedPrecondition),
    ],
)
def test_a_commit_that_is_refused_leaves_nothing(
    database: Database, write: Callable[[object], None], error: type[Exception]
) -> None:
    fill(database, (1, "a"))
    with pytest.raises(error), database.batch() as batch:  # noqa: PT012 - leaving it commits
        batch.insert("t", ("k", "v"), [(2, "b")])
        write(batch)
    assert table(database) == [[1, "a"]]


def test_ranges_are_read_and_deleted_open_and_closed(database: Database) -> None:
    fill(database, *((k, str(k)) for k in range(10)))
    with database.snapshot() as snapshot:
        keys = KeySet(ranges=[KeyRange(start_closed=[2], end_open=[4])])
        assert list(snapshot.read("t", ("k",), keys)) == [[2], [3]]
    with database.batch() as batch:
        batch.delete("t", KeySet(ranges=[KeyRange(start_open=[2], end_closed=[8])]))
    assert [row[0] for row in table(database)] == [0, 1, 2, 9]


def test_a_read_can_be_limited(database: Database) -> None:
    fill(database, *((k, str(k)) for k in range(10)))
    with database.snapshot() as snapshot:
        assert list(snapshot.read("t", ("v", "k"), EVERYTHING, limit=2)) == [["0", 0], ["1", 1]]


def test_the_commit_timestamp_is_written_where_it_is_asked_for(database: Database) -> None:
    with database.batch() as batch:
        batch.insert("s", ("k", "c"), [(1, spanner.COMMIT_TIMESTAMP)])
    assert rows(database, "SELECT C FROM S") == [[batch.committed]]


def test_a_read_at_an_exact_timestamp_repeats(database: Database) -> None:
    first = fill(database, (1, "old"))
    with database.batch() as batch:
        batch.update("t", ("k", "v"), [(1, "new")])
        batch.insert("t", ("k", "v"), [(2, "later")])
    assert table(database, read_timestamp=first) == [[1, "old"]]
    assert table(database, read_timestamp=batch.committed) == [[1, "new"], [2, "later"]]
    assert table(database, min_read_timestamp=batch.committed) == [[1, "new"], [2, "later"]]


def test_a_read_only_transaction_sees_one_moment(database: Database) -> None:
    fill(database, (1, "a"))
    with database.snapshot(multi_use=True) as snapshot:
        before = list(snapshot.read("t", ("k",), EVERYTHING))
        fill(database, (2, "b"))
        assert list(snapshot.read("t", ("k",), EVERYTHING)) == before == [[1]]
        assert list(snapshot.execute_sql("SELECT COUNT(*) FROM T")) == [[1]]


PARAMETERS = {
    Dialect.GOOGLESQL: ("SELECT V FROM T WHERE K = @k AND V IN UNNEST(@vs)", "k", "vs"),
    Dialect.POSTGRESQL: ("SELECT V FROM T WHERE K = $1 AND V = ANY($2)", "p1", "p2"),
}
REFUSALS = {
    Dialect.GOOGLESQL: ("bind parameter k", "No parameter found"),
    Dialect.POSTGRESQL: ("bind parameter p1", "parameter"),
}


def test_parameters_come_with_and_without_types(database: Database, dialect: Dialect) -> None:
    fill(database, (1, "a"), (2, "b"))
    sql, k, vs = PARAMETERS[dialect]
    wrong, missing = REFUSALS[dialect]
    params: dict[str, object] = {k: 2, vs: ["a", "b"]}
    types = {k: param_types.INT64, vs: param_types.Array(param_types.STRING)}
    with database.snapshot(multi_use=True) as snapshot:
        assert list(snapshot.execute_sql(sql, params=params, param_types=types)) == [["b"]]
        assert list(snapshot.execute_sql(sql, params=params, param_types={})) == [["b"]]
        with pytest.raises(exceptions.InvalidArgument, match=wrong):
            list(snapshot.execute_sql(sql, params={**params, k: "x"}, param_types=types))
        with pytest.raises(exceptions.InvalidArgument, match=missing):
            list(snapshot.execute_sql(sql))


def test_the_placeholder_of_the_commit_timestamp_is_no_parameter(
    database: Database, dialect: Dialect
) -> None:
    place, name = PARAMETER[dialect]
    params, types = {name: COMMIT_TIMESTAMP}, {name: param_types.TIMESTAMP}
    refused = pytest.raises(exceptions.InvalidArgument, match="is for mutations")
    with refused, database.snapshot() as snapshot:
        list(snapshot.execute_sql(f"SELECT {place}", params=params, param_types=types))
    sql = f"INSERT INTO S (C) VALUES ({place})"
    with pytest.raises(exceptions.InvalidArgument, match="is for mutations"):
        database.run_in_transaction(
            lambda work: work.execute_update(sql, params=params, param_types=types)
        )


def test_dml_counts_returns_and_is_seen_by_its_transaction(
    database: Database, dialect: Dialect
) -> None:
    update = f"UPDATE T SET V = 'c' WHERE K = 2 {RETURNING[dialect]} K, V"

    def work(transaction: Transaction) -> list[object]:
        inserted = transaction.execute_update("INSERT INTO T (K, V) VALUES (1, 'a'), (2, 'b')")
        returned = list(transaction.execute_sql(update))
        seen = list(transaction.execute_sql("SELECT COUNT(*) FROM T"))
        return [inserted, returned, seen]

    assert database.run_in_transaction(work) == [2, [[2, "c"]], [[2]]]
    assert table(database) == [[1, "a"], [2, "c"]]


def test_a_batch_of_dml_stops_at_the_first_that_fails(database: Database, dialect: Dialect) -> None:
    place, name = PARAMETER[dialect]

    def work(transaction: Transaction, third: str) -> object:
        return transaction.batch_update(
            [
                "INSERT INTO T (K, V) VALUES (1, 'a')",
                (
                    f"INSERT INTO T (K, V) VALUES ({place}, 'b')",
                    {name: 2},
                    {name: param_types.INT64},
                ),
                third,
                "INSERT INTO T (K, V) VALUES (3, 'never')",
            ]
        )

    with pytest.raises(exceptions.AlreadyExists):
        database.run_in_transaction(work, "INSERT INTO T (K, V) VALUES (1, 'again')")
    assert table(database) == []
    divided = "INSERT INTO T (K, V) VALUES (MOD(1, 0), 'c')"
    status, counts = database.run_in_transaction(work, divided)
    assert (status.code, counts) == (code_pb2.OUT_OF_RANGE, [1, 1])
    assert table(database) == [[1, "a"], [2, "b"]]


@pytest.mark.parametrize("other", ["SELECT 1", "some illegal statement", "/* INSERT */ CREATE x"])
def test_a_batch_is_of_dml_alone(database: Database, other: str) -> None:
    statements = ["-- first\n INSERT INTO T (K, V) VALUES (1, 'a')", other]
    status, counts = database.run_in_transaction(lambda each: each.batch_update(statements))
    assert (status.code, counts) == (code_pb2.INVALID_ARGUMENT, [1])
    assert status.message == f"Statement 1: '{other}' is not valid DML."


def test_a_rollback_leaves_nothing(database: Database) -> None:
    class GivenUpError(Exception):
        pass

    def work(transaction: Transaction) -> None:
        transaction.execute_update("INSERT INTO T (K, V) VALUES (1, 'a')")
        raise GivenUpError

    with pytest.raises(GivenUpError):
        database.run_in_transaction(work)
    assert table(database) == []


def test_partitioned_dml_gives_a_lower_bound(database: Database) -> None:
    fill(database, *((k, "old") for k in range(100)))
    assert database.execute_partitioned_dml("UPDATE T SET V = 'new' WHERE K < 60") == 60
    assert rows(database, "SELECT COUNT(*) FROM T WHERE V = 'new'") == [[60]]
    with pytest.raises(exceptions.InvalidArgument):
        database.execute_partitioned_dml("INSERT INTO T (K) VALUES (1000)")


def test_aborted_commits_are_tried_again_by_the_client(
    database: Database, faults: Callable[..., None]
) -> None:
    faults(aborted_commit_probability=0.5, seed=1)
    for k in range(20):
        database.run_in_transaction(
            lambda t, k=k: t.execute_update(f"INSERT INTO T (K, V) VALUES ({k}, 'x')")
        )
    faults()
    assert [row[0] for row in table(database)] == list(range(20))


def test_commit_statistics_are_told_on_request(database: Database) -> None:
    database.log_commit_stats = True
    with database.batch() as batch:
        batch.insert("t", ("k", "v"), [(1, "a"), (2, "b")])
    assert batch.commit_stats.mutation_count == 4


def test_profile_counts_the_rows_that_were_scanned(database: Database) -> None:
    fill(database, *((k, str(k % 10)) for k in range(100)))
    with database.snapshot() as snapshot:
        result = snapshot.execute_sql(
            "SELECT K FROM T WHERE V = '3'", query_mode=ExecuteSqlRequest.QueryMode.PROFILE
        )
        assert len(list(result)) == 10
    measured = dict(result.stats.query_stats)
    assert (measured["rows_returned"], measured["rows_scanned"]) == ("10", "100")
    assert result.stats.query_plan.plan_nodes


def test_replaced_rows_of_other_keys_are_not_scanned(database: Database) -> None:
    with database.batch() as first:
        first.insert("t", ("k", "v"), [(k, "old") for k in range(100)])
    with database.batch() as batch:
        batch.update("t", ("k", "v"), [(k, "new") for k in range(50)])
    with database.snapshot(read_timestamp=first.committed) as snapshot:
        result = snapshot.execute_sql(
            "SELECT K, V FROM T WHERE K BETWEEN 45 AND 54",
            query_mode=ExecuteSqlRequest.QueryMode.PROFILE,
        )
        assert sorted(map(tuple, result)) == [(k, "old") for k in range(45, 55)]
    assert result.stats.query_stats["rows_scanned"] == "10"


def test_plan_tells_columns_without_rows(database: Database, dialect: Dialect) -> None:
    place, name = PARAMETER[dialect]
    fill(database, (1, "a"))
    with database.snapshot() as snapshot:
        result = snapshot.execute_sql(
            f"SELECT k, v FROM t WHERE k = {place}",
            query_mode=ExecuteSqlRequest.QueryMode.PLAN,
            params={name: 1},
            param_types={name: param_types.INT64},
        )
        assert list(result) == []
    assert [field.name for field in result.fields] == ["k", "v"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM t LIMIT {}",
        "SELECT k FROM t WHERE CAST(v AS NUMERIC) > 0 OR k = {}",
        "SELECT table_name AS k FROM information_schema.tables LIMIT {}",
    ],
)
def test_a_plan_runs_nothing(database: Database, dialect: Dialect, query: str) -> None:
    """Its values may be missing: NULL is no LIMIT, and 'a' no number."""
    place, name = PARAMETER[dialect]
    fill(database, (1, "a"))
    with database.snapshot() as snapshot:
        result = snapshot.execute_sql(
            query.format(place),
            query_mode=ExecuteSqlRequest.QueryMode.PLAN,
            params={name: None},
            param_types={name: param_types.INT64},
        )
        assert list(result) == []
    assert [field.name for field in result.fields] == ["k"]


def test_the_plan_of_dml_has_changed_no_row(database: Database) -> None:
    fill(database, (1, "a"))

    def plan(transaction: Transaction) -> ResultSetStats:
        update, mode = "UPDATE t SET v = 'b' WHERE true", ExecuteSqlRequest.QueryMode.PLAN
        result = transaction.execute_sql(update, query_mode=mode)
        assert list(result) == []
        return cast(ResultSetStats, result.stats)

    stats = database.run_in_transaction(plan)
    assert "row_count_exact" in stats
    assert stats.row_count_exact == 0
    assert stats.query_plan.plan_nodes
    assert table(database) == [[1, "a"]]


def test_groups_of_mutations_are_committed_apart(database: Database) -> None:
    with database.mutation_groups() as groups:
        groups.group().insert("t", ("k", "v"), [(1, "a")])
        groups.group().insert("t", ("k", "v"), [(1, "again")])
        groups.group().insert("t", ("k", "v"), [(2, "b")])
        answers = list(groups.batch_write())
    assert {a.indexes[0]: a.status.code for a in answers} == {
        0: 0,
        1: code_pb2.ALREADY_EXISTS,
        2: 0,
    }
    assert table(database) == [[1, "a"], [2, "b"]]


def test_partitions_together_give_every_row_once(database: Database) -> None:
    fill(database, *((k, str(k)) for k in range(100)))
    batch = database.batch_snapshot()
    read = [
        r
        for p in batch.generate_read_batches("t", ("k",), EVERYTHING)
        for r in batch.process_read_batch(p)
    ]
    queried = [
        r
        for p in batch.generate_query_batches("SELECT K FROM T")
        for r in batch.process_query_batch(p)
    ]
    batch.close()
    assert sorted(read) == sorted(queried) == [[k] for k in range(100)]


def test_stale_reads_are_bounded(database: Database) -> None:
    first = fill(database, (1, "a"))
    fill(database, (2, "b"))
    assert table(database, read_timestamp=first) == [[1, "a"]]
    for bounds in ({"max_staleness": timedelta(0)}, {"exact_staleness": timedelta(0)}):
        assert table(database, **bounds) == [[1, "a"], [2, "b"]]
    with pytest.raises(exceptions.FailedPrecondition):
        table(database, read_timestamp=datetime.now(UTC) - timedelta(days=1))


def test_options_of_a_request_are_taken_or_refused(database: Database) -> None:
    fill(database, (1, "a"))
    tagged = RequestOptions(priority=RequestOptions.Priority.PRIORITY_LOW, request_tag="report")
    near = DirectedReadOptions(
        include_replicas={"replica_selections": [{"location": "us-east4", "type_": "READ_ONLY"}]}
    )
    options: dict[str, Any] = {"request_options": tagged, "directed_read_options": near}
    with database.snapshot(multi_use=True) as snapshot:
        assert list(snapshot.execute_sql("SELECT k FROM t", **options)) == [[1]]
        assert list(snapshot.read("t", ("k",), EVERYTHING, **options)) == [[1]]

    def write(transaction: Transaction) -> None:
        transaction.execute_update("UPDATE t SET v = 'b' WHERE k = 1", request_options=tagged)
        with pytest.raises(exceptions.InvalidArgument):
            list(transaction.execute_sql("SELECT k FROM t", directed_read_options=near))

    database.run_in_transaction(write, transaction_tag="nightly")
    assert table(database) == [[1, "b"]]


def test_dml_in_a_snapshot_is_refused(database: Database) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="single-use"):
        rows(database, "DELETE FROM T WHERE TRUE")
