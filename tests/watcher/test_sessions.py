"""What a lost session is taken for: one of a database that was dropped and made again is replaced,
a database that is gone ends a run, and a table that is not there is an error at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fixtures.consumers import options, write
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, make_watchable
from fixtures.watcher_threads import ChangeCollector, run_without_error
from google.api_core.exceptions import NotFound
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.instance import Instance

from watcher import Change, Watcher
from watcher.cli.failures import explain_error
from watcher.model.errors import DatabaseNotFoundError
from watcher.spanner.database import open_database
from watcher.spanner.failures import FailureKind, classify_error
from watcher.spanner.queries import QueryClient
from watcher.spanner.sessions import SharedSession
from watcher.spanner.sql import Statement

GONE = [
    "Session not found: projects/p/instances/in/databases/db/sessions/s",
    "Database not found: projects/p/instances/in/databases/db",
]
OTHERS_GONE = [
    "Table not found: Sessions",
    "Table not found: session_not_found",
    "Index not found on table Sessions: BySession",
    "Instance not found: projects/p/instances/sessions",
    "Transaction not found: 7",
]


@pytest.fixture
def database(instance: Instance) -> Iterator[Database]:
    """A database that a test drops, and may create again."""
    own = instance.database("dropped-and-made-again", ddl_statements=[SINGERS])
    own.create().result(30)
    yield own
    if own.exists():
        own.drop()


def make_again(database: Database) -> None:
    """Another database of the same name, with the same tables."""
    database.drop()
    other = database._instance.database(database.database_id, ddl_statements=[SINGERS])
    other.create().result(30)


def test_a_query_goes_on_in_a_database_that_was_made_again(database: Database) -> None:
    stream = QueryClient(address_of(database)).stream
    count = Statement("SELECT COUNT(*) FROM Singers")
    assert stream.query_numbers(count, None)[1] == [0]
    make_again(database)
    assert stream.query_numbers(count, None)[1] == [0]


def test_a_query_of_a_database_that_is_gone_is_an_error(database: Database) -> None:
    stream = QueryClient(address_of(database)).stream
    stream.query_numbers(Statement("SELECT 1"), None)
    database.drop()
    with pytest.raises(NotFound, match="Database not found"):
        stream.query_numbers(Statement("SELECT 1"), None)


def test_a_watcher_with_positions_elsewhere_goes_on_in_a_database_that_was_made_again(
    database: Database, create_database: CreateDatabase
) -> None:
    elsewhere = {"database": str(address_of(create_database()))}
    make_watchable(database)
    write(database, 1)
    seen = ChangeCollector()

    def replace_once(change: Change) -> None:
        if change.key["SingerId"] == 1:
            make_again(database)
            make_watchable(open_database(address_of(database)))
        seen(change)

    watcher = Watcher(**options(database, consumer="orders", start="earliest", positions=elsewhere))
    watcher.on_change(replace_once)
    with run_without_error(watcher):
        seen.wait(1)
        write(open_database(address_of(database)), 2)
        seen.wait(2)
    assert [change.key["SingerId"] for change in seen.changes] == [1, 2]


@pytest.mark.parametrize("message", GONE)
def test_a_session_that_is_gone_is_replaced(message: str, database: Database) -> None:
    session = SharedSession(database)
    first = session.name
    session.forget(first, NotFound(message))
    assert session.name != first


@pytest.mark.parametrize("message", OTHERS_GONE)
def test_what_else_is_gone_is_an_error_at_once(message: str, database: Database) -> None:
    session = SharedSession(database)
    first = session.name
    with pytest.raises(NotFound):
        session.forget(first, NotFound(message))
    assert session.name == first
    assert classify_error(NotFound(message)) is not FailureKind.SESSION


def test_a_command_says_that_its_database_does_not_exist() -> None:
    assert isinstance(explain_error(NotFound(GONE[1])), DatabaseNotFoundError)
