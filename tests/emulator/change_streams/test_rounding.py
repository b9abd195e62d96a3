"""Commit timestamps are whole microseconds. What a client gives in nanoseconds is rounded so that
it sees the commits that it includes and none that it excludes: the table in docs/emulator.md."""

from __future__ import annotations

import pytest
from google.api_core.datetime_helpers import DatetimeWithNanoseconds
from google.cloud.spanner_v1 import ExecuteSqlRequest, TransactionOptions
from google.cloud.spanner_v1.database import Database
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from stream_reader import read_all

DDL = ("CREATE TABLE T (Id INT64) PRIMARY KEY (Id)", "CREATE CHANGE STREAM S FOR ALL")


def commit(database: Database) -> int:
    """The commit timestamp of a row, in nanoseconds."""
    with database.batch() as batch:
        batch.insert("T", ["Id"], [[1]])
    return nanos_of(batch.committed.timestamp_pb())


def nanos_of(time: Timestamp) -> int:
    nanos: int = time.seconds * 1_000_000_000 + time.nanos
    return nanos


def moment(nanos: int) -> DatetimeWithNanoseconds:
    time = Timestamp(seconds=nanos // 1_000_000_000, nanos=nanos % 1_000_000_000)
    rounded: DatetimeWithNanoseconds = DatetimeWithNanoseconds.from_timestamp_pb(time)
    return rounded


@pytest.mark.both_dialects
@pytest.mark.ddl(*DDL)
def test_a_stream_is_read_from_the_start_up_to_the_end(database: Database) -> None:
    at = commit(database)
    for start, end, expected in (
        (at, at, 1),
        (at - 1, at, 1),
        (at - 999, at, 1),
        (at - 1000, at - 1, 0),
        (at + 1, at + 2000, 0),
        (at + 999, at + 2000, 0),
        (at - 1000, at + 1, 1),
    ):
        found = read_all(database, "S", moment(start), moment(end))
        assert len(found.data) == expected, (start - at, end - at)


def read_at(database: Database, **bound: object) -> tuple[int, int]:
    """The rows that a bound shows, and its read timestamp in nanoseconds."""
    api = database.spanner_api
    session = api.create_session(database=database.name).name
    options = TransactionOptions.ReadOnly(return_read_timestamp=True, **bound)
    request = ExecuteSqlRequest(
        session=session,
        sql="SELECT Id FROM T",
        transaction={"single_use": TransactionOptions(read_only=options)},
    )
    result = api.execute_sql(request)
    answered = result.metadata.transaction.read_timestamp
    return len(result.rows), nanos_of(answered.timestamp_pb())


@pytest.mark.ddl(*DDL)
def test_a_read_at_a_timestamp_sees_what_was_committed_up_to_it(database: Database) -> None:
    at = commit(database)
    assert read_at(database, read_timestamp=moment(at - 1)) == (0, at - 1000)
    assert read_at(database, read_timestamp=moment(at + 999)) == (1, at)


@pytest.mark.ddl(*DDL)
def test_a_read_is_no_older_than_its_least_timestamp(database: Database) -> None:
    ahead = commit(database) + 200_000_001
    rows, answered = read_at(database, min_read_timestamp=moment(ahead))
    assert rows == 1
    assert answered >= ahead


@pytest.mark.ddl(*DDL)
def test_a_staleness_of_nanoseconds_is_no_strong_read(database: Database) -> None:
    """The server's clock has microseconds: one nanosecond ago is in the microsecond before."""
    commit(database)
    for bound in ("exact_staleness", "max_staleness"):
        _, answered = read_at(database, **{bound: Duration(nanos=1)})
        assert answered % 1000 == 0
