"""Columns that tables get and lose while Spark copies them: what is loaded again, and what not.
``verify`` compares after each change, and so does plain Python, row by row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fixtures.changing_schemas import STREAM_DDL, change_schema, watchable_ddl
from fixtures.changing_schemas import write as write_table
from fixtures.replicas import assert_equal, last_cut, open_table, read_rows
from fixtures.server import CreateDatabase
from fixtures.singers import make_watchable
from fixtures.spark_formats import require_format
from fixtures.spark_replicas import replicate_by_spark
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from watcher.model.errors import ConfigurationError
from watcher.replica.copies import is_dropped
from watcher.replica.cuts.cut import DELTA, Cut
from watcher.replica.cuts.modes import HISTORY
from watcher.replica.delta.log import GONE
from watcher.replica.formats import ICEBERG, PARQUET, open_copies
from watcher.replica.reading import as_of
from watcher.runners.spark_replica_request import ReplicaRequest
from watcher.spanner.timestamps import format_timestamp

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

FIVE = "ALTER TABLE T ADD COLUMN Five INT64 NOT NULL DEFAULT (5)"
TWICE = "ALTER TABLE T ADD COLUMN Twice INT64 AS (Version * 2) STORED"
WORDS = "ALTER TABLE T ADD COLUMN `Words` ARRAY<STRING(MAX)> DEFAULT (['a', 'b'])"
NAME = "ALTER TABLE T ADD COLUMN Name STRING(MAX)"
DROP = "ALTER TABLE T DROP COLUMN Name"


@pytest.fixture(params=[DELTA, ICEBERG])
def evolving(request: pytest.FixtureRequest) -> str:
    """A format whose columns may change."""
    format_: str = request.param
    require_format(request, format_)
    return format_


@pytest.fixture
def database(create_database: CreateDatabase) -> Database:
    return create_database(*watchable_ddl("T"), *watchable_ddl("U"), STREAM_DDL)


class Replica:
    """Copies of T and U by Spark, and the tables."""

    def __init__(self, spark: SparkSession, database: Database, folder: Path, format_: str) -> None:
        self._spark = spark
        self._database = database
        self.folder = folder
        self.format = format_

    def step(self, **more: Any) -> bool:
        """Replicates up to now, and compares: whether T was loaded. U has a row in the window, as a
        query up to now has none that is empty."""
        write_table(self._database, 1, table="U", Version=1)
        more = {"format": self.format} | more
        reports = replicate_by_spark(self._spark, self._database, self.folder, ("T", "U"), **more)
        assert reports[-1].cut.exact
        self.compare(reports[-1].cut)
        return any("T" in report.loaded for report in reports)

    def compare(self, cut: Cut) -> None:
        """The judge of the product, and row by row."""
        assert_equal(self._database, self.folder, cut)
        columns, there = self._read_spanner()
        if cut.end == last_cut(self.folder).end:
            copied = [{n: row[n] for n in columns} for row in self.read().values()]
            assert sorted(copied, key=repr) == sorted(there, key=repr)

    def read(self, cut: Cut | None = None) -> dict[Any, Mapping[str, Any]]:
        """The rows of the copy, by their keys."""
        at = None if cut is None else format_timestamp(cut.end)
        rows = as_of(f"{self.format}:{self.folder}", at).read("T").to_pylist()
        return {row["Id"]: row for row in rows}

    def list_dropped(self) -> list[str]:
        """The columns of the copy that its table has lost."""
        cut = last_cut(self.folder)
        copy = open_copies(self.format, str(self.folder), cut.consumer)("T")
        return [each.name for each in copy.read_schema(cut.tables["T"].version) if is_dropped(each)]

    def _read_spanner(self) -> tuple[list[str], list[dict[str, Any]]]:
        with self._database.snapshot() as snapshot:
            results = snapshot.execute_sql(
                "SELECT * EXCEPT (LastModified, ShardId) FROM T"  # nothing was written since
            )
            rows = list(results)
        names = [each.name for each in results.fields]
        return names, [dict(zip(names, row, strict=True)) for row in rows]


@pytest.fixture
def replica(spark: SparkSession, database: Database, tmp_path: Path, evolving: str) -> Replica:
    return Replica(spark, database, tmp_path, evolving)


def test_new_columns_with_values_need_no_load(replica: Replica, database: Database) -> None:
    """A constant, an expression, a generated column: in a window of whose rows some changed before
    the columns were there, and in one without rows. The earlier cut stays as it is."""
    write_table(database, *range(6), Version=1)
    assert replica.step(stream=True)
    first, there = last_cut(replica.folder), replica.read()
    write_table(database, 1, 2, Version=3)
    change_schema(database, FIVE, TWICE)
    write_table(database, 2, 9, Version=4, Five=6)
    with database.batch() as batch:
        batch.delete("T", KeySet(keys=[[3]]))
    assert not replica.step(stream=True)
    rows = replica.read()
    assert {key: (row["Five"], row["Twice"]) for key, row in rows.items()} == {
        0: (5, 2),
        1: (5, 6),
        2: (6, 8),
        4: (5, 2),
        5: (5, 2),
        9: (6, 8),
    }
    change_schema(database, WORDS)
    assert not replica.step(stream=True)
    assert {tuple(row["Words"]) for row in replica.read().values()} == {("a", "b")}
    assert replica.read(first) == there
    replica.compare(first)


def test_a_dropped_column_is_kept(replica: Replica, database: Database) -> None:
    """Rows that are written since have NULL in it; a column that comes back is loaded."""
    kept = {"dropped_columns": "keep"}
    change_schema(database, NAME)
    write_table(database, *range(4), Version=1, Name="old")
    assert replica.step(**kept)
    change_schema(database, DROP, FIVE)
    assert not replica.step(**kept)
    assert replica.list_dropped() == ["Name"]
    write_table(database, 1, 9, Version=2)
    assert not replica.step(**kept)
    rows = replica.read()
    names = {key: row["Name"] for key, row in rows.items()}
    assert names == {0: "old", 1: None, 2: "old", 3: "old", 9: None}
    assert {row["Five"] for row in rows.values()} == {5}
    change_schema(database, NAME)
    assert replica.step(**kept)
    assert {row["Name"] for row in replica.read().values()} == {None}
    assert replica.list_dropped() == []


def test_a_dropped_column_leaves_the_copy_without_a_load(
    replica: Replica, database: Database
) -> None:
    """Earlier cuts have it, and a new column of the name has none of its values: Delta loads it."""
    dropped = {"dropped_columns": "drop"}
    change_schema(database, NAME)
    write_table(database, *range(4), Version=1, Name="old")
    replica.step(**dropped)
    before = last_cut(replica.folder)
    change_schema(database, DROP, TWICE)
    write_table(database, 1, 9, Version=2)
    assert not replica.step(**dropped)
    assert all("Name" not in row for row in replica.read().values())
    assert {row["Name"] for row in replica.read(before).values()} == {"old"}
    change_schema(database, NAME)
    write_table(database, 2, Version=3, Name="new")
    assert replica.step(**dropped) == (replica.format == DELTA)
    names = {key: row["Name"] for key, row in replica.read().items()}
    assert names == dict.fromkeys(names) | {2: "new"}
    if replica.format == DELTA:
        assert GONE not in open_table(replica.folder, "T").metadata().configuration


def test_columns_of_a_layout_stay(replica: Replica, database: Database) -> None:
    """Values come into partitions, sorted in Iceberg; a column of a partition does not go."""
    layout: dict[str, Any] = {"partition_by": ["Version"]}
    if replica.format == ICEBERG:
        layout["sort_by"] = ["Id"]
    more = {"layouts": {"T": layout}, "dropped_columns": "drop"}
    write_table(database, *range(6), Version=1)
    write_table(database, *range(6, 9), Version=2)
    replica.step(**more)
    change_schema(database, FIVE, TWICE)
    write_table(database, 1, 12, Version=3)
    assert not replica.step(**more)
    assert {row["Five"] for row in replica.read().values()} == {5}
    change_schema(database, "ALTER TABLE T DROP COLUMN Twice", "ALTER TABLE T DROP COLUMN Version")
    with pytest.raises(StreamingQueryException, match="partitioned or sorted by Version"):
        replica.step(dropped_columns="drop")


def test_copies_that_keep_more_keep_dropped_columns(replica: Replica, database: Database) -> None:
    """And have no values for new ones in what was deleted, so that these are refused."""
    more = {"mode": HISTORY, "stream": True}
    change_schema(database, NAME)
    write_table(database, *range(4), Version=1, Name="old")
    replica.step(**more)
    change_schema(database, DROP)
    with database.batch() as batch:
        batch.delete("T", KeySet(keys=[[0]]))
        batch.insert("T", ("Id", "Version"), [(7, 7)])
    assert not replica.step(**more)
    copied = as_of(f"{replica.format}:{replica.folder}").read("T", all_rows=True).to_pylist()
    names = {(row["Id"], row["Name"]) for row in copied}
    assert names == {*((n, "old") for n in range(4)), (0, None), (7, None)}
    before = last_cut(replica.folder)
    change_schema(database, FIVE)
    with pytest.raises(StreamingQueryException, match="rename the folder of the copy"):
        replica.step(**more)
    assert last_cut(replica.folder) == before


def test_values_find_any_key(
    spark: SparkSession, create_database: CreateDatabase, evolving: str, tmp_path: Path
) -> None:
    """NULL, NaN and a negative zero; names that have to be quoted; a table without rows."""
    database = create_database(
        "CREATE TABLE T (Part FLOAT64, Id INT64, Code BYTES(MAX), `order` INT64)"
        " PRIMARY KEY (Part, Id DESC, Code)",
        "CREATE TABLE U (Id INT64, Version INT64) PRIMARY KEY (Id)",
        "CREATE TABLE Empty (Id INT64, Version INT64) PRIMARY KEY (Id)",
    )
    make_watchable(database, "T", "U", "Empty")
    keys = [(None, 1, b"eA=="), (math.nan, 1, b"eA=="), (-0.0, None, b""), (1.5, 2, None)]
    with database.batch() as batch:
        rows = [(*key, number) for number, key in enumerate(keys)]
        batch.insert("T", ("Part", "Id", "Code", "order"), rows)
    tables = ("T", "U", "Empty")
    replicate_by_spark(spark, database, tmp_path, tables, format=evolving)
    change_schema(
        database,
        "ALTER TABLE T ADD COLUMN `from` INT64 AS (`order` + 10) STORED",
        "ALTER TABLE Empty ADD COLUMN Five INT64 DEFAULT (5)",
        "ALTER TABLE Empty ADD COLUMN Twice INT64 AS (Version * 2) STORED",
    )
    write_table(database, 1, table="U", Version=1)
    reports = replicate_by_spark(spark, database, tmp_path, tables, format=evolving)
    assert not any(report.loaded for report in reports)
    assert_equal(database, tmp_path)
    there = read_rows(tmp_path, "T")
    assert {row["order"]: row["from"] for row in there} == {n: n + 10 for n in range(4)}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"format": PARQUET, "dropped_columns": "keep"}, "use another format"),
        ({"format": DELTA, "dropped_columns": "gone"}, "use one of load, keep, drop"),
        ({"format": DELTA, "mode": HISTORY, "dropped_columns": "drop"}, "keeps columns"),
    ],
)
def test_what_does_not_work_is_refused(more: dict[str, Any], message: str) -> None:
    request = ReplicaRequest("projects/p1/instances/i1/databases/d1", ("T",), "/x", **more)
    with pytest.raises(ConfigurationError, match=message):
        request.resolve()
