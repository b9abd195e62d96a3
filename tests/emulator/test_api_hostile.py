"""Malformed requests: the right kind of status, and the server lives."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import grpc
import pytest
from fixtures.server import INSTANCE, PROJECT
from google.api_core import exceptions
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.process import ServerProcess
from emulator.wire import messages

TABLE = "CREATE TABLE T (K INT64 NOT NULL, V STRING(MAX)) PRIMARY KEY (K)"
SPANNER = "/google.spanner.v1.Spanner/"
METHODS = {
    "Commit": messages.CommitRequest,
    "BeginTransaction": messages.BeginTransactionRequest,
    "ExecuteSql": messages.ExecuteSqlRequest,
    "ExecuteBatchDml": messages.ExecuteBatchDmlRequest,
    "Read": messages.ReadRequest,
    "Rollback": messages.RollbackRequest,
    "PartitionQuery": messages.PartitionQueryRequest,
    "PartitionRead": messages.PartitionReadRequest,
}


@pytest.fixture(scope="module")
def channel(server: ServerProcess) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.address) as opened:
        yield opened


def method_of(channel: grpc.Channel, name: str) -> Callable[..., bytes]:
    """A method that takes and gives bytes."""
    call: Callable[..., bytes] = channel.unary_unary(name)  # type: ignore[call-arg]
    return call


def code_of(channel: grpc.Channel, method: str, request: bytes) -> grpc.StatusCode:
    """The status of a call with these bytes."""
    try:
        method_of(channel, method)(request, timeout=20)
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


@pytest.mark.parametrize("method", sorted(METHODS))
@settings(max_examples=25, deadline=None)
@given(data=st.binary(max_size=200))
def test_random_bytes_are_refused(method: str, channel: grpc.Channel, data: bytes) -> None:
    code = code_of(channel, SPANNER + method, data)
    assert code not in {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}


@pytest.mark.ddl(TABLE)
def test_fields_filled_with_nonsense_are_never_an_error_of_ours(
    database: Database, channel: grpc.Channel
) -> None:
    name = f"projects/{PROJECT}/instances/{INSTANCE}/databases/{database.database_id}"
    request = messages.CreateSessionRequest(database=name)
    call = method_of(channel, SPANNER + "CreateSession")
    session = messages.Session.FromString(call(request.SerializeToString())).name

    @settings(max_examples=60, deadline=None)
    @given(st.sampled_from(sorted(METHODS)), st.data())
    def check(method: str, data: st.DataObject) -> None:
        kind = METHODS[method]
        built = kind(session=session)
        for field in kind.DESCRIPTOR.fields:
            if field.name == "session" or data.draw(st.booleans()):
                continue
            if field.type == field.TYPE_STRING and not field.is_repeated:
                setattr(built, field.name, data.draw(st.text(max_size=20)))
            elif field.type == field.TYPE_BYTES:
                setattr(built, field.name, data.draw(st.binary(max_size=40)))
            elif field.type == field.TYPE_INT64:
                setattr(built, field.name, data.draw(st.integers(-(2**63), 2**63 - 1)))
            elif field.message_type is not None and not field.is_repeated:
                getattr(built, field.name).SetInParent()
        code = code_of(channel, SPANNER + method, built.SerializeToString())
        assert code not in {
            grpc.StatusCode.INTERNAL,
            grpc.StatusCode.UNKNOWN,
            grpc.StatusCode.UNAVAILABLE,
        }, built

    check()
    with database.snapshot() as snapshot:
        assert list(snapshot.execute_sql("SELECT 1")) == [[1]]


@pytest.mark.ddl(TABLE)
@pytest.mark.parametrize(
    "sql",
    ["SELECT 1; SELECT 2", "SELECT 1; DROP TABLE T", "", ";", "SELECT '", "PRAGMA user_version"],
)
def test_stacked_and_broken_statements_are_invalid(database: Database, sql: str) -> None:
    with database.snapshot() as snapshot, pytest.raises(exceptions.InvalidArgument):
        list(snapshot.execute_sql(sql))


@pytest.mark.ddl(TABLE)
def test_a_quoted_value_stays_a_value(database: Database) -> None:
    text = "'; DROP TABLE T; --\0\"`"
    with database.batch() as batch:
        batch.insert("T", ("K", "V"), [(1, text)])
    with database.snapshot() as snapshot:
        result = snapshot.execute_sql(
            "SELECT K FROM T WHERE V = @v",
            params={"v": text},
            param_types={"v": param_types.STRING},
        )
        assert list(result) == [[1]]


@pytest.mark.ddl(TABLE)
def test_the_largest_value_is_taken_and_a_larger_one_refused(database: Database) -> None:
    largest = "漢" * 2_621_440
    with database.batch() as batch:
        batch.insert("T", ("K", "V"), [(1, largest)])
    with database.snapshot() as snapshot:
        assert list(snapshot.execute_sql("SELECT V FROM T")) == [[largest]]
    for length in (2_621_441, 100_000_000):
        refused = pytest.raises(exceptions.FailedPrecondition, match="size limit")
        with refused, database.batch() as batch:
            batch.insert("T", ("K", "V"), [(2, "x" * length)])


def test_an_unknown_session_is_not_found_and_says_so(
    server: ServerProcess, channel: grpc.Channel
) -> None:
    name = f"projects/{PROJECT}/instances/{INSTANCE}/databases/x/sessions/none"
    call = method_of(channel, SPANNER + "GetSession")
    with pytest.raises(grpc.RpcError) as caught:
        call(messages.GetSessionRequest(name=name).SerializeToString())
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert caught.value.details() == f"Session not found: {name}"
    trailers: dict[str, str | bytes] = dict(caught.value.trailing_metadata())  # type: ignore[arg-type]
    info = trailers["google.rpc.resourceinfo-bin"]
    assert isinstance(info, bytes)
    assert b"google.spanner.v1.Session" in info


def test_a_method_that_nobody_knows_is_unimplemented_and_named(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        method_of(channel, "/google.spanner.v1.Spanner/Nonsense")(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert "Nonsense" in (caught.value.details() or "")
