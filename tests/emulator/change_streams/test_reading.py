"""Change streams as a reader meets them: records, partitions, bounds, refusals."""

from __future__ import annotations

import queue
import threading
from datetime import datetime, timedelta
from typing import Any

import pytest
from google.api_core.exceptions import (
    GoogleAPICallError,
    InvalidArgument,
    MethodNotImplemented,
    OutOfRange,
)
from google.cloud.spanner import KeySet
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database
from stream_reader import now, parse_fields, read_all, records

USERS = "CREATE TABLE Users (Id INT64, Name STRING(MAX), Age INT64) PRIMARY KEY (Id)"
STREAM = "CREATE CHANGE STREAM Everything FOR ALL"


def insert(database: Database, *rows: tuple[object, ...]) -> datetime:
    with database.batch() as batch:
        batch.insert("Users", ["Id", "Name", "Age"], rows)
    committed: datetime = batch.committed
    return committed


def mods(data: list[list[Any]]) -> list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """(mod_type, keys, new_values, old_values) of every change."""
    return [(r[7], *(parse_fields(part) for part in mod)) for r in data for mod in r[6]]


@pytest.mark.ddl(USERS, STREAM)
def test_inserts_updates_and_deletes_are_read_from_all_partitions(database: Database) -> None:
    first = insert(database, *[(n, f"n{n}", n) for n in range(20)])
    with database.batch() as batch:
        batch.update("Users", ["Id", "Name"], [(3, "three")])
    with database.batch() as batch:
        batch.delete("Users", keyset_of(4))
    contents = read_all(database, "Everything", first, now())
    assert len(contents.parents) > 1
    changes = mods(contents.data)
    inserted = {k["Id"]: new for kind, k, new, _ in changes if kind == "INSERT"}
    assert inserted == {str(n): {"Name": f"n{n}", "Age": str(n)} for n in range(20)}
    assert ("UPDATE", {"Id": "3"}, {"Name": "three"}, {"Name": "n3"}) in changes
    assert ("DELETE", {"Id": "4"}, {}, {"Name": "n4", "Age": "4"}) in changes
    inserts = [r for r in contents.data if r[7] == "INSERT"]
    assert {r[9] for r in inserts} == {len(inserts)} == {r[10] for r in inserts}
    assert all(r[3] for r in inserts)


def keyset_of(*keys: object) -> Any:
    return KeySet(keys=[[key] for key in keys])


@pytest.mark.ddl(USERS, STREAM)
def test_both_bounds_are_inclusive(database: Database) -> None:
    stamps = [insert(database, (n, "x", n)) for n in range(6)]
    contents = read_all(database, "Everything", stamps[1], stamps[4])
    assert sorted(r[0] for r in contents.data) == stamps[1:5]


@pytest.mark.ddl(USERS, STREAM)
def test_a_query_without_end_goes_on_with_heartbeats_and_later_records(database: Database) -> None:
    start = insert(database, (1, "a", 1))
    tokens = [c[2][0][0] for _, _, cs in records(database, "Everything", start, None) for c in cs]
    beats = []
    for token in tokens:
        for _, heartbeats, _ in records(database, "Everything", start, None, token):
            if heartbeats:
                beats.append(heartbeats[0][0])
                break
    assert len(beats) == len(tokens)
    assert all(beat >= start for beat in beats)


@pytest.mark.ddl(USERS, STREAM)
def test_a_root_query_names_the_start_and_no_parents(database: Database) -> None:
    start = insert(database, (1, "a", 1))
    children = [c for _, _, cs in records(database, "Everything", start, None) for c in cs]
    assert {c[0] for c in children} == {start}
    assert all(parents == [] for c in children for _, parents in c[2])


@pytest.mark.ddl(USERS, STREAM)
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"start": None}, InvalidArgument),
        ({"heartbeat": None}, InvalidArgument),
        ({"heartbeat": 999}, InvalidArgument),
        ({"heartbeat": 300_001}, InvalidArgument),
        ({"token": "nobody"}, InvalidArgument),
        ({"start": now() - timedelta(days=3)}, OutOfRange),
        ({"start": now() + timedelta(hours=1)}, OutOfRange),
        ({"end": now() - timedelta(days=1)}, InvalidArgument),
    ],
)
def test_wrong_arguments_are_refused(
    database: Database, changes: dict[str, Any], error: type[GoogleAPICallError]
) -> None:
    arguments: dict[str, Any] = {"start": now(), "end": None, **changes}
    with pytest.raises(error):
        list(records(database, "Everything", **arguments))


@pytest.mark.ddl(USERS, STREAM)
@pytest.mark.parametrize("argument", ["start", "end"])
def test_the_placeholder_of_the_commit_timestamp_is_no_argument(
    database: Database, argument: str
) -> None:
    arguments: dict[str, Any] = {"start": now(), "end": None}
    arguments[argument] = "spanner.commit_timestamp()"
    with pytest.raises(InvalidArgument, match=f"for {argument}_.*'spanner.*is for mutations"):
        list(records(database, "Everything", **arguments))


@pytest.mark.ddl(USERS, STREAM)
def test_a_read_function_stands_alone_in_a_strong_single_use_read(database: Database) -> None:
    sql = "SELECT ChangeRecord FROM READ_Everything(@s, NULL, NULL, 1000)"
    whole = f"SELECT COUNT(*) FROM ({sql})"
    with database.snapshot(multi_use=True) as snapshot:
        snapshot.begin()
        with pytest.raises(InvalidArgument, match="single-use read-only"):
            list(snapshot.execute_sql(sql, params={"s": now()}))
    with database.snapshot() as snapshot, pytest.raises(MethodNotImplemented, match="TVF"):
        list(snapshot.execute_sql(whole, params={"s": now()}))


DEBEZIUM = (
    "SELECT * FROM READ_Everything(   start_timestamp => @startTimestamp,"
    "   end_timestamp => @endTimestamp,   partition_token => @partitionToken,"
    "   read_options => null,   heartbeat_milliseconds => @heartbeatMillis)"
)
"""The query of Debezium's connector for Spanner."""


@pytest.mark.ddl(USERS, STREAM)
@pytest.mark.parametrize(
    "sql",
    [
        DEBEZIUM,
        DEBEZIUM.replace("SELECT *", "/* every column */ SELECT\n  * -- of one\n"),
        DEBEZIUM.replace("SELECT *", "select changerecord").replace("READ_", "read_"),
        DEBEZIUM.replace("SELECT *", "SELECT r.*") + " AS r;",
        DEBEZIUM.replace("SELECT *", "SELECT `ChangeRecord`"),
    ],
)
def test_a_star_selects_the_change_record(database: Database, sql: str) -> None:
    start = insert(database, (1, "a", 1))
    params = {"startTimestamp": start, "endTimestamp": start, "heartbeatMillis": 1000}
    types = {
        "startTimestamp": param_types.TIMESTAMP,
        "endTimestamp": param_types.TIMESTAMP,
        "partitionToken": param_types.STRING,
        "heartbeatMillis": param_types.INT64,
    }

    def read(token: str | None) -> list[Any]:
        with database.snapshot() as snapshot:
            result = snapshot.execute_sql(
                sql, params={**params, "partitionToken": token}, param_types=types
            )
            rows = list(result)
            assert [field.name for field in result.fields] == ["ChangeRecord"]
        return [record for row in rows for record in row[0]]

    tokens = [child[2][0][0] for _, _, children in read(None) for child in children]
    data = [record for token in tokens for changed, _, _ in read(token) for record in changed]
    assert [(kind, keys) for kind, keys, _, _ in mods(data)] == [("INSERT", {"Id": "1"})]


@pytest.mark.ddl(USERS, STREAM)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * EXCEPT (ChangeRecord) FROM {call}",
        "SELECT *, 1 FROM {call}",
        "SELECT ChangeRecord AS other FROM {call}",
        "SELECT DISTINCT * FROM {call}",
        "SELECT * FROM {call} LIMIT 1",
        "SELECT * FROM {call} AS a, {call} AS b",
        "SELECT other.* FROM {call} AS r",
    ],
)
def test_a_read_function_within_other_sql_is_refused(database: Database, sql: str) -> None:
    call = "READ_Everything(@s, NULL, NULL, 1000)"
    with database.snapshot() as snapshot, pytest.raises(MethodNotImplemented, match="TVF"):
        list(snapshot.execute_sql(sql.format(call=call), params={"s": now()}))


@pytest.mark.ddl(USERS, STREAM)
def test_a_text_that_looks_like_a_read_function_is_a_text(database: Database) -> None:
    with database.snapshot() as snapshot:
        assert list(snapshot.execute_sql("SELECT 'READ_Everything(1)'")) == [["READ_Everything(1)"]]


@pytest.mark.ddl(USERS, STREAM)
def test_an_open_query_is_woken_by_a_commit_long_before_its_heartbeat(database: Database) -> None:
    start = insert(database, (1, "a", 1))
    tokens = [c[2][0][0] for _, _, cs in records(database, "Everything", start, None) for c in cs]
    arrived: queue.Queue[Any] = queue.Queue()

    def follow(token: str) -> None:
        for data, _, _ in records(database, "Everything", start, None, token, 300_000):
            for record in data:
                arrived.put(record)
            if any(record[0] > start for record in data):
                break

    readers = [threading.Thread(target=follow, args=(t,), daemon=True) for t in tokens]
    for reader in readers:
        reader.start()
    assert arrived.get(timeout=60)[0] == start
    later = insert(database, *[(n, "b", n) for n in range(2, 60)])
    for reader in readers:
        reader.join(60)
        assert not reader.is_alive()
    assert {arrived.get_nowait()[0] for _ in readers} == {later}
