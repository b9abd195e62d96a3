"""How change records are put into messages: what is ready goes out at once, and together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import pytest
from google.cloud.spanner_v1 import ExecuteSqlRequest, PartialResultSet, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.streamed import StreamedResultSet
from hypothesis import given
from hypothesis import strategies as st
from stream_reader import now, read_all, records

from emulator import limits
from emulator.engine.change_streams.reading import data_record, heartbeat_record
from emulator.engine.change_streams.values import compact_json
from emulator.sql.change_streams import CHANGE_RECORD
from emulator.values.forms import timestamp_from_micros
from emulator.wire.encoding import RowEncoder
from emulator.wire.record_encoding import frame_change_record

USERS = "CREATE TABLE Users (Id INT64, Name STRING(MAX)) PRIMARY KEY (Id)"
STREAM = "CREATE CHANGE STREAM Everything FOR ALL"
SECONDS = 60
QUIET_MILLISECONDS = 300_000
"""The longest interval of heartbeats: no test waits for one."""


def insert(database: Database, *rows: tuple[object, ...]) -> datetime:
    with database.batch() as batch:
        batch.insert("Users", ["Id", "Name"], rows)
    committed: datetime = batch.committed
    return committed


def list_tokens(database: Database, start: datetime) -> list[str]:
    children = [c for _, _, cs in records(database, "Everything", start, None) for c in cs]
    return [token for child in children for token, _ in child[2]]


def query(
    database: Database, start: datetime, end: datetime | None, token: str, resume: bytes = b""
) -> Iterator[PartialResultSet]:
    """The messages of a query of a partition."""
    session = database.spanner_api.create_session(request={"database": database.name})
    parameters = {"s": start, "e": end, "t": token, "h": QUIET_MILLISECONDS}
    types = dict.fromkeys(("s", "e"), param_types.TIMESTAMP)
    types |= {"t": param_types.STRING, "h": param_types.INT64}
    request = ExecuteSqlRequest(
        session=session.name,
        sql="SELECT ChangeRecord FROM READ_Everything(@s, @e, @t, @h)",
        params={name: show(value) for name, value in parameters.items()},
        param_types=types,
        resume_token=resume,
    )
    stream: Iterator[PartialResultSet] = iter(
        database.spanner_api.execute_streaming_sql(request=request, timeout=SECONDS)
    )
    return stream


def show(value: object) -> object:
    """A parameter in the JSON of Spanner's API."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value) if isinstance(value, int) else value


def list_commits(messages: Sequence[PartialResultSet]) -> list[datetime]:
    """The commit timestamps of the data change records, of whole messages from the first on."""
    return [
        data[0] for row in StreamedResultSet(iter(messages)) for each in row[0] for data in each[0]
    ]


@pytest.mark.ddl(USERS, STREAM)
def test_records_that_are_ready_at_once_come_in_one_message(database: Database) -> None:
    stamps = [insert(database, (n, "x")) for n in range(60)]
    commits: list[datetime] = []
    for token in list_tokens(database, stamps[0]):
        messages = list(query(database, stamps[0], stamps[-1], token))
        assert len(messages) == 1
        commits += list_commits(messages)
    assert sorted(commits) == stamps


@pytest.mark.ddl(USERS, STREAM)
def test_a_backlog_comes_in_messages_of_the_size_of_other_results(database: Database) -> None:
    length, count = limits.CHUNK_BYTES // 4, 60
    stamps = [insert(database, (n, "x" * length)) for n in range(count)]
    commits: list[datetime] = []
    for token in list_tokens(database, stamps[0]):
        messages = list(query(database, stamps[0], stamps[-1], token))
        sizes = [PartialResultSet.pb(each).ByteSize() for each in messages]
        assert max(sizes) < limits.CHUNK_BYTES + 2 * length
        commits += list_commits(messages)
    assert sorted(commits) == stamps


@pytest.mark.ddl(USERS, STREAM)
def test_a_stream_goes_on_after_the_last_record_of_any_message(database: Database) -> None:
    stamps = [insert(database, (n, "x" * 20_000)) for n in range(30)]
    for token in list_tokens(database, stamps[0]):
        messages = list(query(database, stamps[0], stamps[-1], token))
        whole = list_commits(messages)
        assert len(messages) > 1
        for count, message in enumerate(messages, start=1):
            assert message.resume_token
            rest = list(query(database, stamps[0], stamps[-1], token, message.resume_token))
            assert list_commits([*messages[:count], *rest]) == whole


@pytest.mark.ddl(USERS, STREAM)
def test_a_record_that_is_longer_than_a_message_is_cut(database: Database) -> None:
    before = insert(database, (1, "short"))
    names = {n: chr(ord("a") + n) * (2 * limits.PIECE_BYTES + n) for n in (2, 3)}
    insert(database, *names.items())
    after = insert(database, (4, "ß" * limits.PIECE_BYTES))
    contents = read_all(database, "Everything", before, after)
    news = [new for data in contents.data for _, new, _ in data[6]]
    assert sorted(len(dict(new)["Name"]) for new in news) == sorted(
        [len("short"), limits.PIECE_BYTES, *map(len, names.values())]
    )
    for token in list_tokens(database, before):
        for message in query(database, before, after, token):
            assert PartialResultSet.pb(message).ByteSize() < 2 * limits.PIECE_BYTES


@pytest.mark.ddl(USERS, STREAM)
def test_a_record_of_an_open_query_waits_for_no_other(database: Database) -> None:
    """A message comes after each commit, though nothing follows it."""
    start = now()
    first = insert(database, (1, "a"))
    (token,) = [
        token
        for token in list_tokens(database, first)
        if list_commits(list(query(database, start, first, token)))
    ]
    messages = query(database, start, None, token)
    assert list_commits([next(messages)]) == [first]
    for name in "bc":
        with database.batch() as batch:
            batch.update("Users", ["Id", "Name"], [(1, name)])
        message = next(messages)
        assert len(message.values) == 1
        assert message.resume_token


long_texts = st.sampled_from(["x" * 1_022, "x" * 1_023, "x" * 1_024, "x" * 20_000])
texts = st.text(st.characters(codec="utf-8"), max_size=20) | long_texts
columns = st.lists(
    st.tuples(texts, st.just('{"code":"INT64"}'), st.booleans(), st.integers(1, 1_000)), max_size=3
)
data_fields = st.tuples(
    st.integers(0, 2**50).map(timestamp_from_micros),
    texts,
    texts,
    st.booleans(),
    texts,
    columns,
    st.lists(st.tuples(texts, texts, texts), max_size=4),
    st.sampled_from(["INSERT", "UPDATE", "DELETE"]),
    st.just("NEW_ROW"),
    st.integers(1, 2**40),
    st.integers(1, 20),
    texts,
    st.booleans(),
)


def encode_by_type(stored: str) -> bytes:
    """As any other value is encoded."""
    return RowEncoder([CHANGE_RECORD]).encode([(stored,)])


@given(data_fields)
def test_a_record_is_encoded_as_its_type_says(fields: tuple[Any, ...]) -> None:
    stored = data_record(compact_json(list(fields)))
    assert frame_change_record(stored) == encode_by_type(stored)


def test_what_is_no_data_change_record_is_encoded_as_its_type_says() -> None:
    child = '[[[],[],[["2026-01-31T12:00:00.000000000Z","00000001",[["token",["a","b"]]]]]]]'
    for stored in (heartbeat_record(1_769_860_800_000_000), child, "[[[],[],[]]]"):
        assert frame_change_record(stored) == encode_by_type(stored)
