"""What a watcher does, in databases of both dialects: the same tests, one schema, two languages."""

from __future__ import annotations

from typing import Any

import pytest
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, make_watchable, write_singers
from google.cloud.spanner_v1.database import Database

from ddl.strategies import Strategy
from watcher import Change, Watcher
from watcher.consumers.clearing import Clearing
from watcher.consumers.leases import Consumers
from watcher.consumers.positions import SpannerPositions, consumers_table
from watcher.consumers.positions.values import TABLE
from watcher.tables.discovery import discover_table

pytestmark = pytest.mark.both_dialects


def deliver(database: Database, **options: Any) -> list[Change]:
    """What one run of a consumer delivers."""
    changes: list[Change] = []
    defaults = {"database": str(address_of(database)), "tables": ["*"], "interval": "20ms"}
    watcher = Watcher(**(defaults | {"consumer": "c", "start": "earliest"} | options))
    watcher.on_change(changes.append)
    watcher.run_once()
    return changes


def names(changes: list[Change]) -> list[tuple[Any, Any]]:
    """The key and the name of each change, sorted."""
    return sorted((c.key["SingerId"], (c.new_values or {})["LastName"]) for c in changes)


@pytest.mark.parametrize("method", ["partitioned", "index"])
@pytest.mark.parametrize("strategy", [Strategy.AUTOMATIC, Strategy.PROCESSED])
def test_each_version_is_delivered_once_and_leaves_the_index(
    create_database: CreateDatabase, strategy: Strategy, method: str
) -> None:
    database = create_database(SINGERS)
    make_watchable(database, strategy=strategy)
    write_singers(database, range(10), "first")
    assert names(deliver(database)) == [(key, "first") for key in range(10)]
    write_singers(database, range(3), "second")
    assert names(deliver(database)) == [(key, "second") for key in range(3)]
    assert deliver(database) == []
    table = discover_table(database, "Singers")
    clearing = Clearing(database, table, SpannerPositions(database), 0, method=method)
    assert clearing.count().rows == 10
    assert clearing.clear().rows == 10
    assert clearing.count().rows == 0
    columns, row = ["SingerId", "LastName"], [2, "third"]
    if table.processed_column is not None:  # who writes says that it is to be delivered
        columns, row = [*columns, table.processed_column], [*row, False]
    with database.batch() as batch:
        batch.update("Singers", columns, [row])
    assert names(deliver(database)) == [(2, "third")]
    (status,) = Consumers(database, consumers_table(TABLE)).list_all()
    assert (status.consumer, status.alive) == ("c", False)
