"""An application that reads, in a transaction, what it has written there: with a commit timestamp
by DEFAULT and ON UPDATE that works, unless the server is asked for the worst that Spanner's
documentation allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import pytest
from fixtures.commands import run_command
from fixtures.singers import make_watchable
from google.api_core.exceptions import GoogleAPICallError
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from emulator.faults import Faults
from watcher.cli.emulator import STRICT

SetFaults = Callable[..., None]
Work = Callable[[Transaction], object]
TABLES = (
    "CREATE TABLE A (Id INT64, V STRING(9)) PRIMARY KEY (Id)",
    "CREATE INDEX AByV ON A(V)",
    "CREATE TABLE B (Id INT64) PRIMARY KEY (Id)",
)


def update(t: Transaction) -> object:
    return t.execute_update("UPDATE A SET V = 'u' WHERE Id = 1")


def insert(t: Transaction) -> object:
    return t.execute_update("INSERT INTO A (Id, V) VALUES (7, 'i')")


def delete(t: Transaction) -> object:
    return t.execute_update("DELETE FROM A WHERE Id = 1")


def copy(t: Transaction) -> object:
    return t.execute_update("INSERT INTO B (Id) SELECT Id FROM A")


def select(t: Transaction) -> object:
    return list(t.execute_sql("SELECT Id, V FROM A WHERE Id = 1"))


def select_by_index(t: Transaction) -> object:
    return list(t.execute_sql("SELECT Id FROM A@{FORCE_INDEX=AByV} WHERE V = 'u'"))


def read(t: Transaction) -> object:
    return list(t.read("A", ("Id", "V"), KeySet(keys=[[1]])))


def read_by_index(t: Transaction) -> object:
    return list(t.read("A", ("Id",), KeySet(keys=[["u"]]), index="AByV"))


def select_other(t: Transaction) -> object:
    return list(t.execute_sql("SELECT Id FROM B"))


def write_mutation(t: Transaction) -> object:
    t.update("A", ("Id", "V"), [(1, "m")])
    return None


def run(database: Database, *works: Work) -> str:
    """What a transaction of these comes to."""

    def transaction(t: Transaction) -> None:
        for work in works:
            work(t)

    try:
        database.run_in_transaction(transaction)
    except GoogleAPICallError as error:
        return str(error.message)
    return ""


READING: list[tuple[Work, ...]] = [
    *((update, second) for second in (select, select_by_index, read, read_by_index)),
    *((update, second) for second in (update, delete, copy)),
    (insert, select),
]
HARMLESS: list[tuple[Work, ...]] = [
    (select, update),
    (update, select_other),
    (update, insert),
    (write_mutation, select),
    (delete, select),
]


@pytest.mark.ddl(*TABLES)
def test_a_table_that_was_written_by_dml_can_be_read_unless_the_server_is_strict(
    database: Database, faults: SetFaults
) -> None:
    with database.batch() as batch:
        batch.insert("A", ("Id", "V"), [(1, "x"), (2, "y")])
    faults(strict_pending_timestamps=1)
    for works in READING:  # nothing is watched yet
        assert run(database, *works) == "", works
        reset(database)
    make_watchable(database, "A")
    faults()
    for works in READING:
        assert run(database, *works) == "", works
        reset(database)
    faults(strict_pending_timestamps=1)
    for works in READING:
        assert "a cannot be accessed" in run(database, *works), works
        reset(database)
    for harmless in HARMLESS:
        assert run(database, *harmless) == "", harmless
        reset(database)


def reset(database: Database) -> None:
    with database.batch() as batch:
        batch.delete("A", KeySet(all_=True))
        batch.delete("B", KeySet(all_=True))
        batch.insert("A", ("Id", "V"), [(1, "x"), (2, "y")])


def test_the_option_of_the_command_sets_a_fault() -> None:
    assert STRICT in {field.name for field in fields(Faults)}
    result = run_command("emulator", "--strict-pending-timestamps", "--fault", "none=1")
    assert result.returncode == 2
    assert "Unknown fault none" in result.stderr
