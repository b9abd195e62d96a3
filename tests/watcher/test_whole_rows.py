"""Whole rows of a change stream that captures parts of them, when one transaction changes a row
more than once."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from fixtures.singers import address_of, await_expiry
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from spanner_schema.model.column_types import Type, TypeCode
from watcher import Change, Watcher
from watcher.captures.change_stream import (
    ChangeStreamCapture,
    WholeRows,
    find_stream,
    iterate_stream_changes,
)
from watcher.captures.change_stream.record_values import DataRecord, StreamMod
from watcher.envelopes import encode, make_envelope
from watcher.model.change import Operation, Shape, ValueCapture
from watcher.model.window import Window
from watcher.spanner.queries import QueryClient
from watcher.spanner.stream import QueryStream
from watcher.spanner.timestamps import to_micros
from watcher.tables.discovery import read_schema

TABLE = "CREATE TABLE T (Id INT64, Version INT64, Text STRING(MAX)) PRIMARY KEY (Id)"
STREAM = "CREATE CHANGE STREAM S FOR T OPTIONS (value_capture_type = 'OLD_AND_NEW_VALUES')"
INT64, STRING = Type(TypeCode.INT64), Type(TypeCode.STRING)
PART = Shape("T", (("Id", INT64), ("Version", INT64)), ("Id",), (1, 2))
CAPTURED = ValueCapture.OLD_AND_NEW_VALUES

INSERT = "INSERT INTO T (Id, Version, Text) VALUES (1, 1, 'first')"
FIRST = "UPDATE T SET Version = 2 WHERE Id = 1"
SECOND = "UPDATE T SET Version = 3, Text = 'then' WHERE Id = 1"
DELETE = "DELETE FROM T WHERE Id = 1"

with_table = pytest.mark.ddl(TABLE, STREAM)


def commit(database: Database, *statements: str) -> int:
    """One transaction of these statements; its commit timestamp."""
    transactions: list[Transaction] = []

    def work(transaction: Transaction) -> None:
        for statement in statements:
            transaction.execute_update(statement)
        transactions.append(transaction)

    database.run_in_transaction(work)
    committed = transactions[-1].committed
    assert committed is not None
    return to_micros(committed)


def capture_of(database: Database) -> ChangeStreamCapture:
    stream = find_stream(read_schema(database), "S", (), database.name)
    queries = QueryClient(address_of(database))
    return ChangeStreamCapture(queries, stream, whole_rows=WholeRows(queries))


def complete_records(database: Database, *records: DataRecord) -> list[Change]:
    """Records as the capture completes them. Spanner may send a record for each statement of a
    transaction; the embedded server sends what they come to."""
    at = records[0].commit_timestamp
    (rows,) = capture_of(database).convert_records(
        [("", each) for each in records], Window(at - 1, at)
    )
    return list(iterate_stream_changes(rows, database.name))


def record(
    at: int, number: int, operation: Operation, new: str | None, old: str = "{}"
) -> DataRecord:
    """A record of row 1."""
    return DataRecord(
        commit_timestamp=at,
        sequence=f"{number:08}",
        transaction_id="t",
        last_in_partition=True,
        shape=PART,
        mods=(StreamMod('{"Id":"1"}', new, old),),
        operation=operation,
        captured=CAPTURED,
        records_in_transaction=2,
        partitions_in_transaction=1,
        tag="",
        system=False,
    )


def make_update(at: int, number: int = 0) -> DataRecord:
    return record(at, number, Operation.UPDATE, '{"Version":"2"}', '{"Version":"1"}')


@with_table
def test_a_row_that_is_updated_and_deleted_is_told_as_it_was_between(database: Database) -> None:
    commit(database, INSERT)
    at = commit(database, FIRST, DELETE)
    update, delete = complete_records(
        database, make_update(at), record(at, 1, Operation.DELETE, None, '{"Version":"2"}')
    )
    assert update.new_values == {"Version": 2, "Text": "first"}
    assert update.captured is ValueCapture.NEW_ROW_AND_OLD_VALUES
    assert delete.operation is Operation.DELETE
    records = list(encode([update, delete], make_envelope("debezium", {})))
    assert len(records) == 3, "the update, the delete and its tombstone"


@with_table
def test_a_row_that_was_never_there_is_told_with_what_its_records_say(database: Database) -> None:
    at = commit(database, INSERT, FIRST, DELETE)
    insert, update = complete_records(
        database, record(at, 0, Operation.INSERT, '{"Version":"1"}'), make_update(at, 1)
    )
    assert (insert.new_values, update.new_values) == ({"Version": 1}, {"Version": 2})
    assert (insert.captured, update.captured) == (CAPTURED, CAPTURED)


@with_table
def test_rows_of_one_record_are_marked_one_by_one(database: Database) -> None:
    at = commit(database, INSERT)
    both = record(at, 0, Operation.INSERT, '{"Version":"1"}')
    other = StreamMod('{"Id":"2"}', '{"Version":"5"}', "{}")
    there, gone = complete_records(
        database, DataRecord(**fields(both) | {"mods": (*both.mods, other)})
    )
    assert there.new_values == {"Version": 1, "Text": "first"}
    assert there.captured is ValueCapture.NEW_ROW_AND_OLD_VALUES
    assert gone.new_values == {"Version": 5}
    assert gone.captured is CAPTURED


def fields(given: DataRecord) -> dict[str, Any]:
    return {name: getattr(given, name) for name in DataRecord.__slots__}


@with_table
def test_the_first_of_two_updates_keeps_its_values(database: Database) -> None:
    commit(database, INSERT)
    at = commit(database, FIRST, SECOND)
    second = record(at, 1, Operation.UPDATE, '{"Version":"3"}', '{"Version":"2"}')
    changes = complete_records(database, make_update(at), second)
    assert [(change.new_values or {})["Version"] for change in changes] == [2, 3]
    assert {change.captured.whole_row for change in changes} == {True}


@with_table
def test_a_column_that_is_dropped_since_is_told_as_its_record_has_it(database: Database) -> None:
    commit(database, INSERT)
    at = commit(database, FIRST)
    wide = Shape("T", (*PART.columns, ("Gone", STRING)), ("Id",))
    change = record(at, 0, Operation.UPDATE, '{"Gone":"new"}', '{"Gone":"old"}')
    (completed,) = complete_records(database, DataRecord(**fields(change) | {"shape": wide}))
    assert completed.new_values == {"Version": 2, "Text": "first", "Gone": "new"}
    assert completed.old_values == {"Gone": "old"}


@with_table
def test_a_watcher_goes_on_behind_such_transactions(database: Database) -> None:
    seen: list[Change] = []
    watcher = Watcher(
        database=str(address_of(database)),
        tables=["T"],
        consumer="whole",
        capture="change-stream",
        stream={"name": "S", "whole_rows": True},
    )
    watcher.on_change(seen.append)
    watcher.run_once()
    commit(database, INSERT, DELETE)
    commit(database, INSERT)
    commit(database, FIRST, SECOND)
    commit(database, FIRST, DELETE)
    commit(database, INSERT, FIRST)
    watcher.run_once()
    assert [(str(change.operation), change.new_values) for change in seen] == [
        ("INSERT", {"Version": 1, "Text": "first"}),
        ("UPDATE", {"Version": 3, "Text": "then"}),
        ("DELETE", None),
        ("INSERT", {"Version": 2, "Text": "first"}),
    ]


# Versions that Spanner keeps no more.

HOURS = 3_600_000_000
GENERATED = (
    "CREATE TABLE T (Id INT64, Version INT64, Text STRING(MAX),"
    " Twice INT64 AS (Version * 2) STORED) PRIMARY KEY (Id)"
)
NEW_ROWS = "CREATE CHANGE STREAM S FOR T OPTIONS (value_capture_type = 'NEW_ROW')"
with_generated = pytest.mark.ddl(GENERATED, NEW_ROWS)


def make_rows(*keys: int) -> tuple[StreamMod, ...]:
    new = '{"Version":"1","Text":"old"}'
    return tuple(StreamMod(f'{{"Id":"{key}"}}', new, "{}") for key in keys)


def make_expired(end: int, *keys: int) -> DataRecord:
    """A record whose versions are gone: it has not the column that is generated."""
    shape = Shape("T", (("Id", INT64), ("Version", INT64), ("Text", STRING)), ("Id",))
    more = {"shape": shape, "mods": make_rows(*keys), "captured": ValueCapture.NEW_ROW}
    return DataRecord(**fields(make_update(end - 2 * HOURS)) | more)


@with_generated
@pytest.mark.parametrize("age", [0, HOURS * 3 // 2])
def test_a_copy_gets_the_row_at_the_end_where_its_version_is_gone(
    database: Database, age: int
) -> None:
    """Also as of now, where that is gone, too. What came after the end is not in it."""
    at = commit(database, INSERT)
    whole = WholeRows(QueryClient(address_of(database)), newest=True)
    commit(database, SECOND)
    completed = whole.complete(make_expired(at, 1, 2), at - age)
    (mod,) = completed.mods
    then = {"Version": "1", "Text": "first", "Twice": "2"}
    now = {"Version": "3", "Text": "then", "Twice": "6"}
    assert json.loads(mod.new or "") == (now if age else then)
    assert completed.captured is ValueCapture.NEW_ROW
    assert completed.shape.columns[-1] == ("Twice", INT64)


@with_generated
def test_a_record_whose_version_is_gone_is_marked_as_a_part(database: Database) -> None:
    """Who gets every version gets no row of another timestamp."""
    at = commit(database, INSERT)
    whole = WholeRows(QueryClient(address_of(database)))
    completed = whole.complete(make_expired(at, 1), at)
    assert completed.mods == make_rows(1)
    assert completed.captured is ValueCapture.NEW_VALUES
    assert not completed.captured.whole_row


@with_generated
def test_a_watcher_that_was_away_for_long_goes_on(
    database: Database, faults: Callable[..., None]
) -> None:
    seen: list[Change] = []
    watcher = Watcher(
        database=str(address_of(database)),
        tables=["T"],
        consumer="away",
        capture="change-stream",
        stream={"name": "S", "whole_rows": True},
    )
    watcher.on_change(seen.append)
    watcher.run_once()
    commit(database, INSERT)
    at = commit(database, SECOND)
    faults(versions_kept_seconds=0.5)
    await_expiry(database, "T", at)
    watcher.run_once()
    faults()
    commit(database, FIRST)
    watcher.run_once()
    assert [(change.new_values, str(change.captured)) for change in seen] == [
        ({"Version": 1, "Text": "first"}, "NEW_VALUES"),
        ({"Version": 3, "Text": "then"}, "NEW_VALUES"),
        ({"Version": 2, "Text": "then", "Twice": 4}, "NEW_ROW"),
    ]


@with_generated
def test_the_records_of_a_commit_are_completed_by_one_read(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit of inserts and updates in turn has a record for each change of the kind; rows of
    other commits are as they were then."""
    read_keys, read = QueryStream.read_keys, list[tuple[int, int | None]]()

    def count(self: QueryStream, *arguments: Any) -> Any:
        read.append((len(arguments[2]), arguments[3]))
        return read_keys(self, *arguments)

    monkeypatch.setattr(QueryStream, "read_keys", count)
    commit(database, *(f"INSERT INTO T (Id, Version) VALUES ({2 * n}, 1)" for n in range(10)))
    start = to_micros(datetime.now(UTC))
    with database.batch() as batch:
        rows = [(n, 2, f"text {n}") for n in range(20)]
        batch.insert_or_update("T", ("Id", "Version", "Text"), rows)
    first = to_micros(batch.committed)
    second = commit(database, "UPDATE T SET Version = 3 WHERE Id < 5")
    parts = capture_of(database).read_window(Window(start, second))
    changes = [each for rows in parts for each in iterate_stream_changes(rows, database.name)]
    assert read == [(20, first), (5, second)]
    twice = {(each.key["Id"], (each.new_values or {})["Twice"]) for each in changes}
    assert twice == {(n, 4) for n in range(20)} | {(n, 6) for n in range(5)}
    assert capture_of(database).read_few(Window(start, second), 24, 10_000) is None
    assert len(read) == 2, "rows that are too many are not completed"


@with_generated
def test_who_keeps_the_newest_rows_has_those_at_the_end_by_one_read(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of records of the last commit, and of rows that are gone at the end."""
    read_keys, read = QueryStream.read_keys, list[tuple[int, int | None]]()

    def count(self: QueryStream, *arguments: Any) -> Any:
        read.append((len(arguments[2]), arguments[3]))
        return read_keys(self, *arguments)

    monkeypatch.setattr(QueryStream, "read_keys", count)
    start = to_micros(datetime.now(UTC))
    commit(database, *(f"INSERT INTO T (Id, Version) VALUES ({n}, 1)" for n in range(20)))
    commit(database, "DELETE FROM T WHERE Id = 7")
    end = commit(database, "UPDATE T SET Version = 3 WHERE Id < 5")
    commit(database, "UPDATE T SET Version = 9 WHERE TRUE")
    whole = WholeRows(QueryClient(address_of(database)), newest=True, at_end=True)
    capture = replace(capture_of(database), whole_rows=whole)
    parts = capture.read_window(Window(start, end))
    changes = [each for rows in parts for each in iterate_stream_changes(rows, database.name)]
    assert read == [(20, end)]
    twice = [(each.key["Id"], (each.new_values or {}).get("Twice")) for each in changes]
    first = {n: 6 if n < 5 else 2 for n in range(20) if n != 7}
    assert sorted(twice, key=str) == sorted(
        [*first.items(), (7, None), *((n, 6) for n in range(5))], key=str
    )
