"""Faults on request, as the real client meets them: set at the start and while the server runs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from fixtures.broken_streams import resume_query
from fixtures.server import connect, spawn
from fixtures.warm_python import WARM_PYTHON
from google.api_core import exceptions
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from emulator.faults import Faults
from emulator.process import ServerProcess

TABLE = "CREATE TABLE T (K INT64 NOT NULL, V STRING(MAX)) PRIMARY KEY (K)"
pytestmark = pytest.mark.ddl(TABLE)
SetFaults = Callable[..., None]


def fill(database: Database, count: int) -> None:
    with database.batch() as batch:
        batch.insert("T", ["K", "V"], [(k, f"v{k}") for k in range(count)])


def keys(database: Database) -> list[int]:
    with database.snapshot() as snapshot:
        return [row[0] for row in snapshot.execute_sql("SELECT K FROM T ORDER BY K")]


def test_aborted_commits_are_tried_again_by_the_client(
    database: Database, faults: SetFaults
) -> None:
    attempts: list[int] = []

    def work(transaction: Transaction) -> None:
        attempts.append(1)
        transaction.execute_update(f"INSERT INTO T (K) VALUES ({len(keys(database))})")

    faults(aborted_commit_probability=0.7, seed=3)
    for _ in range(5):
        database.run_in_transaction(work)
    faults()
    assert len(attempts) > 5
    assert keys(database) == list(range(5))


def test_versions_are_collected_early(database: Database, faults: SetFaults) -> None:
    fill(database, 1)
    before = datetime.now(UTC) - timedelta(seconds=1)
    faults(versions_kept_seconds=0.5)
    with (
        pytest.raises(exceptions.FailedPrecondition),
        database.snapshot(read_timestamp=before) as snapshot,
    ):
        list(snapshot.execute_sql("SELECT K FROM T"))
    assert keys(database) == [0]
    faults()


def test_a_stream_of_a_transaction_that_writes_is_resumed_or_the_transaction_begins_anew(
    database: Database,
) -> None:
    """Its clock goes on, and rows that it has read without locks may have changed."""
    fill(database, 3)
    api = database.spanner_api
    begin = {"begin": {"read_write": {}, "isolation_level": "SERIALIZABLE"}}
    same, other = "SELECT K FROM T ORDER BY K", "SELECT K, CURRENT_TIMESTAMP() FROM T ORDER BY K"
    for sql in (same, other):
        query = {"session": api.create_session(database=database.name).name, "sql": sql}
        first = next(iter(api.execute_streaming_sql(request=query | {"transaction": begin})))
        assert first.resume_token
        resumed = query | {
            "transaction": {"id": first.metadata.transaction.id},
            "resume_token": first.resume_token,
        }
        if sql == same:
            rest = list(api.execute_streaming_sql(request=resumed, retry=None))
            assert not any(message.values for message in rest)
        else:
            with pytest.raises(exceptions.Aborted, match="its rows are not the same again"):
                list(api.execute_streaming_sql(request=resumed, retry=None))


def test_a_commit_that_is_always_aborted_ends_in_aborted(
    database: Database, faults: SetFaults
) -> None:
    faults(aborted_commit_probability=1.0)
    with pytest.raises(exceptions.Aborted):
        database.run_in_transaction(
            lambda transaction: transaction.execute_update("INSERT INTO T (K) VALUES (1)"),
            timeout_secs=0,
        )
    faults()
    assert keys(database) == []


@pytest.mark.parametrize("after", [1, 7, 100])
def test_a_broken_stream_is_resumed_without_a_gap_or_a_repetition(
    database: Database, faults: SetFaults, after: int
) -> None:
    fill(database, 250)
    faults(unavailable_after_rows=after)
    assert keys(database) == list(range(250))
    with database.snapshot() as snapshot:
        from_key = snapshot.read("T", ["K"], keyset=KeySet(all_=True))
        assert [row[0] for row in from_key] == list(range(250))


def test_the_metadata_do_not_come_again_where_a_stream_continues(
    database: Database, faults: SetFaults
) -> None:
    fill(database, 50)
    faults(unavailable_after_rows=10, unavailable_streams_max=1)
    begun, resumed = resume_query(database, "SELECT K FROM T ORDER BY K")
    assert [field.name for field in begun[0].metadata.row_type.fields] == ["K"]
    assert not any("metadata" in message for message in resumed)
    assert [value for message in (*begun, *resumed) for value in message.values] == [
        str(key) for key in range(50)
    ]


def test_so_many_streams_break_and_no_more(database: Database, faults: SetFaults) -> None:
    fill(database, 50)
    api = database.spanner_api
    session = api.create_session(database=database.name).name

    def rows_received() -> int:
        stream = api.execute_streaming_sql(
            request={"session": session, "sql": "SELECT K FROM T"}, retry=None
        )
        return sum(len(part.values) for part in stream)

    faults(unavailable_after_rows=10, unavailable_streams_max=2)
    for _ in range(2):
        with pytest.raises(exceptions.ServiceUnavailable, match="fault injected"):
            rows_received()
    assert rows_received() == 50


def test_latency_is_added_to_every_call(database: Database, faults: SetFaults) -> None:
    api = database.spanner_api
    session = api.create_session(database=database.name).name
    faults(latency_seconds=2.0)
    with pytest.raises(exceptions.DeadlineExceeded):
        api.get_session(name=session, retry=None, timeout=0.5)
    faults()
    assert api.get_session(name=session).name == session


def test_a_lost_session_is_not_found_and_the_next_call_finds_it(
    database: Database, faults: SetFaults
) -> None:
    api = database.spanner_api
    session = api.create_session(database=database.name).name
    faults(lost_sessions=1)
    with pytest.raises(exceptions.NotFound, match="Session not found"):
        api.get_session(name=session)
    assert api.get_session(name=session).name == session


def test_a_commit_whose_answer_is_lost_took_place(database: Database, faults: SetFaults) -> None:
    api = database.spanner_api
    session = api.create_session(database=database.name).name
    write = {"table": "T", "columns": ["K"], "values": [["1"]]}
    faults(commit_unknown_probability=1.0)
    with pytest.raises(exceptions.ServiceUnavailable):
        api.commit(
            request={
                "session": session,
                "single_use_transaction": {"read_write": {}},
                "mutations": [{"insert": write}],
            },
            retry=None,
        )
    faults()
    assert keys(database) == [1]


def test_an_unknown_fault_is_refused_by_name() -> None:
    command = [*WARM_PYTHON, "-m", "emulator", "--port", "0", "--fault"]
    for fault, message in (
        ("thunder=1", "Unknown fault thunder"),
        ("latency_seconds=much", "name=number"),
        ("latency_seconds=-1", "0 or more"),
    ):
        whole = [*command, fault]
        ended = subprocess.run(whole, check=False, capture_output=True, text=True, timeout=60)
        assert ended.returncode == 2
        assert message in ended.stderr


@pytest.fixture
def faulty() -> Iterator[ServerProcess]:
    with spawn(faults=Faults(unavailable_after_rows=10, unavailable_streams_max=1)) as process:
        yield process


def test_faults_are_there_from_the_start(faulty: ServerProcess) -> None:
    database = connect(faulty.address).database("faulty-database", ddl_statements=[TABLE])
    database.create().result(30)
    fill(database, 30)
    api = database.spanner_api
    session = api.create_session(database=database.name).name
    asked = {"session": session, "sql": "SELECT K FROM T"}
    with pytest.raises(exceptions.ServiceUnavailable, match="fault injected"):
        list(api.execute_streaming_sql(request=asked, retry=None))
    assert len(list(api.execute_streaming_sql(request=asked, retry=None))) > 0
