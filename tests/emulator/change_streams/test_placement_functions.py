"""Functions that read a change stream by placement: each tells the changes of its placement's rows,
from partitions of its own, while partitions change, rows move, and placements come and go."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
from fixtures.placements import (
    DDL,
    PLACEMENTS,
    STREAM,
    PlacedWrites,
    in_commit_order,
    placed_versions,
)
from fixtures.singers import address_of
from fixtures.versions import PARTITION_MODES, with_each_mode
from google.api_core import exceptions
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.types import ChangeStreamRecord
from stream_reader import now, records

from emulator.engine.clock import Clock
from emulator.engine.database import Database as Engine
from watcher.captures.change_stream import (
    ChangeStreamCapture,
    find_stream,
    iterate_stream_changes,
)
from watcher.model.window import Window
from watcher.spanner.queries import QueryClient
from watcher.spanner.timestamps import to_micros
from watcher.tables.discovery import read_schema

IMMUTABLE, MUTABLE = PARTITION_MODES
SEEDS = int(os.environ.get("PLACEMENT_SEEDS", "1"))


def read_rows(
    database: Database, function: str, start: datetime, end: datetime, token: str | None = None
) -> list[Any]:
    """What a function answers."""
    sql = (
        f"SELECT ChangeRecord FROM READ_{function}(start_timestamp => @start,"
        " end_timestamp => @end, partition_token => @token, read_options => NULL,"
        " heartbeat_milliseconds => 1000)"
    )
    types = {
        "start": param_types.TIMESTAMP,
        "end": param_types.TIMESTAMP,
        "token": param_types.STRING,
    }
    with database.snapshot() as snapshot:
        params = {"start": start, "end": end, "token": token}
        return [row[0] for row in snapshot.execute_sql(sql, params=params, param_types=types)]


def read_messages(database: Database, function: str, *query: Any) -> list[Any]:
    """The same where the records are messages."""
    found = read_rows(database, function, *query)
    return [ChangeStreamRecord.pb().FromString(row) for row in found]


def list_roots(database: Database, function: str, mode: str, start: datetime) -> set[str]:
    """The tokens that a query without a token names."""
    if mode == MUTABLE:
        return {
            token
            for record in read_messages(database, function, start, now())
            for token in record.partition_start_record.partition_tokens
        }
    structs = records(database, function, start, now())
    return {token for _, _, children in structs for child in children for token, _ in child[2]}


def read_function(
    database: Database, function: str, begin: datetime, end: datetime
) -> dict[Any, Any]:
    """The versions of each row that a function tells of a window."""
    stream = find_stream(read_schema(database), "S", (), database.name)
    stream = replace(stream, placement_functions=(function,))
    capture = ChangeStreamCapture(QueryClient(address_of(database)), stream)
    window = Window(to_micros(begin), to_micros(end))
    changes = [
        change
        for rows in capture.read_window(window)
        for change in iterate_stream_changes(rows, "d")
    ]
    return placed_versions(changes)


@with_each_mode
@pytest.mark.parametrize("seed", range(SEEDS))
def test_each_function_tells_its_placement_while_partitions_change(
    create_placed_database: Callable[..., Database],
    faults: Callable[..., None],
    mode: str,
    seed: int,
) -> None:
    database = create_placed_database(*DDL, STREAM.format(mode))
    faults(change_stream_churn_seconds=0.02, seed=seed)
    begin = now()
    writes = PlacedWrites(database, seed)
    writes.write(150)
    end = now()
    assert writes.moves > 20
    for placement in PLACEMENTS:
        told = in_commit_order(read_function(database, f"S_{placement}", begin, end))
        assert told == writes.told_by(placement)
        assert told
    assert in_commit_order(read_function(database, "S", begin, end)) == writes.truth


@with_each_mode
def test_no_partition_belongs_to_two_placements(
    create_placed_database: Callable[..., Database], mode: str
) -> None:
    database = create_placed_database(*DDL, STREAM.format(mode))
    start = now()
    tokens = {each: list_roots(database, f"S_{each}", mode, start) for each in PLACEMENTS}
    assert all(tokens.values())
    assert sum(map(len, tokens.values())) == len(set().union(*tokens.values()))
    assert list_roots(database, "S", mode, start) == set().union(*tokens.values())
    for token in tokens["eu"]:
        assert read_rows(database, "s_EU", start, now(), token)
        assert read_rows(database, "S", start, now(), token)
        with pytest.raises(
            exceptions.InvalidArgument,
            match=f"Partition token {token} does not belong to the placement TVF READ_S_us",
        ):
            read_rows(database, "S_us", start, now(), token)


def test_a_row_that_moves_is_told_where_it_was_and_both_sides_say_so(
    create_placed_database: Callable[..., Database],
) -> None:
    database = create_placed_database(*DDL, STREAM.format(MUTABLE))
    start = now()
    with database.batch() as batch:
        batch.insert("T", ["Id", "Version", "Place"], [(1, 1, "eu")])
        batch.insert("C", ["Id", "Number", "Version"], [(1, 1, 2)])
    with database.batch() as moved:
        moved.update("T", ["Id", "Place"], [(1, "us")])
    with database.batch() as batch:
        batch.update("C", ["Id", "Number", "Version"], [(1, 1, 3)])
    told: dict[str, list[Any]] = {}
    tokens: dict[str, str] = {}
    for placement in ("eu", "us"):
        function = f"S_{placement}"
        for token in list_roots(database, function, MUTABLE, start):
            for record in read_messages(database, function, start, now(), token):
                kind = record.WhichOneof("record")
                if kind != "heartbeat_record":
                    told.setdefault(placement, []).append(getattr(record, kind))
                    tokens[placement] = token
    inserted, child, update, out = told["eu"]
    assert [inserted.table, child.table, update.table] == ["T", "C", "T"]
    assert update.ModType.Name(update.mod_type) == "UPDATE"
    (left,) = out.move_out_events
    assert left.destination_partition_token == tokens["us"]
    into, after = told["us"]
    (came,) = into.move_in_events
    assert came.source_partition_token == tokens["eu"]
    assert out.commit_timestamp == into.commit_timestamp == update.commit_timestamp
    assert after.table == "C"


def test_keys_move_with_rows_that_a_stream_does_not_show(
    create_placed_database: Callable[..., Database],
) -> None:
    """Only the table below is watched, and the transaction is excluded: the keys move all the
    same."""
    stream = (
        "CREATE CHANGE STREAM S FOR C OPTIONS (per_placement_tvf = true,"
        f" allow_txn_exclusion = true, partition_mode = '{MUTABLE}')"
    )
    database = create_placed_database(*DDL, stream)
    start = now()
    with database.batch() as batch:
        batch.insert("T", ["Id", "Version", "Place"], [(1, 1, "eu")])
        batch.insert("C", ["Id", "Number", "Version"], [(1, 1, 2)])
    database.execute_partitioned_dml(
        "UPDATE T SET Place = 'us' WHERE Id = 1", exclude_txn_from_change_streams=True
    )
    with database.batch() as batch:
        batch.update("C", ["Id", "Number", "Version"], [(1, 1, 3)])
    kinds = {
        placement: [
            record.WhichOneof("record")
            for token in list_roots(database, f"S_{placement}", MUTABLE, start)
            for record in read_messages(database, f"S_{placement}", start, now(), token)
            if record.WhichOneof("record") != "heartbeat_record"
        ]
        for placement in ("eu", "us")
    }
    assert kinds == {
        "eu": ["data_change_record", "partition_event_record"],
        "us": ["partition_event_record", "data_change_record"],
    }


@with_each_mode
def test_placements_come_and_go_while_a_stream_is_read(
    create_placed_database: Callable[..., Database], faults: Callable[..., None], mode: str
) -> None:
    database = create_placed_database(*DDL, STREAM.format(mode))
    faults(change_stream_churn_seconds=0.02, seed=4)
    begin = now()
    writes = PlacedWrites(database, 4)
    writes.write(40)
    database.update_ddl(["CREATE PLACEMENT asia OPTIONS (instance_partition = 'asia')"]).result(30)
    writes.placements.append("asia")
    writes.write(80)
    asia = writes.told_by("asia")
    assert asia
    # The function tells everything of its placement, though the window began before it.
    assert in_commit_order(read_function(database, "S_asia", begin, now())) == asia
    assert in_commit_order(read_function(database, "S", begin, now())) == writes.truth
    writes.leave("asia")
    with database.snapshot() as snapshot:
        left = list(snapshot.execute_sql("SELECT COUNT(*) FROM T WHERE Place = 'asia'"))
    assert left == [[0]]
    database.update_ddl(["DROP PLACEMENT asia"]).result(30)
    writes.write(20)
    end = now()
    with pytest.raises(exceptions.InvalidArgument, match="function not found: READ_S_asia"):
        read_rows(database, "S_asia", begin, end)
    for placement in PLACEMENTS:
        told = in_commit_order(read_function(database, f"S_{placement}", begin, end))
        assert told == writes.told_by(placement)
    assert in_commit_order(read_function(database, "S", begin, end)) == writes.truth
    database.update_ddl(["CREATE PLACEMENT asia OPTIONS (instance_partition = 'asia')"]).result(30)
    with database.batch() as batch:
        batch.insert("T", ["Id", "Version", "Place"], [(100, 0, "asia")])
    again = read_function(database, "S_asia", begin, now())
    assert again.pop(("T", (100,)))
    assert in_commit_order(again) == writes.told_by("asia")


def test_an_open_query_ends_with_its_placement(
    create_placed_database: Callable[..., Database],
) -> None:
    database = create_placed_database(*DDL, STREAM.format(IMMUTABLE))
    start = now()
    (token, *_) = list_roots(database, "S_eu", IMMUTABLE, start)
    query = records(database, "S_eu", start, None, token)
    assert next(query)[1]  # a heartbeat: the query is open
    database.update_ddl(["DROP PLACEMENT eu"]).result(30)
    assert all(beats and not children for _, beats, children in query)


def test_the_catalog_lists_the_functions(
    create_placed_database: Callable[..., Database],
) -> None:
    database = create_placed_database(*DDL, STREAM.format(MUTABLE), "CREATE CHANGE STREAM R FOR T")
    with database.snapshot(multi_use=True) as snapshot:
        names = [
            name
            for (name,) in snapshot.execute_sql(
                "SELECT ROUTINE_NAME FROM INFORMATION_SCHEMA.ROUTINES ORDER BY 1"
            )
        ]
        assert names == ["READ_R", "READ_S", "READ_S_default", "READ_S_eu", "READ_S_us"]
        parameters = list(
            snapshot.execute_sql(
                "SELECT SPECIFIC_NAME, COUNT(*) FROM INFORMATION_SCHEMA.PARAMETERS GROUP BY 1"
                " ORDER BY 1"
            )
        )
    assert parameters == [[name, 5] for name in names]


def test_the_option_is_true_or_false_and_stays(
    create_placed_database: Callable[..., Database],
) -> None:
    database = create_placed_database(*DDL, STREAM.format(MUTABLE), "CREATE CHANGE STREAM R FOR T")
    for stream, value in (("S", "false"), ("S", "NULL"), ("R", "true")):
        change = f"ALTER CHANGE STREAM {stream} SET OPTIONS (per_placement_tvf = {value})"
        with pytest.raises(exceptions.FailedPrecondition, match=r"per_placement_tvf .* cannot be"):
            database.update_ddl([change]).result(30)
    wrong = "CREATE CHANGE STREAM X FOR T OPTIONS (per_placement_tvf = 'yes')"
    with pytest.raises(exceptions.FailedPrecondition, match="can only take bool_value"):
        database.update_ddl([wrong]).result(30)
    with pytest.raises(exceptions.FailedPrecondition, match=r"in schema: READ_S_eu"):
        database.update_ddl(["CREATE CHANGE STREAM S_eu FOR T"]).result(30)
    with pytest.raises(exceptions.InvalidArgument, match="function not found: READ_R_eu"):
        read_rows(database, "R_eu", now(), now())


def test_partitions_of_a_data_directory_from_before_have_no_placement(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    statements = [
        "CREATE TABLE T (Id INT64) PRIMARY KEY (Id)",
        "CREATE CHANGE STREAM S FOR T",
    ]
    engine = Engine("d", path, Clock())
    engine.update_ddl(statements)
    engine.close()
    connection = apsw.Connection(str(path))
    connection.execute('ALTER TABLE "$partitions" DROP COLUMN placement')
    connection.close()
    engine = Engine("d", path, Clock())
    try:
        assert {p.placement for p in engine.change_streams.partitions("S")} == {""}
        engine.churn_streams(random.Random(1))
        assert {p.placement for p in engine.change_streams.partitions("S")} == {""}
    finally:
        engine.close()
