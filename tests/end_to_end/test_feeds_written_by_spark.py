"""Delta's change data feed on copies that Spark writes: it leads from each cut to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from fixtures.changing_schemas import change_schema
from fixtures.replicas import CONSUMER, assert_equal
from fixtures.server import CreateDatabase
from fixtures.singers import address_of, write_singers
from fixtures.spark_replicas import replicate_by_spark, start_replica
from fixtures.versions import TABLES, Writes, rows_at
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from pyspark.sql import SparkSession

from watcher.model.errors import ConfigurationError
from watcher.replica.copies import Needed
from watcher.replica.cuts.cut import DELTA, Cut
from watcher.replica.cuts.modes import HISTORY
from watcher.replica.delta.change_feed import AFTER, BEFORE, DELETE, FOLDER, INSERT, KIND
from watcher.replica.delta.feed_columns import PROPERTY
from watcher.replica.formats import ICEBERG, open_copies
from watcher.replica.frame_copies import make_open_copy
from watcher.replica.layout import Layout
from watcher.replica.verification.repairs import RepairOptions, repair
from watcher.replica.writing.compaction import CompactionPolicy
from watcher.spanner.queries import QueryClient

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("delta")]
STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'NEW_ROW')"
FED: Mapping[str, Any] = {"format": DELTA, "change_feed": True}
EAGER = CompactionPolicy(10, 3, 1_000, deleted_rows=2)
Change = tuple[Any, ...]
Feeds = Callable[[str, int, int], list[Mapping[str, Any]]]


def read_by_delta_rs(folder: Path, first: int, last: int) -> list[Mapping[str, Any]]:
    table = DeltaTable(str(folder))
    read = table.load_cdf(starting_version=first, ending_version=last).read_all()
    rows: list[Mapping[str, Any]] = pa.table(read).to_pylist()
    return rows


def read_by_spark(
    spark: SparkSession, folder: Path, first: int, last: int
) -> list[Mapping[str, Any]]:
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    reader = reader.option("startingVersion", first).option("endingVersion", last)
    return [row.asDict() for row in reader.load(str(folder)).collect()]


def show(feed: list[Mapping[str, Any]], value: str, key: str = "Id") -> list[Change]:
    return sorted((row[key], row[KIND], row[value]) for row in feed)


def list_changes(old: Mapping[Any, int], new: Mapping[Any, int]) -> Iterator[Change]:
    """What has become of the rows of a table, whose versions are given by key."""
    for key in old.keys() | new.keys():
        if key not in old:
            yield key, INSERT, new[key]
        elif key not in new:
            yield key, DELETE, old[key]
        elif old[key] != new[key]:
            yield key, BEFORE, old[key]
            yield key, AFTER, new[key]


@pytest.fixture
def read_feeds(spark: SparkSession, tmp_path: Path) -> Feeds:
    """The feed of a copy between two versions, which two readers read alike."""

    def read(table: str, first: int, last: int) -> list[Mapping[str, Any]]:
        place = tmp_path / table
        found = read_by_delta_rs(place, first, last)
        key = next(iter(found[0])) if found else ""
        names = (KIND, "_commit_version", key)
        by_spark = read_by_spark(spark, place, first, last)
        both = [sorted(tuple(row[n] for n in names) for row in rows) for rows in (found, by_spark)]
        assert both[0] == both[1]
        return found

    return read


def test_the_feed_has_the_changes_between_cuts(
    spark: SparkSession, create_database: CreateDatabase, tmp_path: Path, read_feeds: Feeds
) -> None:
    """With compactions, a load in chunks with a window in between, and a new column."""
    database = create_database(*TABLES, STREAM)
    writes, cuts = Writes(database, 11), list[Cut]()
    writes.write(8)
    eager: Mapping[str, Any] = {"compaction_small_files": 1, "compaction_deleted_percent": 0}
    for number in range(4):
        if number == 2:
            change_schema(database, "ALTER TABLE T ADD COLUMN More INT64")
        reports = replicate_by_spark(
            spark, database, tmp_path, ("T", "U"), stream="S", load_rows=5, **FED, **eager
        )
        cuts += [each.cut for each in reports]
        assert_equal(database, tmp_path)
        writes.write(9)
    exact = [cut for cut in cuts if cut.exact]
    assert len(exact) >= 4
    for name in ("T", "U"):
        feed = read_feeds(name, 0, exact[0].tables[name].version)
        assert show(feed, "Version") == sorted(
            (key, INSERT, value) for key, value in rows_at(writes, name, exact[0].end)
        )
        for before, after in pairwise(exact):
            first, last = before.tables[name].version + 1, after.tables[name].version
            expected = sorted(
                list_changes(
                    dict(rows_at(writes, name, before.end)), dict(rows_at(writes, name, after.end))
                )
            )
            found = read_feeds(name, first, last) if last >= first else []
            assert show(found, "Version") == expected


def test_compared_keys_and_repairs_are_in_the_feed(
    spark: SparkSession, singers: Database, tmp_path: Path, read_feeds: Feeds
) -> None:
    """Of a copy that was there, and gets the feed with its next merge."""
    write_singers(singers, range(5), "first")
    (report,) = replicate_by_spark(spark, singers, tmp_path, format=DELTA)
    loaded = report.cut.tables["Singers"].version
    with singers.batch() as batch:
        batch.delete("Singers", KeySet(keys=[[2]]))
    write_singers(singers, [1], "second")
    (report,) = replicate_by_spark(spark, singers, tmp_path, deletes="compare", **FED)
    merged = report.cut.tables["Singers"].version
    assert show(read_feeds("Singers", loaded + 2, merged), "LastName", "SingerId") == [
        (1, AFTER, "second"),
        (1, BEFORE, "first"),
        (2, DELETE, "first"),
    ]
    place = str(tmp_path / "Singers")
    spark.sql(f"UPDATE delta.`{place}` SET LastName = 'damaged' WHERE SingerId = 3")
    copies = open_copies(DELTA, str(tmp_path), CONSUMER)
    queries = QueryClient(address_of(singers))
    repair(queries, copies, report.cut, RepairOptions(("*",)), lambda: None)
    newest = DeltaTable(place).version()
    assert newest == merged + 2
    assert show(read_feeds("Singers", newest, newest), "LastName", "SingerId") == [
        (3, AFTER, "first"),
        (3, BEFORE, "damaged"),
    ]


def test_files_of_the_feed_go_with_the_cuts_also_those_of_partitions(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    layouts = {"Singers": {"partition_by": ["LastName"]}}
    write_singers(singers, range(5), "first")
    replicate_by_spark(spark, singers, tmp_path, layouts=layouts, **FED)
    write_singers(singers, [1], "second")
    (report,) = replicate_by_spark(spark, singers, tmp_path, layouts=layouts, **FED)
    version = report.cut.tables["Singers"].version
    feed = read_by_delta_rs(tmp_path / "Singers", version, version)
    assert show(feed, "LastName", "SingerId") == [(1, AFTER, "second"), (1, BEFORE, "first")]
    folder = tmp_path / "Singers" / FOLDER
    assert list(folder.rglob("*.parquet"))
    opened = make_open_copy(spark, DELTA, str(tmp_path), CONSUMER, policy=EAGER)
    copy = opened(spark, "Singers", Layout(("LastName",)))
    copy.remove_before(Needed(0, version))
    assert list(folder.rglob("*.parquet"))
    copy.remove_before(Needed(1 << 60, version))
    assert not list(folder.rglob("*.parquet"))


def test_copies_without_a_feed_are_refused(
    spark: SparkSession, singers: Database, tmp_path: Path
) -> None:
    for more, message in (
        ({"format": ICEBERG}, "change_feed is for copies in Delta"),
        ({"mode": HISTORY}, "of the latest rows that are merged on read"),
        ({"merge": "copy-on-write"}, "of the latest rows that are merged on read"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            start_replica(spark, singers, tmp_path, **{**FED, **more})
    rows = spark.range(1).selectExpr("id AS SingerId", "current_timestamp() AS _commit_timestamp")
    rows.write.format("delta").save(str(tmp_path / "Singers"))
    with pytest.raises(ConfigurationError, match="has a column _commit_timestamp, which Delta"):
        start_replica(spark, singers, tmp_path, **FED)
    assert PROPERTY not in DeltaTable(str(tmp_path / "Singers")).metadata().configuration
