"""The two gRPC servers that calls may come through answer alike."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest
from google.api_core.exceptions import AlreadyExists, DeadlineExceeded, NotFound
from google.cloud.spanner_v1 import ExecuteSqlRequest
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from emulator import transport
from emulator.data_directories import StartError
from emulator.server import Server, start
from emulator.transport import VARIABLE, Transport, choose_transport
from watcher.spanner.address import EMULATOR_HOST, DatabaseAddress
from watcher.spanner.database import connect, create_on_emulator

ADDRESS = DatabaseAddress("my-project", "my-instance", "my-database")
DDL = "CREATE TABLE T (Id INT64, V STRING(MAX)) PRIMARY KEY (Id)"
WIDE, ROWS = 100_000, 200
ENDLESS = "SELECT COUNT(*) FROM T a, T b, T c, T d WHERE a.V = b.V AND c.V > d.V"


@pytest.fixture(params=list(Transport))
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv(VARIABLE, request.param)
    with start() as started:
        monkeypatch.setenv(EMULATOR_HOST, started.address)
        yield started


@pytest.fixture
def database(server: Server) -> Database:
    create_on_emulator(ADDRESS, [DDL])
    made = connect(ADDRESS)
    with made.batch() as batch:
        batch.insert("T", ("Id", "V"), [(number, "x" * WIDE) for number in range(ROWS)])
    return made


def count(database: Database) -> int:
    with database.snapshot() as snapshot:
        return sum(1 for _ in snapshot.execute_sql("SELECT Id FROM T"))


def test_results_of_many_messages_come_whole(database: Database) -> None:
    with database.snapshot() as snapshot:
        rows = list(snapshot.execute_sql("SELECT Id, V FROM T ORDER BY Id"))
    assert [(key, len(value)) for key, value in rows] == [(key, WIDE) for key in range(ROWS)]


def test_a_transaction_reads_what_it_has_written(database: Database) -> None:
    def add(transaction: Transaction) -> int:
        transaction.execute_update(f"INSERT INTO T (Id, V) VALUES ({ROWS}, 'y')")
        return sum(1 for _ in transaction.execute_sql("SELECT Id FROM T"))

    assert database.run_in_transaction(add) == ROWS + 1
    assert count(database) == ROWS + 1


def test_errors_have_their_code_and_their_sentence(database: Database) -> None:
    with (
        pytest.raises(AlreadyExists, match=r"Row .* in table T already exists"),
        database.batch() as b,
    ):
        b.insert("T", ("Id", "V"), [(1, "again")])
    with pytest.raises(NotFound, match="Session not found"):
        database.spanner_api.execute_sql(
            request=ExecuteSqlRequest(session=f"{database.name}/sessions/none", sql="SELECT 1")
        )


def test_a_deadline_ends_a_query_and_the_next_one_is_served(database: Database) -> None:
    session = database.session()
    session.create()
    with pytest.raises(DeadlineExceeded):
        database.spanner_api.execute_sql(
            request=ExecuteSqlRequest(session=session.name, sql=ENDLESS), timeout=0.3, retry=None
        )
    assert count(database) == ROWS


def test_a_reader_that_leaves_ends_its_query(database: Database) -> None:
    session = database.session()
    session.create()
    request = ExecuteSqlRequest(session=session.name, sql="SELECT a.V FROM T a, T b, T c")
    answers = database.spanner_api.execute_streaming_sql(request=request)
    next(iter(answers))
    answers.cancel()
    assert count(database) == ROWS


def test_a_method_that_nobody_knows_is_unimplemented(server: Server) -> None:
    with grpc.insecure_channel(server.address) as channel:
        call = channel.unary_unary(
            "/google.spanner.v1.Spanner/Guess",
            request_serializer=lambda _: b"",
            response_deserializer=lambda _: None,
        )
        with pytest.raises(grpc.RpcError) as caught:
            call(None, timeout=60)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize(
    ("installed", "tls", "chosen"),
    [
        (True, False, Transport.NATIVE),
        (False, False, Transport.GRPCIO),
        (True, True, Transport.GRPCIO),
    ],
)
def test_the_native_one_serves_where_it_can(
    monkeypatch: pytest.MonkeyPatch, installed: bool, tls: bool, chosen: Transport
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(transport, "find_spec", lambda _: object() if installed else None)
    assert choose_transport(tls) is chosen
    monkeypatch.setenv(VARIABLE, Transport.GRPCIO)
    assert choose_transport(tls) is Transport.GRPCIO


@pytest.mark.parametrize(
    ("named", "said"), [("other", "use one of grpcio, native"), ("native", "pip install")]
)
def test_one_that_is_not_there_is_refused(
    monkeypatch: pytest.MonkeyPatch, named: str, said: str
) -> None:
    monkeypatch.setenv(VARIABLE, named)
    monkeypatch.setattr(transport, "find_spec", lambda _: None)
    with pytest.raises(StartError, match=said):
        start()
