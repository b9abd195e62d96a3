"""What a watcher does, in databases of both dialects: the same tests, one schema, two languages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fixtures.replicas import adopt_newest, open_table, replicate, verify_folder
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, make_watchable, take_over, write_singers
from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, KeySet, param_types
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.schema import Dialect
from spanner_schema.model.strategies import Strategy
from watcher import Change, Operation, Watcher
from watcher.change_sets import ChangeSets
from watcher.consumers.clearing import Clearing
from watcher.consumers.leases import Consumers
from watcher.consumers.positions import SpannerPositions
from watcher.consumers.positions.unregister import unregister
from watcher.consumers.positions.values import TABLE
from watcher.model.errors import DeliveryError, NotOursError
from watcher.overview.observer import Observer
from watcher.overview.values import Count
from watcher.tables.discovery import discover_table
from watcher.tables.values import TableSpec

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
    (status,) = Consumers(database, TABLE).list_all()
    assert (status.consumer, status.alive) == ("c", False)


WIDE = """CREATE TABLE Orders (
  Id INT64, Region STRING(20), Slice INT64, Hour STRING(20), Name STRING(100),
  Changed TIMESTAMP OPTIONS (allow_commit_timestamp = true)
) PRIMARY KEY (Id)"""
SPECS: dict[str, dict[str, Any]] = {
    "fixed": {"shard": "fixed", "shard_column": "Slice", "shard_values": [0, 1]},
    "fixed-text": {"shard": "fixed", "shard_column": "Region", "shard_values": ["a", "b"]},
    "not-null": {"shard": "not-null", "shard_column": "Region"},
    "time": {"shard": "time", "shard_column": "Hour"},
    "none": {"shard": "none"},
}


@pytest.mark.parametrize("name", SPECS)
def test_each_way_to_shard_delivers_each_row_once(
    create_database: CreateDatabase, name: str
) -> None:
    column = SPECS[name].get("shard_column", "")
    keys = f"{column}, Changed" if column else "Changed"
    database = create_database(WIDE, f"CREATE NULL_FILTERED INDEX Polled ON Orders({keys})")
    columns = ("Id", "Region", "Slice", "Hour", "Name", "Changed")
    rows = [
        (key, "ab"[key % 2], key % 2, f"2026-01-0{1 + key % 9}", f"n{key}", COMMIT_TIMESTAMP)
        for key in range(20)
    ]
    with database.batch() as batch:
        batch.insert("Orders", columns, rows)
    changes = deliver(database, tables=["Orders"], table={"Orders": SPECS[name]}, max_rows=7)
    assert sorted(int(str(c.key["Id"])) for c in changes) == list(range(20))
    assert {c.key["Id"]: (c.new_values or {})["Name"] for c in changes} == {
        key: f"n{key}" for key in range(20)
    }
    table = discover_table(database, "Orders", TableSpec(**SPECS[name]))
    clearing = Clearing(database, table, SpannerPositions(database), 0, method="index")
    with pytest.raises(NotOursError, match="take-over Changed"):
        clearing.clear()
    named = {"shard_column": column} if column else {}
    take_over(database, "Orders", "Changed", shard=SPECS[name]["shard"], **named)
    assert (clearing.clear().rows, clearing.count().rows) == (20, 0)


SETS = (
    "CREATE TABLE CHANGE_SETS (ChangeSetId STRING(36) NOT NULL,"
    " CommitTimestamp TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (ChangeSetId)",
    "CREATE TABLE Songs (Id INT64, Title STRING(MAX), ChangeSetId STRING(36)) PRIMARY KEY (Id)",
    "CREATE INDEX SongsByChangeSet ON Songs(ChangeSetId)",
)
RENAME = {
    Dialect.GOOGLESQL: "UPDATE Songs SET Title = @p1, ChangeSetId = @change_set_id WHERE Id = @p2",
    Dialect.POSTGRESQL: 'UPDATE "Songs" SET "Title" = $1, "ChangeSetId" = @change_set_id'
    ' WHERE "Id" = $2',
}


@pytest.mark.parametrize("method", ["partitioned", "index"])
def test_change_sets_bring_every_kind_of_transaction(
    create_database: CreateDatabase, dialect: Dialect, method: str
) -> None:
    database = create_database(*SETS)
    if method == "index":
        make_watchable(
            database,
            "CHANGE_SETS",
            timestamp_column="CommitTimestamp",
            take_over=["CommitTimestamp"],
        )
    sets = ChangeSets(database, ["Songs"])
    spec: dict[str, Any] = {"change_sets": "CHANGE_SETS"}

    def poll() -> list[tuple[Any, Any]]:
        changes = deliver(database, tables=["Songs"], table={"Songs": spec})
        return sorted((c.key["Id"], (c.new_values or {})["Title"]) for c in changes)

    types = {"p1": param_types.STRING, "p2": param_types.INT64}
    with sets.batch() as batch:
        batch.insert("Songs", ("Id", "Title"), [(key, "one") for key in range(3)])
    assert poll() == [(key, "one") for key in range(3)]
    sets.run_in_transaction(
        lambda t: t.execute_update(RENAME[dialect], {"p1": "two", "p2": 1}, types)
    )
    assert poll() == [(1, "two")]
    assert sets.execute_partitioned_dml(RENAME[dialect], {"p1": "three", "p2": 2}, types) == 1
    assert sets.publish_pending() == 0
    assert poll() == [(2, "three")]
    table = discover_table(database, "Songs", TableSpec(**spec))
    clearing = Clearing(database, table, SpannerPositions(database), 0, method=method)
    assert (clearing.clear().rows, clearing.count().rows) == (3, 0)


def test_a_backfill_goes_on_where_it_was_interrupted(singers: Database) -> None:
    write_singers(singers, range(10), "first")
    seen: list[Change] = []

    def fail_after_seven(change: Change) -> None:
        if len(seen) == 7:
            raise RuntimeError("not now")
        seen.append(change)

    options: dict[str, Any] = {"start": "latest", "backfill": ["*"], "backfill_rows": 3}
    watcher = Watcher(database=str(address_of(singers)), tables=["*"], consumer="c", **options)
    watcher.on_change(fail_after_seven)
    with pytest.raises(DeliveryError):
        watcher.run_once()
    write_singers(singers, [4], "second")
    rest = deliver(singers, start="latest", backfill=["*"], backfill_rows=3)
    assert {c.key["SingerId"] for c in [*seen, *rest]} == set(range(10))
    assert (4, "second") in names(rest)


def test_an_operator_sees_consumers_errors_and_indexes(singers: Database) -> None:
    write_singers(singers, range(10), "first")
    deliver(singers)
    consumers = Consumers(singers, TABLE)
    consumers.store_error("c", ValueError("first"))
    consumers.store_error("c", ValueError("newest"))
    write_singers(singers, [3], "second")
    overview = Observer(singers, address_of(singers), TABLE, 0.0).read()
    (consumer,) = overview.consumers
    assert (consumer.state, consumer.delivered_rows) == ("STOPPED", 10)
    assert consumer.rows_behind == Count(1)
    assert consumer.last_error is not None
    assert consumer.last_error.message == "newest"
    (index,) = overview.indexes
    assert index.rows == Count(10)
    assert unregister(singers, TABLE, "c") == {"c": ("Singers",)}
    assert Consumers(singers, TABLE).list_all() == ()


@pytest.mark.parametrize("mode", ["IMMUTABLE_KEY_RANGE", "MUTABLE_KEY_RANGE"])
def test_a_change_stream_brings_each_version_and_each_delete(
    create_database: CreateDatabase, mode: str
) -> None:
    kinds = f"value_capture_type = 'NEW_ROW_AND_OLD_VALUES', partition_mode = '{mode}'"
    database = create_database(SINGERS, f"CREATE CHANGE STREAM Changes FOR ALL OPTIONS ({kinds})")
    options = {"capture": "change-stream", "tables": ["Singers"], "start": "latest"}
    assert deliver(database, **options) == []
    write_singers(database, [1], "first")
    write_singers(database, [1], "second")
    with database.batch() as batch:
        batch.delete("Singers", KeySet(keys=[[1]]))
    changes = deliver(database, **options)
    assert [
        (c.operation, (c.old_values or {}).get("LastName"), (c.new_values or {}).get("LastName"))
        for c in changes
    ] == [
        (Operation.INSERT, None, "first"),
        (Operation.UPDATE, "first", "second"),
        (Operation.DELETE, "second", None),
    ]


def test_a_replica_equals_the_table_and_damage_is_found(singers: Database, tmp_path: Path) -> None:
    write_singers(singers, range(30), "first")
    replicate(singers, tmp_path)
    write_singers(singers, range(5), "second")
    replicate(singers, tmp_path)
    (table,) = verify_folder(singers, tmp_path).tables
    assert (table.equal, table.rows) == (True, 30)
    open_table(tmp_path, "Singers").update({"LastName": "'other'"}, predicate='"SingerId" = 7')
    adopt_newest(tmp_path, "Singers")
    (table,) = verify_folder(singers, tmp_path).tables
    assert [each.key["SingerId"] for each in table.differences] == [7]
