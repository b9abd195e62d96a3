"""Copies of databases while the server runs, and data directories made of them."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import grpc
import pytest
from fixtures.server import connect, spawn
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from emulator.copy_calls import COPY, SNAPSHOT
from emulator.data_directories import StartError, clear_directory, restore_directory
from emulator.process import ServerProcess, call_server

TABLE = "CREATE TABLE T (Id INT64 NOT NULL, V STRING(MAX)) PRIMARY KEY (Id)"


def insert(database: Database, *ids: int) -> object:
    with database.batch() as batch:
        batch.insert("T", ["Id"], [[each] for each in ids])
    return batch.committed


def read_ids(database: Database, **bound: object) -> list[int]:
    with database.snapshot(**bound) as snapshot:
        return [row[0] for row in snapshot.read("T", ["Id"], KeySet(all_=True))]


@pytest.mark.both_dialects
@pytest.mark.ddl(TABLE, "CREATE CHANGE STREAM S FOR ALL")
def test_a_copy_has_rows_versions_and_schema_and_is_apart(
    server: ServerProcess, database: Database
) -> None:
    before = insert(database, 1, 2)
    insert(database, 3)
    name = f"copy-{database.database_id[5:]}"
    call_server(server.address, COPY, {"database": database.name, "id": name})
    copy = connect(server.address).database(name)
    assert (read_ids(copy), read_ids(copy, read_timestamp=before)) == ([1, 2, 3], [1, 2])
    assert list_ddl(copy) == list_ddl(database)
    insert(copy, 4)
    insert(database, 5)
    copy.update_ddl(["DROP CHANGE STREAM S"]).result(30)
    assert (read_ids(copy), read_ids(database)) == ([1, 2, 3, 4], [1, 2, 3, 5])
    copy.drop()
    assert read_ids(database) == [1, 2, 3, 5]


@pytest.mark.ddl(TABLE)
@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"id": "x"}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"id": 7}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"more": "1"}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"database": "projects/test-project/instances/test-instance/databases/none"}, None),
    ],
)
def test_a_wrong_request_is_refused(
    server: ServerProcess,
    database: Database,
    changed: dict[str, object],
    code: grpc.StatusCode | None,
) -> None:
    request = {"database": database.name, "id": "never-made"} | changed
    with pytest.raises(grpc.RpcError) as refused:
        call_server(server.address, COPY, request)
    assert refused.value.code() is (code or grpc.StatusCode.NOT_FOUND)


def test_an_id_that_is_taken_is_refused(server: ServerProcess, database: Database) -> None:
    request = {"database": database.name, "id": database.database_id}
    with pytest.raises(grpc.RpcError) as refused:
        call_server(server.address, COPY, request)
    assert refused.value.code() is grpc.StatusCode.ALREADY_EXISTS


def list_ddl(database: Database) -> list[str]:
    database.reload()
    return list(database.ddl_statements)


def write_in_turn(databases: list[Database], stop: threading.Event) -> None:
    """Row n is in the first database before it is in the second one."""
    number = 0
    while not stop.is_set():
        number += 1
        for database in databases:
            insert(database, number)


@pytest.mark.parametrize("kept", [True, False], ids=["data directory", "memory"])
def test_a_snapshot_is_one_moment_of_all_databases(tmp_path: Path, kept: bool) -> None:
    snapshot, restored = tmp_path / "snapshot", tmp_path / "restored"
    with spawn(tmp_path / "data" if kept else None) as running:
        instance = connect(running.address)
        databases = [instance.database(name, ddl_statements=[TABLE]) for name in ("db1", "db2")]
        for database in databases:
            database.create().result(30)
        stop = threading.Event()
        writer = threading.Thread(target=write_in_turn, args=(databases, stop))
        writer.start()
        try:
            deadline = time.monotonic() + 30
            while not read_ids(databases[1]) and time.monotonic() < deadline:
                pass
            call_server(running.address, SNAPSHOT, {"directory": str(snapshot)})
        finally:
            stop.set()
            writer.join()
        with pytest.raises(grpc.RpcError, match="not empty"):
            call_server(running.address, SNAPSHOT, {"directory": str(snapshot)})
        later = read_ids(databases[0])
    restore_directory(snapshot, restored)
    with spawn(restored) as running:
        first, second = (connect(running.address).database(name) for name in ("db1", "db2"))
        here, there = read_ids(first), read_ids(second)
        assert there
        assert here in (there, [*there, len(there) + 1])
        assert here == later[: len(here)]
        with pytest.raises(StartError, match="another server uses"):
            clear_directory(restored)
    with pytest.raises(StartError, match="has databases"):
        restore_directory(snapshot, restored)
    (restored / "mine.txt").write_text("kept")
    clear_directory(restored)
    assert sorted(each.name for each in restored.iterdir()) == ["lock", "mine.txt"]
    with pytest.raises(StartError, match="not a snapshot"):
        restore_directory(restored, tmp_path / "other")
