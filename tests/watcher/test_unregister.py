"""Unregistering a consumer, or tables that it does not watch any more, in one transaction."""

from __future__ import annotations

import pytest
from fixtures.consumers import consumers_of
from fixtures.selections import store_selection
from fixtures.server import CreateDatabase
from fixtures.singers import address_of
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from typer.testing import CliRunner

from ddl.migration.apply import read_schema
from watcher.cli import app
from watcher.consumers.positions import (
    TABLE,
    Position,
    SpannerPositions,
    backfills_table,
    consumers_table,
    create_own_tables,
)
from watcher.consumers.positions.unregister import unregister
from watcher.consumers.states import ConsumerProgress, State
from watcher.model.errors import ConfigurationError, LeaseHeldError, LeaseLostError

TABLES = ("Albums", "Singers", "Songs")


@pytest.fixture
def consumer_database(create_database: CreateDatabase) -> Database:
    """A consumer "worker" with positions and backfills in three tables, and one more consumer."""
    database: Database = create_database("CREATE TABLE Other (Id INT64) PRIMARY KEY (Id)")
    create_own_tables(database, TABLE)
    positions = SpannerPositions(database)
    for consumer in ("worker", "worker2"):
        store_selection(database, consumer, ["*"], ["Songs"])
        for table in TABLES:
            positions.save(Position(consumer, table, 5), None)
        columns = ("Consumer", "WatchedTable", "Progress")
        with database.batch() as batch:
            rows = [(consumer, table, "{}") for table in TABLES]
            batch.insert(backfills_table(TABLE), columns, rows)
    return database


def kept(database: Database, consumer: str = "worker") -> tuple[set[str], set[str], bool]:
    """Tables with positions, tables with backfills, and whether the consumer is listed."""
    with database.snapshot() as snapshot:
        rows = snapshot.read(
            backfills_table(TABLE), ("Consumer", "WatchedTable"), KeySet(all_=True)
        )
        backfills = {row[1] for row in rows if row[0] == consumer}
    positions = set(SpannerPositions(database).load_all(consumer))
    return positions, backfills, consumers_of(database).status(consumer) is not None


def test_a_consumer_goes_whole_and_no_other_with_it(consumer_database: Database) -> None:
    assert set(unregister(consumer_database, TABLE, "worker")["worker"]) == set(TABLES)
    assert kept(consumer_database) == (set(), set(), False)
    assert kept(consumer_database, "worker2") == (set(TABLES), set(TABLES), True)
    assert unregister(consumer_database, TABLE, "worker") == {}


def test_single_tables_go_and_the_rest_stays(consumer_database: Database) -> None:
    removed = unregister(consumer_database, TABLE, "worker", ["albums", "Albums"])
    assert removed == {"worker": ("Albums",)}
    assert kept(consumer_database) == ({"Singers", "Songs"}, {"Singers", "Songs"}, True)


def test_with_its_last_position_a_consumer_goes_whole(consumer_database: Database) -> None:
    """Else clearing would wait for it to register again."""
    unregister(consumer_database, TABLE, "worker", TABLES)
    assert kept(consumer_database) == (set(), set(), False)


def test_a_table_without_a_position_is_refused_by_name(consumer_database: Database) -> None:
    with pytest.raises(ConfigurationError, match="has no position in table Elsewhere;"):
        unregister(consumer_database, TABLE, "worker", ["Singers", "Elsewhere"])
    assert kept(consumer_database) == (set(TABLES), set(TABLES), True)


def test_a_live_consumer_loses_only_tables_that_it_does_not_watch(
    consumer_database: Database,
) -> None:
    lease = consumers_of(consumer_database).acquire("worker", 60.0)
    store_selection(consumer_database, "worker", ["*"], ["Songs"])
    for tables in (None, ["Singers"], ["Songs", "Singers"]):
        with pytest.raises(LeaseHeldError, match="consumer 'worker' is alive"):
            unregister(consumer_database, TABLE, "worker", tables)
    assert kept(consumer_database) == (set(TABLES), set(TABLES), True)
    assert unregister(consumer_database, TABLE, "worker", ["Songs"]) == {"worker": ("Songs",)}
    assert kept(consumer_database) == ({"Albums", "Singers"}, {"Albums", "Singers"}, True)
    consumers_of(consumer_database).renew(lease, State.RUNNING, ConsumerProgress())


def test_a_live_consumer_that_stores_no_selection_keeps_every_table(
    consumer_database: Database,
) -> None:
    consumers_of(consumer_database).acquire("worker", 60.0)
    with consumer_database.batch() as batch:
        batch.update(consumers_table(TABLE), ("Consumer", "Selection"), [("worker", None)])
    with pytest.raises(LeaseHeldError, match="watches Songs"):
        unregister(consumer_database, TABLE, "worker", ["Songs"])


def test_an_instance_that_is_unregistered_while_frozen_saves_nothing(
    consumer_database: Database,
) -> None:
    lease = consumers_of(consumer_database).acquire("worker", 0.0)
    unregister(consumer_database, TABLE, "worker")
    with pytest.raises(LeaseLostError):
        consumers_of(consumer_database).renew(lease, State.RUNNING, ConsumerProgress())
    assert kept(consumer_database) == (set(), set(), False)


def test_a_consumer_whose_selection_cannot_be_read_can_be_unregistered(
    consumer_database: Database,
) -> None:
    with consumer_database.batch() as batch:
        batch.update(consumers_table(TABLE), ("Consumer", "Selection"), [("worker", "odd")])
    assert len(unregister(consumer_database, TABLE, "worker")["worker"]) == 3


def test_the_command_shows_first_what_would_go(consumer_database: Database) -> None:
    where = ["-d", str(address_of(consumer_database)), "--table", "Singers", "--table", "Songs"]
    shown = CliRunner().invoke(app, ["ctl", "forget", "worker", *where, "--dry-run"])
    assert "positions that would be removed: Singers, Songs" in shown.output
    assert kept(consumer_database) == (set(TABLES), set(TABLES), True)
    shown = CliRunner().invoke(app, ["ctl", "forget", "worker", *where])
    assert "worker: 2 positions removed" in shown.output
    assert kept(consumer_database) == ({"Albums"}, {"Albums"}, True)


@pytest.mark.ddl("CREATE TABLE Other (Id INT64) PRIMARY KEY (Id)")
def test_nothing_is_made_where_there_is_nothing(database: Database) -> None:
    before = read_schema(database)
    assert unregister(database, TABLE, "worker") == {}
    assert read_schema(database) == before
