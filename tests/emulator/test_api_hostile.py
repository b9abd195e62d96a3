"""Malformed requests: the right kind of status, and the server lives."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import grpc
import pytest
from fixtures.server import INSTANCE, PROJECT, CreateDatabase
from google.api_core import exceptions
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.instance import Instance
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


def refusal_of(
    channel: grpc.Channel, method: str, request: messages.Message
) -> tuple[grpc.StatusCode, str]:
    """The status and the message of a call that is refused."""
    with pytest.raises(grpc.RpcError) as caught:
        method_of(channel, SPANNER + method)(request.SerializeToString(), timeout=20)
    return caught.value.code(), caught.value.details() or ""


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
    database: Database, channel: grpc.Channel
) -> None:
    name = f"{database.name}/sessions/none"
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


PLACE = f"projects/{PROJECT}/instances"


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        (f"{PLACE}/none/databases/d/sessions/s", "NOT_FOUND", f"Instance not found: {PLACE}/none"),
        (f"{PLACE}/{INSTANCE}/databases/none/sessions/s", "NOT_FOUND", "Database not found: "),
        ("nonsense", "INVALID_ARGUMENT", "Invalid session uri: nonsense"),
        (f"{PLACE}/{INSTANCE}/databases/d/sessions/", "INVALID_ARGUMENT", "Invalid session uri"),
    ],
)
def test_what_is_missing_of_a_session_is_named(
    instance: Instance, channel: grpc.Channel, name: str, code: str, message: str
) -> None:
    request = messages.ExecuteSqlRequest(session=name, sql="SELECT 1")
    status, details = refusal_of(channel, "ExecuteSql", request)
    assert status is grpc.StatusCode[code]
    assert details.startswith(message)


def test_a_session_of_a_dropped_database_says_that_the_database_is_gone(
    create_database: CreateDatabase, channel: grpc.Channel
) -> None:
    database = create_database()
    call = method_of(channel, SPANNER + "CreateSession")
    request = messages.CreateSessionRequest(database=database.name)
    session = messages.Session.FromString(call(request.SerializeToString())).name
    database.drop()
    asked = messages.ExecuteSqlRequest(session=session, sql="SELECT 1")
    for create in (lambda: None, lambda: database.create().result(30)):
        create()
        for _ in range(2):
            status, details = refusal_of(channel, "ExecuteSql", asked)
            assert status is grpc.StatusCode.NOT_FOUND
            assert details == f"Database not found: {database.name}"


LONG = "x" * 300_000


@pytest.mark.ddl(TABLE)
@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT {LONG}",
        f"SELECT '{LONG}' + 1",
        f"SELECT {LONG} FROM T WHERE '{chr(28450) * 3_000}' = 1",
        f"SELECT {'(' * 1_000}1{')' * 1_000}",
        f"SELECT {'ABS(' * 1_000}1{')' * 1_000}",
        f"SELECT {'[' * 1_000}1{']' * 1_000}",
        f"SELECT {'(SELECT ' * 1_000}1{')' * 1_000}",
        f"SELECT PARSE_JSON('{'[' * 5_000}')",
        f"SELECT CAST('1e{'9' * 20}' AS NUMERIC)",
        "SELECT CAST(1e308 AS NUMERIC)",
        "SELECT",
        "SELECT FROM T",
        "SELECT REPEAT('ab', 600000)",
        "SELECT LPAD('a', 2000000)",
        f"SELECT REPLACE('{'a' * 2_000}', 'a', '{'b' * 2_000}')",
        "SELECT JSON '2.2412421353246235436'",
        "SELECT GENERATE_ARRAY(1, 9223372036854775807)",
        "SELECT GENERATE_ARRAY(9223372036854775807, -9223372036854775808, -1)",
        "SELECT GENERATE_ARRAY(1, 1e300, 0.001)",
        "SELECT GENERATE_ARRAY(NUMERIC '0', NUMERIC '1', NUMERIC '0.000000001')",
        "SELECT GENERATE_DATE_ARRAY(DATE '0001-01-01', DATE '9999-12-31')",
    ],
    ids=lambda sql: sql[:30],
)
def test_what_cannot_be_answered_is_refused_in_few_words(database: Database, sql: str) -> None:
    refused = (exceptions.InvalidArgument, exceptions.OutOfRange, exceptions.MethodNotImplemented)
    with database.snapshot() as snapshot, pytest.raises(refused) as caught:
        list(snapshot.execute_sql(sql))
    assert len(caught.value.message.encode()) < 4_096


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT DATE(2024, -1, 3)", "Input calculates to invalid date: 2024--1-03"),
        (
            "SELECT DATE_FROM_UNIX_DATE(9999999999)",
            "DATE_FROM_UNIX_DATE range is -719162 to 2932896 but saw 9999999999",
        ),
        ("SELECT FROM_BASE32('\u00e9')", "Failed to decode invalid base32 string: '\u00e9'"),
        (
            "SELECT REGEXP_CONTAINS('a', 'a**')",
            "Cannot parse regular expression: bad repetition operator: **",
        ),
        (" UNION ALL ".join(["SELECT 1"] * 600), "Number of UNION operations exceeds"),
    ],
    ids=lambda text: text[:30],
)
def test_a_refusal_is_in_the_words_of_googlesql(database: Database, sql: str, message: str) -> None:
    refused = (exceptions.InvalidArgument, exceptions.OutOfRange)
    with database.snapshot() as snapshot, pytest.raises(refused) as caught:
        list(snapshot.execute_sql(sql))
    assert message in caught.value.message


def test_a_regular_expression_takes_time_that_is_linear_in_the_text(database: Database) -> None:
    """An engine that tries one way after the other needs two to the power of 5,000 steps."""
    sql = "SELECT REGEXP_CONTAINS(REPEAT('a', 5000), '(a*)*b'), REGEXP_CONTAINS('λ', r'\\p{Greek}')"
    with database.snapshot() as snapshot:
        assert list(snapshot.execute_sql(sql)) == [[False, True]]


@pytest.mark.ddl(TABLE)
@pytest.mark.parametrize("word", ["OR", "AND"])
def test_a_condition_may_have_many_terms(database: Database, word: str) -> None:
    with database.batch() as batch:
        batch.insert("T", ("K", "V"), [(k, "a") for k in range(3)])
    operator = "=" if word == "OR" else "<>"
    condition = f" {word} ".join(f"K {operator} {n}" for n in range(1, 900))
    with database.snapshot() as snapshot:
        rows = list(snapshot.execute_sql(f"SELECT K FROM T WHERE {condition} ORDER BY K"))
    assert rows == ([[1], [2]] if word == "OR" else [[0]])


@pytest.mark.ddl("CREATE TABLE T (K INT64, J JSON) PRIMARY KEY (K)")
def test_json_numbers_that_would_lose_digits_are_refused(database: Database) -> None:
    exact = ["18446744073709551615", "-9223372036854775808", "1.5", "100000000000000000000.0"]
    with database.batch() as batch:
        batch.insert("T", ("K", "J"), list(enumerate(exact)))
    with database.snapshot() as snapshot:
        found = [
            row[0] for row in snapshot.execute_sql("SELECT TO_JSON_STRING(J) FROM T ORDER BY K")
        ]
    assert found[:3] == exact[:3]
    assert float(found[3]) == 1e20
    for text in ("2.2412421353246235436", "123456789012345678901", "1e999", "[" * 81 + "]" * 81):
        with pytest.raises(exceptions.FailedPrecondition), database.batch() as batch:
            batch.insert("T", ("K", "J"), [(9, text)])


@pytest.mark.ddl(TABLE)
def test_a_plan_needs_no_values_and_names_the_parameters(
    database: Database, channel: grpc.Channel
) -> None:
    call = method_of(channel, SPANNER + "CreateSession")
    created = call(messages.CreateSessionRequest(database=database.name).SerializeToString())
    session = messages.Session.FromString(created).name
    request = messages.ExecuteSqlRequest(
        session=session, sql="SELECT V FROM T WHERE K = @k AND V = @v AND V <> @w", query_mode=1
    )
    request.param_types["w"].code = 6
    call = method_of(channel, SPANNER + "ExecuteSql")
    answer = messages.ResultSet.FromString(call(request.SerializeToString()))
    undeclared = answer.metadata.undeclared_parameters.fields
    assert [(field.name, field.type_.code) for field in undeclared] == [("k", 2), ("v", 6)]
    assert answer.stats.query_plan.plan_nodes
    request.query_mode = 0
    assert "No parameter found" in refusal_of(channel, "ExecuteSql", request)[1]


@pytest.mark.ddl(TABLE)
def test_a_mutation_key_is_judged_when_a_transaction_begins(
    database: Database, channel: grpc.Channel
) -> None:
    create = messages.CreateSessionRequest(database=database.name)
    create.session.multiplexed = True
    call = method_of(channel, SPANNER + "CreateSession")
    session = messages.Session.FromString(call(create.SerializeToString())).name
    request = messages.BeginTransactionRequest(session=session)
    request.options.read_write.SetInParent()
    write = request.mutation_key.insert
    write.table = "T"
    write.columns.extend(["K"])
    write.values.add().values.add().string_value = "1"
    call = method_of(channel, SPANNER + "BeginTransaction")
    begun = messages.Transaction.FromString(call(request.SerializeToString()))
    assert begun.precommit_token.precommit_token
    write.values[0].values[0].string_value = "one"
    code, message = refusal_of(channel, "BeginTransaction", request)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "column K" in message
    write.table = "Nowhere"
    code, message = refusal_of(channel, "BeginTransaction", request)
    assert (code, message) == (grpc.StatusCode.NOT_FOUND, "Table not found: Nowhere")
