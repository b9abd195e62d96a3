"""Tables of one bare name in two named schemas and in the default one, the whole path: prepared,
watched by both captures, cleared, copied, verified, shown, rolled back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from fixtures.commands import run_command
from fixtures.replicas import assert_equal, read_rows, replicate
from fixtures.server import CreateDatabase
from fixtures.singers import address_of, fetch_now, make_watchable
from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, KeySet
from google.cloud.spanner_v1.database import Database

from ddl.migration.apply import read_schema, roll_back
from ddl.migration.plan import make_plan
from ddl.tracking.status import count_index_rows, list_statuses
from spanner_schema.model.errors import PlanError
from spanner_schema.model.names import split_name
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import Dialect
from spanner_schema.model.selection import select_tables
from spanner_schema.model.strategies import Strategy
from spanner_schema.syntax.render import render_schema
from watcher import Change, Operation, Watcher
from watcher.change_sets import ChangeSets
from watcher.consumers.clearing import Clearing
from watcher.consumers.positions import TABLE, SpannerPositions
from watcher.consumers.positions.unregister import unregister
from watcher.model.errors import NotWatchableError, WatcherError
from watcher.overview.observer import Observer
from watcher.overview.values import Count
from watcher.runners.preflight import check
from watcher.settings.watcher import parse_watch_config
from watcher.spanner.timestamps import format_timestamp
from watcher.tables.discovery import discover_table
from watcher.tables.selection import Selection
from watcher.tables.values import TableSpec

both_dialects = pytest.mark.both_dialects
TABLES = ("Archive.Orders", "Orders", "sales.Orders")
SCHEMAS = ("CREATE SCHEMA sales", "CREATE SCHEMA Archive")
ORDERS = tuple(
    f"CREATE TABLE {name} (Id INT64, Name STRING(MAX)) PRIMARY KEY (Id)" for name in TABLES
)
STREAM = (
    "CREATE CHANGE STREAM Changes FOR sales.Orders, Orders, Archive.Orders"
    " OPTIONS (value_capture_type = 'NEW_ROW_AND_OLD_VALUES')"
)
TABLE_OF_RECORD: dict[str, Callable[[Any], str]] = {
    "plain": lambda record: str(record["table"]),
    "debezium": lambda record: str(record["value"]["source"]["table"]),
    "datastream": lambda record: str(record["object"]),
}
Rows = list[tuple[str, Any, Any]]


@pytest.fixture
def orders(create_database: CreateDatabase) -> Database:
    """The tables, all of them watchable."""
    database: Database = create_database(*SCHEMAS, *ORDERS)
    make_watchable(database, *TABLES, shards=4)
    return database


def write(
    database: Database, keys: Iterable[int], name: str, tables: Iterable[str] = TABLES
) -> None:
    """Rows with these keys in each of the tables, by one transaction."""
    with database.batch() as batch:
        for table in tables:
            rows = [(key, f"{name} of {table}") for key in keys]
            batch.insert_or_update(table, ("Id", "Name"), rows)


def deliver(database: Database, *tables: str, **options: Any) -> list[Change]:
    """What one run of a consumer delivers."""
    changes: list[Change] = []
    defaults = {"database": str(address_of(database)), "interval": "20ms"}
    watcher = Watcher(
        **(defaults | {"tables": tables or ["*"], "consumer": "c", "start": "earliest"} | options)
    )
    watcher.on_change(changes.append)
    watcher.run_once()
    return changes


def rows_of(changes: list[Change]) -> Rows:
    """Table, key and name of each change, sorted."""
    return sorted((c.table, c.key["Id"], (c.new_values or {}).get("Name")) for c in changes)


def written(keys: Iterable[int], name: str, tables: Iterable[str] = TABLES) -> Rows:
    """What ``rows_of`` has of what ``write`` wrote."""
    return sorted((table, key, f"{name} of {table}") for table in tables for key in keys)


@both_dialects
def test_each_table_is_prepared_in_its_own_schema_and_rolled_back(
    create_database: CreateDatabase,
) -> None:
    database = create_database(*SCHEMAS, *ORDERS)
    before = render_schema(read_schema(database))
    assert select_tables(read_schema(database), ["SALES.*"]) == ("sales.Orders",)
    make_watchable(database, *select_tables(read_schema(database), ["*"]))
    schema = read_schema(database)
    assert make_plan(schema, list(TABLES), WatchOptions(shards=8)).empty
    places = {index.table: split_name(index.name)[0] for index in schema.indexes}
    assert places == {name: split_name(name)[0] for name in TABLES}
    write(database, [1, 2], "first", ["sales.Orders"])
    counts = {
        status.table: count_index_rows(database, schema, status)
        for status in list_statuses(schema, TABLES)
    }
    assert counts == {"Archive.Orders": 0, "Orders": 0, "sales.Orders": 2}
    roll_back(database, ["SALES.orders"])
    assert {index.table for index in read_schema(database).indexes} == {"Archive.Orders", "Orders"}
    roll_back(database)
    assert render_schema(read_schema(database)) == before


@both_dialects
def test_polls_deliver_and_clear_each_table_alone(orders: Database) -> None:
    write(orders, [1, 2], "first")
    assert rows_of(deliver(orders)) == written([1, 2], "first")
    write(orders, [2, 3], "second", ["Orders", "sales.Orders"])
    assert rows_of(deliver(orders)) == written([2, 3], "second", ["Orders", "sales.Orders"])
    positions = SpannerPositions(orders)
    for method, name, left in (
        ("partitioned", "sales.Orders", {"Archive.Orders": 2, "Orders": 3, "sales.Orders": 0}),
        ("index", "Archive.Orders", {"Archive.Orders": 0, "Orders": 3, "sales.Orders": 0}),
    ):
        Clearing(orders, discover_table(orders, name), positions, 0, method=method).clear()
        counts = {each: count_entries(orders, each) for each in TABLES}
        assert counts == left
    assert deliver(orders) == []


def count_entries(database: Database, table: str) -> int:
    """How many rows are in the index that polls read."""
    schema = read_schema(database)
    (status,) = list_statuses(schema, [table])
    return count_index_rows(database, schema, status) or 0


TAKEN = {"timestamp_column": "Changed", "take_over": ["Changed"]}


@both_dialects
@pytest.mark.parametrize("strategy", [Strategy.PROCESSED, Strategy.MANUAL])
def test_other_strategies_watch_and_clear_a_table_of_a_named_schema(
    create_database: CreateDatabase, strategy: Strategy
) -> None:
    changed = "Changed TIMESTAMP OPTIONS (allow_commit_timestamp = true)"
    table = f"CREATE TABLE sales.Orders (Id INT64, Name STRING(MAX), {changed}) PRIMARY KEY (Id)"
    database = create_database(SCHEMAS[0], table, *ORDERS[1:2])
    make_watchable(database, "sales.Orders", strategy=strategy, **TAKEN)
    with database.batch() as batch:
        columns = ("Id", "Name", "Changed")
        batch.insert("sales.Orders", columns, [(1, "first", COMMIT_TIMESTAMP)])
    assert rows_of(deliver(database)) == [("sales.Orders", 1, "first")]
    clearing = Clearing(
        database, discover_table(database, "sales.Orders"), SpannerPositions(database)
    )
    assert (clearing.clear().rows, clearing.count().rows) == (1, 0)


@both_dialects
def test_change_sets_find_rows_of_a_named_schema(create_database: CreateDatabase) -> None:
    sets = (
        "CREATE TABLE sales.CHANGE_SETS (ChangeSetId STRING(36) NOT NULL, CommitTimestamp TIMESTAMP"
        " OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (ChangeSetId)"
    )
    songs = "CREATE TABLE sales.Songs (Id INT64, Name STRING(MAX), ChangeSetId STRING(36))"
    database = create_database(SCHEMAS[0], sets, f"{songs} PRIMARY KEY (Id)")
    spec: dict[str, Any] = {"change_sets": "sales.CHANGE_SETS"}
    with pytest.raises(NotWatchableError, match="CREATE INDEX"):
        discover_table(database, "sales.Songs", TableSpec(**spec))
    database.update_ddl(["CREATE INDEX sales.BySet ON sales.Songs(ChangeSetId)"]).result(60)
    stamp = "CommitTimestamp"
    make_watchable(database, "sales.CHANGE_SETS", timestamp_column=stamp, take_over=[stamp])
    with ChangeSets(database, ["sales.Songs"], table="sales.CHANGE_SETS").batch() as batch:
        batch.insert("sales.Songs", ("Id", "Name"), [(1, "one")])
    changes = deliver(database, "sales.Songs", table={"sales.Songs": spec})
    assert rows_of(changes) == [("sales.Songs", 1, "one")]


@both_dialects
def test_a_change_stream_tells_tables_of_one_name_apart(create_database: CreateDatabase) -> None:
    database = create_database(*SCHEMAS, *ORDERS, STREAM)
    make_watchable(database, "Orders")  # a table of records that no glob selects
    start = format_timestamp(fetch_now(database))
    write(database, [1, 2], "first")
    with database.batch() as batch:
        batch.delete("sales.Orders", KeySet(keys=[[2]]))
    streamed = {"capture": "change-stream", "start": start}
    changes = deliver(database, **streamed)
    gone = [(c.table, c.key["Id"]) for c in changes if c.operation is Operation.DELETE]
    assert gone == [("sales.Orders", 2)]
    inserted = [c for c in changes if c.operation is Operation.INSERT]
    assert rows_of(inserted) == written([1, 2], "first")
    of_sales = deliver(database, "*", exclude=["sales.*"], **streamed | {"consumer": "other"})
    assert rows_of(of_sales) == written([1, 2], "first", ["Archive.Orders", "Orders"])


@both_dialects
@pytest.mark.parametrize("capture", ["poll", "change-stream"])
def test_copies_of_tables_of_one_name_stay_apart(
    create_database: CreateDatabase, tmp_path: Path, capture: str
) -> None:
    database = create_database(*SCHEMAS, *ORDERS, STREAM)
    make_watchable(database, *TABLES)
    write(database, [1, 2], "first")
    options = {"tables": ["*"], "capture": capture}
    replicate(database, tmp_path, **options)
    write(database, [2, 3], "second", ["sales.Orders"])
    replicate(database, tmp_path, **options)
    assert_equal(database, tmp_path)
    names = {table: sorted(r["Name"] for r in read_rows(tmp_path, table)) for table in TABLES}
    assert names == {
        "Archive.Orders": ["first of Archive.Orders"] * 2,
        "Orders": ["first of Orders"] * 2,
        "sales.Orders": ["first of sales.Orders", *["second of sales.Orders"] * 2],
    }
    folders = {path.name for path in tmp_path.iterdir() if not path.name.startswith("_")}
    assert folders == set(TABLES)


@both_dialects
def test_an_operator_sees_each_table_by_its_whole_name(orders: Database) -> None:
    write(orders, [1, 2], "first")
    deliver(orders)
    write(orders, [3], "second", ["sales.Orders"])
    overview = Observer(orders, address_of(orders), TABLE, 0.0).read()
    (consumer,) = overview.consumers
    assert [each.table for each in consumer.tables] == list(TABLES)
    assert consumer.rows_behind == Count(1)
    rows = {index.table: index.rows for index in overview.indexes}
    assert rows == {"Archive.Orders": Count(2), "Orders": Count(2), "sales.Orders": Count(3)}
    config = parse_watch_config({"database": str(address_of(orders)), "tables": ["*"]})
    findings = [finding.name for finding in check(config) if finding.ok]
    assert {f"{name}: clearing" for name in TABLES} <= set(findings)
    assert unregister(orders, TABLE, "c", ["SALES.orders"]) == {"c": ("sales.Orders",)}


@both_dialects
def test_positions_may_be_in_a_named_schema(orders: Database) -> None:
    table = "sales.SpannerWatcherPositions"
    positions = {"positions": {"table": table}}
    write(orders, [1], "first")
    assert rows_of(deliver(orders, **positions)) == written([1], "first")
    versions = len(read_schema(orders).tables)
    assert deliver(orders, **positions) == []
    assert len(read_schema(orders).tables) == versions
    overview = Observer(orders, address_of(orders), table, 0.0).read()
    assert [each.consumer for each in overview.consumers] == ["c"]
    assert unregister(orders, table, "c") == {"c": TABLES}


@both_dialects
def test_an_index_is_chosen_by_its_name_with_or_without_its_schema(
    create_database: CreateDatabase, dialect: Dialect
) -> None:
    database = create_database(*SCHEMAS, *ORDERS)
    schema, chosen = read_schema(database), {"index": "Polled", "shards": 4}
    with pytest.raises(PlanError, match=r"write --index sales\.Polled"):
        make_plan(schema, ["sales.Orders"], WatchOptions(shards=4, index="Archive.Polled"))
    make_watchable(database, "sales.Orders", **chosen)
    make_watchable(database, "Archive.Orders", **chosen | {"index": "archive.Polled"})
    names = {index.name for index in read_schema(database).indexes}
    assert names == {"sales.Polled", "Archive.Polled"}
    write(database, [1], "first")
    for index in ("polled", "sales.Polled"):
        spec: dict[str, Any] = {"sales.Orders": {"index": index}}
        changes = deliver(database, "sales.*", consumer=index, table=spec)
        assert rows_of(changes) == written([1], "first", ["sales.Orders"])
    with pytest.raises(NotWatchableError):
        discover_table(database, "sales.Orders", TableSpec(index="Archive.Polled"))


@both_dialects
@pytest.mark.parametrize("envelope", list(TABLE_OF_RECORD))
def test_envelopes_name_the_schema(
    create_database: CreateDatabase, tmp_path: Path, envelope: str
) -> None:
    database = create_database(*SCHEMAS, *ORDERS, STREAM)
    start = format_timestamp(fetch_now(database))
    write(database, [1], "first")
    out = tmp_path / "out"
    arguments = ["-d", str(address_of(database)), "-t", "*", "--stream", "Changes", "--once"]
    more = ["--from", start, "--to", str(out), "--envelope", envelope]
    result = run_command("watch", *arguments, *more)
    assert result.returncode == 0, result.stderr
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert sorted(TABLE_OF_RECORD[envelope](record) for record in records) == list(TABLES)


def test_globs_select_by_schema() -> None:
    everything = (*TABLES, "SpannerWatcherMigrations", "sales.SpannerWatcherPositions")
    for include, exclude, expected in (
        (["*"], [], list(TABLES)),
        (["sales.*"], [], ["sales.Orders"]),
        (["*"], ["SALES.*"], ["Archive.Orders", "Orders"]),
        (["*.*"], [], ["Archive.Orders", "sales.Orders"]),
        (["*"], ["*.*"], ["Orders"]),
        (["*.orders"], [], ["Archive.Orders", "sales.Orders"]),
        (["public.*"], [], ["Orders"]),
        (["*"], ["public.orders"], ["Archive.Orders", "sales.Orders"]),
    ):
        selection = Selection(tuple(include), tuple(exclude))
        assert selection.match_globs(everything) == expected
        assert [name for name in everything if selection.includes(name)] == expected


@pytest.mark.parametrize("dialect", [Dialect.POSTGRESQL], indirect=True)
def test_public_is_the_default_schema(orders: Database) -> None:
    write(orders, [1], "first")
    assert rows_of(deliver(orders, "public.Orders")) == written([1], "first", ["Orders"])
    schema = read_schema(orders)
    assert select_tables(schema, ["public.orders", "public.Ord*"]) == ("Orders",)
    assert deliver(orders, "public.*") == []
    with pytest.raises(WatcherError, match=r"no table public\.Nothing"):
        deliver(orders, "public.Nothing", consumer="other")
