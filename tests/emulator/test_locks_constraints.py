"""What constraints look at is locked, too: unique indexes, parents, referenced rows."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest
from fixtures.engine_world import INSERT, UPDATE, delete, open_database, query, run_dml, write
from fixtures.lock_world import Waiting, refuse_commit

from emulator.engine.database import Database
from emulator.errors import SpannerError
from emulator.values.requests import RowWrite

TABLES = (
    "CREATE TABLE P (K INT64 NOT NULL, N INT64, Code STRING(9)) PRIMARY KEY (K)",
    "CREATE UNIQUE INDEX ByCode ON P (Code)",
    "CREATE TABLE C (K INT64 NOT NULL, Sub INT64 NOT NULL) PRIMARY KEY (K, Sub), "
    "INTERLEAVE IN PARENT P ON DELETE CASCADE",
    "CREATE TABLE R (Id INT64 NOT NULL, PK INT64, "
    "CONSTRAINT ToP FOREIGN KEY (PK) REFERENCES P (K)) PRIMARY KEY (Id)",
)


@pytest.fixture
def database() -> Iterator[Database]:
    with open_database(*TABLES) as opened:
        write(opened, INSERT, "P", "K N Code", *((k, 0, f"code{k}") for k in range(1, 4)))
        yield opened


def refused(error: pytest.ExceptionInfo[SpannerError]) -> grpc.StatusCode:
    """How a statement or a commit was refused."""
    return error.value.code


def test_two_cannot_insert_the_same_unique_value(database: Database) -> None:
    older, younger = database.read_write(), database.read_write()
    run_dml(older, "INSERT INTO P (K, Code) VALUES (10, 'new')")
    waiting = Waiting(
        database, lambda: run_dml(younger, "INSERT INTO P (K, Code) VALUES (11, 'new')")
    )
    run_dml(older, "INSERT INTO P (K, Code) VALUES (12, 'other')")
    older.commit([])
    with pytest.raises(SpannerError) as error:
        waiting.end()
    assert refused(error) is grpc.StatusCode.ALREADY_EXISTS
    assert query(database, "SELECT K FROM P WHERE K > 9 ORDER BY K") == [(10,), (12,)]


def test_a_unique_value_that_an_older_one_gives_up_is_waited_for(database: Database) -> None:
    older, younger = database.read_write(), database.read_write()
    run_dml(older, "UPDATE P SET Code = 'free' WHERE K = 1")
    update = "UPDATE P SET Code = 'free' WHERE K = 2"
    waiting = Waiting(database, lambda: run_dml(younger, update))
    older.rollback()
    waiting.end()
    younger.commit([])
    assert query(database, "SELECT K FROM P WHERE Code = 'free'") == [(2,)]


def test_a_unique_value_of_a_mutation_is_waited_for(database: Database) -> None:
    older = database.read_write()
    run_dml(older, "UPDATE P SET Code = 'mine' WHERE K = 1")
    waiting = Waiting(database, lambda: write(database, UPDATE, "P", "K Code", (2, "mine")))
    older.commit([])
    with pytest.raises(SpannerError) as error:
        waiting.end()
    assert refused(error) is grpc.StatusCode.ALREADY_EXISTS


def test_other_unique_values_do_not_wait(database: Database) -> None:
    older, younger = database.read_write(), database.read_write()
    run_dml(younger, "INSERT INTO P (K, Code) VALUES (10, 'ten')")
    run_dml(older, "INSERT INTO P (K, Code) VALUES (11, 'eleven')")
    younger.commit([])
    older.commit([])
    assert query(database, "SELECT COUNT(*) FROM P") == [(5,)]


@pytest.mark.parametrize(
    ("insert", "table"),
    [
        ("INSERT INTO C (K, Sub) VALUES (1, 1)", "C"),
        ("INSERT INTO R (Id, PK) VALUES (1, 1)", "R"),
    ],
    ids=["interleaved", "foreign key"],
)
def test_a_parent_cannot_go_while_a_child_comes(
    database: Database, insert: str, table: str
) -> None:
    older, younger = database.read_write(), database.read_write()
    run_dml(younger, insert)
    run_dml(older, "DELETE FROM P WHERE K = 1")
    refuse_commit(younger)
    older.commit([])
    third = database.read_write()
    run_dml(third, insert.replace("1, 1", "2, 2"))
    waiting = Waiting(database, lambda: delete(database, "P", (2,)))
    third.commit([])
    if table == "R":
        with pytest.raises(SpannerError) as error:
            waiting.end()
        assert refused(error) is grpc.StatusCode.FAILED_PRECONDITION
        return
    waiting.end()
    assert query(database, "SELECT COUNT(*) FROM C") == [(0,)]


@pytest.mark.parametrize("table", ["C", "R"])
def test_a_child_that_a_mutation_inserts_waits_for_its_parents_end(
    database: Database, table: str
) -> None:
    older = database.read_write()
    run_dml(older, "DELETE FROM P WHERE K = 1")
    columns = ("K", "Sub") if table == "C" else ("Id", "PK")
    mutation = RowWrite(INSERT, table, columns, [(1, 1)])
    waiting = Waiting(database, lambda: database.write([mutation]))
    older.commit([])
    with pytest.raises(SpannerError):
        waiting.end()
    assert query(database, f"SELECT COUNT(*) FROM {table}") == [(0,)]


def test_a_child_may_come_while_its_parent_is_updated(database: Database) -> None:
    older, younger = database.read_write(), database.read_write()
    run_dml(younger, "INSERT INTO C (K, Sub) VALUES (1, 1)")
    run_dml(younger, "INSERT INTO R (Id, PK) VALUES (1, 1)")
    run_dml(older, "UPDATE P SET N = 1 WHERE K = 1")
    younger.commit([])
    older.commit([])
    assert query(database, "SELECT P.N, C.Sub FROM P JOIN C ON P.K = C.K") == [(1, 1)]


def test_a_cascade_waits_for_an_older_child(database: Database) -> None:
    write(database, INSERT, "C", "K Sub", (1, 1))
    older, younger = database.read_write(), database.read_write()
    assert run_dml(older, "DELETE FROM C WHERE K = 1 AND Sub = 1").row_count == 1
    waiting = Waiting(database, lambda: run_dml(younger, "DELETE FROM P WHERE K = 1"))
    older.rollback()
    waiting.end()
    younger.commit([])
    assert query(database, "SELECT COUNT(*) FROM C") == [(0,)]
