"""Streams whose partitions live on while keys move between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.types import ChangeStreamRecord
from stream_reader import now
from test_lineage import TABLE, StreamWorld, Version

STREAM = "CREATE CHANGE STREAM S FOR T OPTIONS (partition_mode = 'MUTABLE_KEY_RANGE')"
SQL = (
    "SELECT * FROM READ_S(start_timestamp => @start, end_timestamp => @end,"
    " partition_token => @token, read_options => NULL, heartbeat_milliseconds => 1000)"
)
TYPES = {
    "start": param_types.TIMESTAMP,
    "end": param_types.TIMESTAMP,
    "token": param_types.STRING,
}
MICROSECOND = timedelta(microseconds=1)


def read(
    database: Database, start: datetime, end: datetime | None, token: str | None = None
) -> list[Any]:
    """The records of a query, as messages."""
    with database.snapshot() as snapshot:
        params = {"start": start, "end": end, "token": token}
        result = snapshot.execute_sql(SQL, params=params, param_types=TYPES)
        rows = [row[0] for row in result]
        assert result.fields[0].type_.proto_type_fqn == "google.spanner.v1.ChangeStreamRecord"
    return [ChangeStreamRecord.pb().FromString(row) for row in rows]


def time_of(stamp: Any) -> datetime:
    """A timestamp of a record."""
    value: datetime = stamp.ToDatetime(now().tzinfo)
    return value


@dataclass
class Contents:
    """What a reader of all partitions saw."""

    changes: dict[int, list[Version]] = field(default_factory=dict)
    moves_in: set[tuple[datetime, str, str]] = field(default_factory=set)
    moves_out: set[tuple[datetime, str, str]] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    tokens: set[str] = field(default_factory=set)

    def add(self, token: str, record: Any) -> None:
        """Takes a record of a partition in."""
        kind = record.WhichOneof("record")
        if kind == "data_change_record":
            self.add_changes(record.data_change_record)
        elif kind == "partition_event_record":
            event = record.partition_event_record
            assert event.partition_token == token
            at = time_of(event.commit_timestamp)
            self.moves_in |= {(at, e.source_partition_token, token) for e in event.move_in_events}
            self.moves_out |= {
                (at, token, e.destination_partition_token) for e in event.move_out_events
            }
        elif kind == "partition_end_record":
            assert record.partition_end_record.partition_token == token
            self.ended.add(token)

    def add_changes(self, data: Any) -> None:
        """Takes the changes of a data change record in."""
        names = [column.name for column in data.column_metadata]
        at, mod_type = time_of(data.commit_timestamp), data.ModType.Name(data.mod_type)
        for mod in data.mods:
            keys = {names[v.column_metadata_index]: v.value.string_value for v in mod.keys}
            new = {names[v.column_metadata_index]: v.value.string_value for v in mod.new_values}
            version = int(new["Version"]) if new.get("Version") else None
            self.changes.setdefault(int(keys["Id"]), []).append((at, mod_type, version))


def read_all(database: Database, start: datetime, end: datetime) -> Contents:
    """Everything of a window, from every partition that is announced."""
    contents = Contents()
    waiting: list[tuple[str, datetime]] = []

    def announce(record: Any) -> None:
        started = record.partition_start_record
        for token in started.partition_tokens:
            assert token not in contents.tokens
            contents.tokens.add(token)
            waiting.append((token, time_of(started.start_timestamp)))

    for record in read(database, start, end):
        announce(record)
    while waiting:
        token, began = waiting.pop()
        for record in read(database, began, end, token):
            assert token not in contents.ended
            announce(record)
            contents.add(token, record)
    return contents


@pytest.mark.ddl(TABLE, STREAM)
def test_every_version_is_read_once_while_keys_move(
    database: Database, faults: Callable[..., None]
) -> None:
    faults(change_stream_churn_seconds=0.02, seed=5)
    start = now()
    world = StreamWorld(database, 5)
    while True:
        world.write(60)
        contents = read_all(database, start, now())
        for versions in contents.changes.values():
            versions.sort(key=lambda version: version[0])
        assert contents.changes == world.truth
        assert contents.moves_in == contents.moves_out
        if len(contents.tokens) > 5 and contents.ended and len(contents.moves_in) > 5:
            return


@pytest.mark.ddl(TABLE, STREAM)
def test_a_record_tells_columns_and_values(database: Database) -> None:
    start = now()
    with database.batch() as batch:
        batch.insert("T", ["Id", "Version"], [(1, None), (2, 7)])
    (first,) = read(database, start, now())
    data = [
        record.data_change_record
        for token in first.partition_start_record.partition_tokens
        for record in read(database, start, now(), token)
        if record.WhichOneof("record") == "data_change_record"
    ]
    assert sum(len(record.mods) for record in data) == 2
    for record in data:
        assert record.table == "T"
        assert time_of(record.commit_timestamp) == batch.committed
        columns = [(c.name, c.type_.code, c.is_primary_key) for c in record.column_metadata]
        assert columns == [("Id", 2, True), ("Version", 2, False)]
        for mod in record.mods:
            assert mod.new_values[0].value.WhichOneof("kind") in {"null_value", "string_value"}


@pytest.mark.ddl(TABLE, STREAM)
def test_a_query_ends_within_half_an_hour(database: Database) -> None:
    start = now()
    with pytest.raises(exceptions.InvalidArgument, match="end_timestamp must not be null"):
        read(database, start, None)
    with pytest.raises(exceptions.OutOfRange, match="30 minutes"):
        read(database, start, start + timedelta(minutes=31))
    assert read(database, start, start + timedelta(minutes=29))


@pytest.mark.ddl(TABLE, STREAM)
def test_the_mode_of_a_stream_stays(database: Database) -> None:
    change = "ALTER CHANGE STREAM S SET OPTIONS (partition_mode = 'IMMUTABLE_KEY_RANGE')"
    with pytest.raises(exceptions.FailedPrecondition, match="partition_mode"):
        database.update_ddl([change]).result(30)
    wrong = "CREATE CHANGE STREAM S2 FOR T OPTIONS (partition_mode = 'NONE')"
    with pytest.raises(exceptions.FailedPrecondition, match="Invalid partition_mode"):
        database.update_ddl([wrong]).result(30)
    database.update_ddl(["ALTER CHANGE STREAM S SET OPTIONS (retention_period = '2d')"]).result(30)
