"""What a Spark query shows decides what is read: no other column, and the same values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from fixtures.singers import address_of
from google.cloud.spanner_v1 import COMMIT_TIMESTAMP
from google.cloud.spanner_v1.database import Database
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from watcher.captures import Capture
from watcher.captures.key_ranges import KeyRangeCapture
from watcher.captures.poll import PollCapture
from watcher.captures.snapshot import SnapshotCapture
from watcher.change_sets import ChangeSets
from watcher.model.window import Window
from watcher.runners.spark.resolution import make_shown_schema
from watcher.runners.spark.scan import Scan
from watcher.settings.spark import SourceOptions
from watcher.spanner.queries import QueryClient
from watcher.tables.discovery import discover_table
from watcher.tables.shards import group_shards
from watcher.tables.values import TableSpec

EVENTS = (
    "CREATE TABLE Events (Region STRING(8) NOT NULL, `Day` TIMESTAMP NOT NULL, Name STRING(MAX),"
    " Shard STRING(8), Stamp TIMESTAMP OPTIONS (allow_commit_timestamp=true))"
    " PRIMARY KEY (Region, `Day`)",
    "CREATE NULL_FILTERED INDEX EventsByStamp ON Events(Shard, Stamp)",
)
SETS = (
    "CREATE TABLE CHANGE_SETS (ChangeSetId STRING(36) NOT NULL, CommitTimestamp TIMESTAMP"
    " OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (ChangeSetId)",
    "CREATE TABLE Songs (Id INT64, Title STRING(MAX), ChangeSetId STRING(36)) PRIMARY KEY (Id)",
    "CREATE INDEX SongsBySet ON Songs(ChangeSetId)",
)
TEXT_SHARDS = TableSpec(shard="fixed", shard_column="Shard", shard_values=("a", "b", "c"))


def scan_of(database: Database, table: str, spec: TableSpec) -> Scan:
    """A query that shows all columns."""
    address = address_of(database)
    options = SourceOptions(
        project=address.project,
        instance=address.instance,
        database=address.database,
        table=table,
        change_columns=True,
    )
    watched = discover_table(database, table, spec)
    groups = group_shards(watched.shard_values, 2)
    captures = (PollCapture(QueryClient(address), watched, groups),)
    return Scan(options, captures, make_shown_schema(options, captures))


def select(scan: Scan, names: Sequence[str]) -> Scan:
    """The same query with some of its columns."""
    return scan.select_columns(StructType([scan.spark_schema[name] for name in names]))


def read(scan: Scan, capture: Capture[Any], window: Window) -> list[dict[str, object]]:
    """The rows of a window as a query shows them, in an order of their own."""
    batches = [scan.shape(rows) for part in capture.plan(window) for rows in capture.read(part)]
    rows = [row for batch in batches for row in batch.to_pylist()]
    return sorted(rows, key=repr)


def list_captures(scan: Scan) -> Iterator[Capture[Any]]:
    """What reads the table of a query; a table of change sets has no timestamp of its own."""
    (poll,) = scan.captures
    yield poll
    if poll.table.change_sets is None:
        yield KeyRangeCapture(poll)
        yield SnapshotCapture(poll)


def assert_shows_what_it_did(scan: Scan, names: Sequence[str]) -> None:
    """A query of some columns gives them as the query of all does."""
    window, changed = scan.captures[0].look(0)
    assert changed
    narrow = select(scan, names)
    for all_of_it, some in zip(list_captures(scan), list_captures(narrow), strict=True):
        wanted = [{name: row[name] for name in names} for row in read(scan, all_of_it, window)]
        assert wanted
        assert read(narrow, some, window) == sorted(wanted, key=repr)


def assert_any_columns_show_what_they_did(scan: Scan) -> None:
    """The same for any subset of the columns, in any order."""

    @given(st.lists(st.sampled_from(scan.shown.names), min_size=1, unique=True))
    def check(names: list[str]) -> None:
        assert_shows_what_it_did(scan, names)

    check()


@pytest.mark.ddl(*EVENTS)
def test_any_columns_of_a_table_whose_shards_are_text(database: Database) -> None:
    columns = ("Region", "Day", "Name", "Shard", "Stamp")
    with database.batch() as batch:
        rows = [
            (region, f"2026-01-0{day}T00:00:00.000001Z", f"{region}{day}", shard, COMMIT_TIMESTAMP)
            for region, shard in (("eu", "a"), ("us", "b"), ("ap", "c"))
            for day in (1, 2)
        ]
        batch.insert("Events", columns, rows)
    assert_any_columns_show_what_they_did(scan_of(database, "Events", TEXT_SHARDS))


@pytest.mark.ddl(*SETS)
def test_any_columns_of_a_table_with_change_sets(database: Database) -> None:
    with ChangeSets(database, ["Songs"]).batch() as batch:
        batch.insert("Songs", ("Id", "Title"), [(1, "one"), (2, "two"), (3, None)])
    assert_any_columns_show_what_they_did(
        scan_of(database, "Songs", TableSpec(change_sets="CHANGE_SETS"))
    )


@pytest.mark.parametrize(
    ("shown", "read_of_it"),
    [
        (["Name"], ["Name"]),
        (["_commit_timestamp"], ["Stamp"]),
        (["_shard_id"], ["Shard"]),
        (["_commit_version", "Name"], ["Name", "Stamp"]),
        (["_change_id"], ["Region", "Day", "Stamp"]),
        (["_change_type"], ["Region"]),
        (["Stamp", "_commit_timestamp"], ["Stamp"]),
    ],
    ids="+".join,
)
@pytest.mark.ddl(*EVENTS)
def test_no_other_column_is_asked_for(
    database: Database, shown: list[str], read_of_it: list[str]
) -> None:
    scan = scan_of(database, "Events", TEXT_SHARDS)
    (capture,) = select(scan, shown).captures
    assert [name for name, _ in capture.selected_columns] == read_of_it
