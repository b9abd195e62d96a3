"""Batch reads against the truth: every type; filters that Spanner checks; few columns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from fixtures.everything import (
    ADDED,
    NANOSECONDS,
    ROWS,
    UUID,
    row,
    rows,
    write,
    write_nanoseconds,
)
from fixtures.singers import SINGERS, address_of, capture_of
from fixtures.spark import batch, options_of
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spanner_schema.model.schema import Dialect
from watcher.model.errors import ConfigurationError
from watcher.runners.spark import spark_versions
from watcher.runners.spark.source import SpannerChanges
from watcher.runners.spark.spark_versions import PUSHES_FILTERS
from watcher.spanner.queries import QueryClient
from watcher.spanner.timestamps import format_timestamp

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
OURS = ADDED | {"_commit_timestamp", "_shard_id", "_change_id"}


def now(database: Database) -> str:
    """A timestamp that a strong read was served at."""
    at = QueryClient(address_of(database)).fetch_read_timestamp()
    return format_timestamp(at)


def rows_by_id(df: DataFrame) -> dict[int, dict[str, Any]]:
    """Rows by Id, without our columns; every NaN is the same one."""
    rows = df.toArrow().to_pylist()
    assert len({each["Id"] for each in rows}) == len(rows), "a row came twice"
    return {
        each["Id"]: {n: comparable(v) for n, v in each.items() if n not in OURS} for each in rows
    }


def comparable(value: Any) -> Any:
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def comparable_by_id(written: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    return {each["Id"]: {n: comparable(v) for n, v in each.items()} for each in written}


@pytest.mark.both_dialects
def test_a_snapshot_is_the_table_as_it_was_in_every_type(
    spark: SparkSession, everything: Database, dialect: Dialect
) -> None:
    write(everything, rows(dialect))
    then = now(everything)
    later = [row(number + 1, dialect) | {"Id": number} for number in range(ROWS)]
    write(everything, later)
    with everything.batch() as mutations:
        mutations.delete("Everything", KeySet(keys=[[later.pop(0)["Id"]]]))
    assert rows_by_id(batch(spark, everything, table="Everything", snapshotTimestamp=then)) == (
        comparable_by_id(rows(dialect))
    )
    assert rows_by_id(batch(spark, everything, table="Everything")) == comparable_by_id(later)


def test_changes_between_two_timestamps_are_those_rows_as_they_were_at_the_second(
    spark: SparkSession, everything: Database
) -> None:
    write(everything, rows())
    begin = now(everything)
    changed = [row(number + 3) | {"Id": number} for number in range(10, 30)]
    write(everything, changed[:15])
    write(everything, changed[5:])
    end = now(everything)
    write(everything, [row(number + 7) | {"Id": number} for number in range(40, 50)])
    window = {"table": "Everything", "startingTimestamp": begin, "endingTimestamp": end}
    assert rows_by_id(batch(spark, everything, **window)) == comparable_by_id(changed)
    sliced = batch(spark, everything, **window, rowsPerSlice=2, shardGroups=7)
    assert sliced.rdd.getNumPartitions() > 2
    assert rows_by_id(sliced) == comparable_by_id(changed)
    assert rows_by_id(batch(spark, everything, **(window | {"startingTimestamp": end}))) == {}


def test_rows_that_changed_again_after_the_end_belong_to_the_window_all_the_same(
    spark: SparkSession, singers: Database
) -> None:
    write_names(singers, range(20), "then")
    end = now(singers)
    write_names(singers, range(10), "later")
    with singers.batch() as mutations:
        mutations.delete("Singers", KeySet(keys=[[19]]))
    changed = batch(spark, singers, startingTimestamp="earliest", endingTimestamp=end)
    names = [(r.SingerId, r.LastName) for r in changed.orderBy("SingerId").collect()]
    assert names == [(k, "then") for k in range(20)]


def write_names(database: Database, keys: range, name: str) -> None:
    with database.batch() as mutations:
        rows = [(k, name) for k in keys]
        mutations.insert_or_update("Singers", ("SingerId", "LastName"), rows)


def test_nanoseconds_are_cut_off_or_text_or_refused(
    spark: SparkSession, everything: Database
) -> None:
    write_nanoseconds(everything, 1)
    cut = batch(spark, everything, table="Everything").select("Ti", "Tis").toArrow().to_pylist()
    assert [str(value) for value in (cut[0]["Ti"], cut[0]["Tis"][0], cut[0]["Tis"][1])] == [
        "2026-01-02 03:04:05.123456+00:00",
        "2026-01-02 03:04:05.123456+00:00",
        "None",
    ]
    whole = batch(spark, everything, table="Everything", nanoseconds="string")
    assert whole.where(f"Ti = '{NANOSECONDS}'").select("Ti", "Tis").collect() == [
        (NANOSECONDS, [NANOSECONDS, None])
    ]
    refused = batch(spark, everything, table="Everything", nanoseconds="refuse")
    with pytest.raises(PySparkException, match=f"the TIMESTAMP {NANOSECONDS} is finer"):
        refused.select("Ti").collect()


EXACT = [
    "Bo",
    "NOT Bo",
    "Bo IS NULL",
    "In = 9223372036854775807",
    "In < 0 AND In IS NOT NULL",
    "In <=> NULL",
    "In IN (0, -1)",
    "NOT (In IN (0, -1))",
    "Nu = 0.000000001",
    "Nu > 1",
    "Nu <= -1.5",
    "St = ''",
    "St >= 'b'",
    "St LIKE 'ä%'",
    "St LIKE '%break%'",
    "contains(St, '%_')",
    "St <> 'a'",
    "By = X'00FFFE'",
    "Da < DATE'1970-01-01'",
    "Da = DATE'9999-12-31'",
    "Ti > TIMESTAMP'2026-01-01 00:00:00'",
    "Ti = TIMESTAMP'2026-01-02 03:04:05.123456'",
    "Ti <> TIMESTAMP'2026-01-02 03:04:05.123456'",
    "Js IS NOT NULL AND Ins IS NULL",
    "In > 0 AND St IS NOT NULL AND Da > DATE'2000-01-01'",
    "_commit_timestamp > TIMESTAMP'2020-01-01 00:00:00' AND _shard_id = 1",
]
"""Spanner checks all of it: what the scan gives is what is asked for."""

LEFT = [
    "Fl = double('NaN')",
    "Fl > 0",
    "Fs = float('-Infinity')",
    f"Uu = '{UUID}'",
    "Js = '1'",
    "size(Ins) > 1",
    "Ti IN (TIMESTAMP'2026-01-02 03:04:05.123456', TIMESTAMP'0001-01-01 00:00:00')",
    "Ti > TIMESTAMP'9999-12-31 23:59:59.999998' AND Ti <= TIMESTAMP'9999-12-31 23:59:59.999999'",
    "In % 2 = 0",
    "In > 0 OR Bo",
    "_change_id IS NOT NULL",
]
"""Spark checks it, or some of it."""


def count_scanned(df: DataFrame) -> int:
    """How many rows came out of the scan of a query that has been run."""
    leaves = df._jdf.queryExecution().executedPlan().collectLeaves()
    metrics = [leaves.apply(i).metrics().get("numOutputRows") for i in range(leaves.size())]
    return sum(int(metric.get().value()) for metric in metrics)


@pytest.fixture
def filter_pushdown(spark: SparkSession) -> Iterator[dict[str, str]]:
    if not PUSHES_FILTERS:
        pytest.skip("this version of Spark keeps filters to itself")
    spark.conf.set(PUSHDOWN, "true")
    yield {"table": "Everything", "pushFilters": "true"}
    spark.conf.unset(PUSHDOWN)


@pytest.mark.both_dialects
def test_filters_give_spark_s_own_rows_and_are_checked_by_spanner(
    spark: SparkSession,
    everything: Database,
    filter_pushdown: dict[str, str],
    dialect: Dialect,
) -> None:
    write(everything, rows(dialect))
    write_nanoseconds(everything, ROWS)
    own = spark.createDataFrame(batch(spark, everything, table="Everything").toArrow())
    between = filter_pushdown | {"startingTimestamp": "earliest"}
    texts = EXACT + LEFT
    marks = own.selectExpr("Id", *(f"({text}) AS is_{n}" for n, text in enumerate(texts))).collect()
    for number, text in enumerate(texts):
        ids = sorted(each.Id for each in marks if each[f"is_{number}"])
        # Both ways of reading check filters by the same code; a snapshot has many tasks.
        filtered = batch(spark, everything, **(between if number % 8 else filter_pushdown)).where(
            text
        )
        table = filtered.toArrow()
        assert sorted(table.column("Id").to_pylist()) == ids, text
        if text in EXACT:
            assert count_scanned(filtered) == len(ids) < ROWS, text


@pytest.mark.parametrize("scan", ["snapshot", "changes"])
def test_filters_that_spark_keeps_to_itself_cannot_be_left_to_spanner(
    everything: Database, monkeypatch: pytest.MonkeyPatch, scan: str
) -> None:
    """As the process that plans sees Spark 4.0."""
    monkeypatch.setattr(spark_versions, "PUSHES_FILTERS", False)
    start = {"startingTimestamp": "earliest"} if scan == "changes" else {}
    options = options_of(everything, table="Everything", pushFilters="true", **start)
    source = SpannerChanges(options)
    with pytest.raises(ConfigurationError, match="'pushFilters' needs Spark"):
        source.reader(source.schema())


def test_queries_of_one_load_do_not_get_each_other_s_filters(
    spark: SparkSession, everything: Database, filter_pushdown: dict[str, str]
) -> None:
    write(everything, rows())
    loaded = batch(spark, everything, table="Everything", startingTimestamp="earliest")
    assert loaded.where("Id < 5").count() == 5
    assert loaded.count() == ROWS
    assert loaded.where("Id < 3").union(loaded.where("Id >= 35")).count() == 8
    for more in ({}, {"startingTimestamp": "earliest"}):
        table = filter_pushdown | more | {"tableOptions": '{"Everything": {"where": "Id >= 3"}}'}
        assert batch(spark, everything, **table).where("Id < 5").count() == 2
    spark.conf.set(PUSHDOWN, "false")
    with pytest.raises(PySparkException, match=PUSHDOWN):
        batch(spark, everything, **filter_pushdown).where("Id < 5").count()


def test_only_the_columns_of_a_schema_are_read(spark: SparkSession, everything: Database) -> None:
    write(everything, rows())
    address = address_of(everything)
    selected = (
        spark.read.format("spanner-changes")
        .schema("St STRING, Id BIGINT, _change_id STRING")
        .options(
            project=address.project,
            instance=address.instance,
            database=address.database,
            table="Everything",
        )
        .load()
    )
    everything.update_ddl(["ALTER TABLE Everything DROP COLUMN Nu"]).result(60)
    narrow = selected.where("Id < 5").orderBy("Id").collect()
    assert [(each.St, each.Id) for each in narrow] == [(row(k)["St"], k) for k in range(5)]
    assert len({each[2] for each in narrow}) == 5


@pytest.mark.ddl(SINGERS)
def test_a_table_without_an_index_or_a_timestamp(spark: SparkSession, database: Database) -> None:
    write_names(database, range(5), "name")
    with pytest.raises(PySparkException, match="spanner-watcher ddl apply"):
        batch(spark, database)
    database.update_ddl(
        ["ALTER TABLE Singers ADD COLUMN `At` TIMESTAMP OPTIONS (allow_commit_timestamp=true)"]
    ).result(60)
    assert batch(spark, database).count() == 5
    with pytest.raises(PySparkException, match="spanner-watcher ddl apply"):
        batch(spark, database, startingTimestamp="earliest")


def test_wrong_windows_are_refused(spark: SparkSession, singers: Database) -> None:
    end = format_timestamp(capture_of(singers).look(0)[0].end)
    wrong = [
        ({"endingTimestamp": end}, "needs 'startingTimestamp'"),
        ({"startingTimestamp": end, "endingTimestamp": "2020-01-01T00:00:00Z"}, "is before"),
        ({"startingTimestamp": end, "endingTimestamp": "2999-01-01T00:00:00Z"}, "is in the future"),
        ({"startingTimestamp": end, "snapshotTimestamp": end}, "use one or the other"),
        ({"snapshotTimestamp": "2020-01-01T00:00:00Z"}, "version_retention_period"),
        ({"snapshotTimestamp": "2999-01-01T00:00:00Z"}, "is in the future"),
    ]
    for options, words in wrong:
        with pytest.raises(PySparkException, match=words):
            batch(spark, singers, **options).collect()
