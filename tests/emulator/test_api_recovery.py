"""A server with a data directory: killed with -9, started again, nothing acknowledged is lost."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from fixtures.server import connect, spawn
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

TABLE = "CREATE TABLE T (K INT64 NOT NULL, V STRING(MAX)) PRIMARY KEY (K)"
ROWS_IN_COMMIT = 5
WRITERS = 4
KILLS = int(os.environ.get("EMULATOR_KILLS", "6"))


@pytest.fixture(autouse=True)
def _keep_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANNER_EMULATOR_HOST", "")


def write(database: Database, writer: int, acknowledged: list[int], stop: threading.Event) -> None:
    """Commits of five rows each; a commit's number is kept once it is acknowledged.

    The client tries again by itself while the server is away.
    """
    number = writer
    while not stop.is_set():
        keys = range(number * ROWS_IN_COMMIT, (number + 1) * ROWS_IN_COMMIT)
        with database.batch() as batch:
            batch.insert_or_update("T", ("K", "V"), [(k, "x" * 50) for k in keys])
        acknowledged.append(number)
        number += WRITERS


def read_commits(database: Database) -> dict[int, int]:
    """How many rows there are of each commit."""
    commits: dict[int, int] = {}
    with database.snapshot() as snapshot:
        for (key,) in snapshot.read("T", ("K",), KeySet(all_=True)):
            commits[key // ROWS_IN_COMMIT] = commits.get(key // ROWS_IN_COMMIT, 0) + 1
    return commits


def test_kill_under_load_loses_no_acknowledged_commit_and_leaves_no_half(tmp_path: Path) -> None:
    acknowledged: list[list[int]] = [[] for _ in range(WRITERS)]
    stop = threading.Event()
    server = spawn(tmp_path)
    port = int(server.address.rpartition(":")[2])
    database = connect(server.address).database("recovery", ddl_statements=[TABLE])
    database.create().result(30)
    writers = [
        threading.Thread(target=write, args=(database, n, acknowledged[n], stop))
        for n in range(WRITERS)
    ]
    for writer in writers:
        writer.start()
    try:
        for _ in range(KILLS):
            goal = sum(map(len, acknowledged)) + 200
            while sum(map(len, acknowledged)) < goal:
                writers[0].join(0.01)
            server.kill()
            acknowledged_commits = {number for numbers in acknowledged for number in numbers}
            server = spawn(tmp_path, port)
            commits = read_commits(database)
            assert set(commits.values()) == {ROWS_IN_COMMIT}
            assert acknowledged_commits <= set(commits)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
        server.terminate()


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    with spawn(tmp_path) as server:
        database = connect(server.address).database("kept-here", ddl_statements=[TABLE])
        database.create().result(30)
        database.update_ddl(["ALTER TABLE T ADD COLUMN W INT64"], operation_id="kept").result(30)
        with database.batch() as batch:
            batch.insert("T", ("K", "V", "W"), [(1, "a", 2)])
        server.kill()
    with spawn(tmp_path) as server:
        database = connect(server.address).database("kept-here")
        database.reload()
        assert "W INT64" in database.ddl_statements[0]
        assert [o.operation.name.rpartition("/")[2] for o in database.list_database_operations()][
            -1:
        ]
        with database.snapshot(read_timestamp=batch.committed) as snapshot:
            assert list(snapshot.read("T", ("K", "V", "W"), KeySet(all_=True))) == [[1, "a", 2]]
        with database.batch() as later:
            later.delete("T", KeySet(all_=True))
        assert later.committed > batch.committed


def test_two_servers_do_not_share_a_directory(tmp_path: Path) -> None:
    with spawn(tmp_path), pytest.raises(RuntimeError, match="did not start"):
        spawn(tmp_path)


def test_a_transaction_of_a_server_that_is_gone_is_aborted(tmp_path: Path) -> None:
    server = spawn(tmp_path)
    port = int(server.address.rpartition(":")[2])
    database = connect(server.address).database("recovery", ddl_statements=[TABLE])
    database.create().result(30)
    tries: list[int] = []

    def work(transaction: Transaction) -> None:
        nonlocal server
        tries.append(1)
        transaction.execute_update(f"INSERT INTO T (K, V) VALUES (1, 'try {len(tries)}')")
        if len(tries) == 1:
            server.kill()
            server = spawn(tmp_path, port)

    try:
        database.run_in_transaction(work)
        with database.snapshot() as snapshot:
            assert list(snapshot.read("T", ("K", "V"), KeySet(all_=True))) == [[1, "try 2"]]
    finally:
        server.terminate()
