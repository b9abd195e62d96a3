"""A table that is called as one of its columns: in GoogleSQL the name of a table is its row."""

from __future__ import annotations

import pytest
from fixtures.consumers import watcher_of
from fixtures.server import CreateDatabase
from fixtures.singers import make_watchable
from google.cloud.spanner_v1.database import Database

from ddl.migration.apply import read_schema
from ddl.tracking.status import count_index_rows, list_statuses
from watcher import Change
from watcher.cli.ddl.lint import count_sampled_rows
from watcher.consumers.clearing import Clearing, Method
from watcher.consumers.positions import SpannerPositions
from watcher.tables.discovery import discover_table

TABLES = ("Status", "LastModified", "ShardId", "Id")
ROWS = {(table, key, name) for table in TABLES for key, name in ((1, "new"), (2, "old"))}


@pytest.fixture
def database(create_database: CreateDatabase) -> Database:
    columns = "(Id INT64, Status STRING(MAX)) PRIMARY KEY (Id)"
    database = create_database(*(f"CREATE TABLE {table} {columns}" for table in TABLES))
    make_watchable(database, *TABLES)
    with database.batch() as batch:
        for table in TABLES:
            batch.insert(table, ("Id", "Status"), [(1, "new"), (2, "old")])
    return database


def contents(changes: list[Change]) -> set[tuple[str, object, object]]:
    return {(c.table, c.key["Id"], (c.new_values or {})["Status"]) for c in changes}


@pytest.mark.parametrize("method", [Method.PARTITIONED, Method.INDEX])
def test_such_a_table_is_polled_and_cleared(database: Database, method: Method) -> None:
    seen: list[Change] = []
    watcher_of(database, seen, tables=["*"], consumer="name").run_once()
    assert contents(seen) == ROWS
    positions = SpannerPositions(database)
    for table in TABLES:
        watched = discover_table(database, table)
        assert Clearing(database, watched, positions, method=method).clear().rows == 2


def test_such_a_table_is_backfilled(database: Database) -> None:
    seen: list[Change] = []
    common = {"tables": ["*"], "consumer": "name", "start": "latest"}
    watcher_of(database, seen, backfill=["*"], backfill_rows=1, **common).run_once()
    assert contents(seen) == ROWS


def test_the_rows_of_such_a_table_are_counted(database: Database) -> None:
    schema = read_schema(database)
    statuses = list_statuses(schema, TABLES)
    assert [count_index_rows(database, schema, each) for each in statuses] == [2, 2, 2, 2]
    sampled = count_sampled_rows(database, schema)
    assert {table: sum(counts.values()) for table, counts in sampled.items()} == dict.fromkeys(
        TABLES, 2
    )
