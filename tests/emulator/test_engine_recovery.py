"""kill -9 under load: every acknowledged commit is there, none by half, and time goes on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from fixtures.engine_world import (
    INSERT,
    NAME,
    UPSERT,
    WATCHED,
    exact_bound,
    open_database,
    query,
    write,
)
from fixtures.warm_python import WarmProcess

from emulator.engine.clock import Clock
from emulator.engine.database import Database

KILLS = int(os.environ.get("ENGINE_KILLS", "15"))

LOAD = """
import sys, threading
from pathlib import Path
from emulator.engine.clock import Clock
from emulator.engine.database import Database
from emulator.values.requests import MutationKind, RowWrite

database = Database(sys.argv[1], Path(sys.argv[2]), Clock())
first = int(sys.argv[3])
out = threading.Lock()

def work(number):
    for n in range(first, first + 100_000):
        if n % 20 == 19:
            transaction = database.read_write()
            statement = transaction.state.compile(
                f"UPDATE Singers SET Name = '{n}' WHERE SingerId BETWEEN {number * 10} "
                f"AND {number * 10 + 4}", {})
            transaction.execute_dml(statement, {})
            committed = transaction.commit([])
        else:
            rows = [(number * 10 + i, str(n)) for i in range(5)]
            committed = database.write([
                RowWrite(MutationKind.INSERT_OR_UPDATE, "Singers", ("SingerId", "Name"), rows)])
        with out:
            print(number, n, committed.commit_timestamp_micros, flush=True)

for number in range(3):
    threading.Thread(target=work, args=(number,), daemon=True).start()
threading.Event().wait()
"""


def kill_under_load(path: Path, first: int, lines: int) -> list[tuple[int, int, int]]:
    """What a process acknowledged before it was killed in the middle of its work."""
    process = WarmProcess(["-c", LOAD, NAME, str(path), str(first)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        head = [process.stdout.readline() for _ in range(lines)]
    finally:
        process.kill()
    rest = process.stdout.read().split("\n")
    process.wait()
    complete = [line for line in [*head, *rest[:-1]] if line.count(" ") == 2]
    return [tuple(map(int, line.split())) for line in complete]  # type: ignore[misc]


def check(database: Database, acknowledged: list[tuple[int, int, int]]) -> None:
    """The rows of a writer hold one number, the last acknowledged or a later one."""
    for number in range(3):
        own = [(n, micros) for who, n, micros in acknowledged if who == number]
        low = number * 10
        where = f"WHERE SingerId BETWEEN {low} AND {low + 4}"
        rows = query(database, f"SELECT Name, ChangedAt FROM Singers {where}")
        if own:
            assert len(rows) == 5
            assert int(str(rows[0][0])) >= own[-1][0]
        assert len(set(rows)) <= 1, "half of a commit"
        for n, micros in own[-20:]:
            then = query(database, f"SELECT Name FROM Singers {where}", exact_bound(micros))
            assert then == [(str(n),)] * 5


@pytest.mark.parametrize("lines", [1, 40, 400])
def test_every_acknowledged_commit_survives_a_kill(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "d.sqlite"
    with open_database(*WATCHED, path=path):
        pass
    acknowledged = kill_under_load(path, 0, lines)
    assert len(acknowledged) >= lines
    with open_database(path=path) as database:
        check(database, acknowledged)
        committed = write(database, UPSERT, "Singers", "SingerId", (1000,))
        assert committed.commit_timestamp_micros > max(micros for _, _, micros in acknowledged)


def test_many_kills_of_the_same_database(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    with open_database(*WATCHED, path=path):
        pass
    acknowledged: list[tuple[int, int, int]] = []
    for turn in range(KILLS):
        acknowledged += kill_under_load(path, turn * 1_000_000, 1 + turn * 5)
        with open_database(path=path) as database:
            check(database, acknowledged)


def test_the_schema_survives_and_can_be_changed_again(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    with open_database(*WATCHED, path=path) as database:
        before = database.ddl()
        write(database, UPSERT, "Singers", "SingerId Name", (1, "a"))
    with open_database("ALTER TABLE Singers ADD COLUMN Age INT64", path=path) as database:
        assert len(database.ddl()) == len(before)
        assert query(database, "SELECT SingerId, Name, Age FROM Singers") == [(1, "a", None)]


def test_commit_timestamps_do_not_go_back_when_the_clock_does(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    ahead = Clock(wall=lambda: 4_000_000_000_000_000)
    database = Database(NAME, path, ahead)
    database.update_ddl(WATCHED)
    last = write(database, UPSERT, "Singers", "SingerId", (1,)).commit_timestamp_micros
    database.close()
    with open_database(path=path) as database:
        again = write(database, UPSERT, "Singers", "SingerId", (2,))
        assert again.commit_timestamp_micros > last


def test_a_dropped_database_leaves_no_file(tmp_path: Path) -> None:
    database = Database(NAME, tmp_path / "d.sqlite", Clock())
    database.update_ddl(WATCHED)
    database.drop()
    assert list(tmp_path.iterdir()) == []


def test_identity_values_are_not_drawn_twice(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    ddl = (
        "CREATE TABLE T (Id INT64 GENERATED BY DEFAULT AS IDENTITY (BIT_REVERSED_POSITIVE), "
        "V INT64) PRIMARY KEY (Id)"
    )
    with open_database(ddl, path=path) as database:
        write(database, INSERT, "T", "V", (1,), (2,))
    with open_database(path=path) as database:
        write(database, INSERT, "T", "V", (3,), (4,))
        assert query(database, "SELECT COUNT(DISTINCT Id) FROM T") == [(4,)]
