"""The reader of a Spark query while the schema changes: its classes, in a loop that plans, reads,
commits and starts again as Spark's micro-batches do, without a Spark."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from fixtures.changing_schemas import (
    change_schema,
    index_ddl,
    reshard_ddl,
    shards_ddl,
    table_ddl,
    watchable_ddl,
    write,
)
from fixtures.consumers import open_reader
from fixtures.spark import options_of
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from pyspark.sql.datasource import InputPartition

from watcher.consumers.positions import SpannerPositions
from watcher.model.errors import NotWatchableError, SchemaChangedError
from watcher.runners.spark import ahead
from watcher.runners.spark.batch import make_batch_reader
from watcher.runners.spark.few_rows import FEW_BYTES, FEW_ROWS
from watcher.runners.spark.resolution import resolve_scan, resolve_snapshot_scan
from watcher.runners.spark.spark_versions import ReadAllAvailable, ReadMaxRows
from watcher.runners.spark.streaming import ChangesReader
from watcher.settings.spark_parsing import parse_source_options
from watcher.spanner.timestamps import format_timestamp

LONG_AGO = "1970-01-02T00:00:00Z"
STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'NEW_ROW')"
CreateDatabase = Callable[..., Database]
Row = dict[str, Any]


def given(database: Database, **options: str) -> dict[str, str]:
    names = {"startingTimestamp": LONG_AGO, "idleSeconds": "0"}
    return options_of(database, **names | options)


class Query:
    """A query with its checkpoint: offsets as JSON, and how many batches are committed."""

    def __init__(self, database: Database, **options: str) -> None:
        self._given = given(database, **options)
        self.reader = self._fresh()
        self.offsets = [json.dumps(self.reader.initialOffset())]
        self.committed = 0

    def _fresh(self) -> ChangesReader:
        return open_reader(self._given)

    def set_options(self, **options: str) -> None:
        """For the processes that are started from now on."""
        self._given |= options

    def restart(self) -> None:
        """Ends the process and starts another; what is planned stays planned."""
        self.reader.stop()
        self.reader = self._fresh()
        assert json.dumps(self.reader.initialOffset()) == json.dumps(json.loads(self.offsets[0]))

    def plan(self) -> bool:
        """Plans the next batch; False when there is nothing new."""
        if len(self.offsets) > self.committed + 1:
            return True
        start = json.loads(self.offsets[-1])
        limit = self.reader.getDefaultReadLimit()
        assert isinstance(limit, ReadAllAvailable | ReadMaxRows)
        end = self.reader.latestOffset(start, limit)
        if end == start:
            return False
        self.offsets.append(json.dumps(end))
        return True

    def read(self) -> list[Row]:
        """The rows of the batch that is planned, read on other machines."""
        parts = pickle.loads(pickle.dumps(self.list_tasks()))
        reader = pickle.loads(pickle.dumps(self.reader))
        rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
        return sorted(rows, key=repr)

    def list_tasks(self) -> list[InputPartition]:
        """The tasks of the batch that is planned."""
        start, end = (json.loads(text) for text in self.offsets[self.committed :][:2])
        return list(self.reader.partitions(start, end))

    def commit(self) -> None:
        self.committed += 1
        self.reader.commit(json.loads(self.offsets[self.committed]))

    def step(self, again: bool = False) -> list[Row]:
        """One batch; ``again``: executed twice, the second time by a process that was started
        between, with the same rows."""
        if not self.plan():
            return []
        rows = self.read()
        if again:
            self.restart()
            assert self.read() == rows
        self.commit()
        return rows

    def drain(self, again: bool = False) -> list[Row]:
        """Batches until two in a row hold nothing."""
        drained: list[Row] = []
        empty = 0
        while empty < 2:
            rows = self.step(again)
            drained += rows
            empty = 0 if rows else empty + 1
        return drained

    @property
    def tables(self) -> list[str] | None:
        """Those that the newest offset names."""
        names: list[str] | None = json.loads(self.offsets[-1]).get("tables")
        return names


def row_ids(rows: list[Row]) -> list[tuple[str, int]]:
    return sorted((row["table"], json.loads(row["key"])["Id"]) for row in rows)


def values_of(row: Row) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(row["values"])
    return values


CAPTURES: dict[str, dict[str, str]] = {
    "poll": {},
    "change-stream": {"capture": "change-stream"},
}


def query_of_all(database: Database, capture: str, **more: str) -> Query:
    start = {"startingTimestamp": "latest"} if capture == "change-stream" else {}
    return Query(database, tables="*", **CAPTURES[capture] | start | more)


# Idle tables.


@pytest.mark.parametrize("capture", CAPTURES)
def test_an_empty_batch_is_never_followed_by_another_at_once(
    create_database: CreateDatabase, capture: str
) -> None:
    database = create_database(*watchable_ddl("T"), STREAM)
    query = query_of_all(database, capture, idleSeconds="1e-6")  # over when the next plan begins
    planned = []
    for _ in range(6):
        planned.append(query.plan())
        if planned[-1]:
            assert query.read() == []
            query.commit()
    assert planned == [True, False] * 3
    write(database, 1)
    assert row_ids(query.step()) == [("T", 1)]


# Tasks.


@pytest.mark.parametrize(("rows_per_slice", "tasks"), [("100", 1), ("6", 2), ("3", 3)])
def test_a_task_reads_few_rows_of_several_tables(
    create_database: CreateDatabase, rows_per_slice: str, tasks: int
) -> None:
    tables = ("T", "U", "V")
    database = create_database(*(each for table in tables for each in watchable_ddl(table)))
    query = Query(database, tables="*", rowsPerSlice=rows_per_slice)
    for table in tables:
        write(database, *range(3), table=table)
    assert query.plan()
    assert len(query.list_tasks()) == tasks
    assert row_ids(query.read()) == [(table, number) for table in tables for number in range(3)]


def count_rows_of_driver(query: Query) -> list[int | None]:
    """How many rows each slice of the planned batch brings with it; None: its task asks Spanner."""
    slices = [each for task in query.list_tasks() for each in task.planned]  # type: ignore[attr-defined]
    return [each.rows and sum(batch.num_rows for batch in each.rows) for each in slices]


@pytest.mark.parametrize(
    ("rows", "size", "brought"), [(3, 10, 3), (FEW_ROWS + 1, 10, None), (3, FEW_BYTES, None)]
)
def test_few_small_rows_are_read_while_spark_writes_its_offset(
    create_database: CreateDatabase, rows: int, size: int, brought: int | None
) -> None:
    added = "ALTER TABLE T ADD COLUMN Payload STRING(MAX)"
    database = create_database(*watchable_ddl("T"), added)
    query = Query(database, table="T")
    write_large(database, 0, rows, size)
    assert query.plan()
    assert count_rows_of_driver(query) == [brought]
    assert len(query.step(again=True)) == rows


def test_rows_that_the_driver_cannot_read_are_left_to_the_tasks(
    create_database: CreateDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = create_database(*watchable_ddl("T"))
    query = Query(database, tables="*")
    write(database, 1)

    def refuse(*_: object) -> None:
        raise SchemaChangedError("a column was dropped")

    with monkeypatch.context() as patched:
        patched.setattr(ahead, "read_slice", refuse)
        assert query.plan()
        assert count_rows_of_driver(query) == [None]
    assert row_ids(query.step()) == [("T", 1)]


@pytest.mark.parametrize("changed", [True, False])
def test_the_row_of_the_window_needs_no_task_of_its_own(
    create_database: CreateDatabase, changed: bool
) -> None:
    database = create_database(*watchable_ddl("T"))
    query = Query(database, tables="*", arrowRows="true")
    if changed:
        write(database, 1)
    assert query.plan()
    assert len(query.list_tasks()) == 1
    assert [row["table"] for row in query.read() if row["window"] is None] == ["T"] * changed
    assert len([row for row in query.read() if row["window"] is not None]) == 1


# Tables that come and go.


@pytest.mark.parametrize("consumer", [{}, {"consumer": "c"}])
@pytest.mark.parametrize("capture", CAPTURES)
def test_a_table_made_watchable_while_it_runs_comes_with_its_first_rows(
    create_database: CreateDatabase, capture: str, consumer: dict[str, str]
) -> None:
    database = create_database(*watchable_ddl("T"), STREAM)
    query = query_of_all(database, capture, **consumer)
    query.drain()
    write(database, 1)
    assert row_ids(query.drain()) == [("T", 1)]
    assert query.tables == ["T"]
    change_schema(database, *watchable_ddl("U"))
    write(database, 2, 3, table="U")
    write(database, 4)
    assert row_ids(query.drain(again=True)) == [("T", 4), ("U", 2), ("U", 3)]
    assert query.tables == ["T", "U"]
    write(database, 5, table="U")
    query.restart()
    assert row_ids(query.drain()) == [("U", 5)]
    if consumer:
        assert set(SpannerPositions(database).load_all("c")) == {"T", "U"}


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_table_made_watchable_while_it_is_down_comes_with_its_first_rows(
    create_database: CreateDatabase, capture: str
) -> None:
    database = create_database(*watchable_ddl("T"), STREAM)
    query = query_of_all(database, capture)
    query.drain()
    change_schema(database, *watchable_ddl("U"))
    write(database, 2, 3, table="U")
    query.restart()
    assert row_ids(query.drain(again=True)) == [("U", 2), ("U", 3)]


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_table_that_comes_after_a_batch_was_planned_is_not_in_it(
    create_database: CreateDatabase, capture: str
) -> None:
    database = create_database(*watchable_ddl("T"), STREAM)
    query = query_of_all(database, capture)
    query.drain()
    write(database, 1)
    assert query.plan()
    change_schema(database, *watchable_ddl("U"))
    write(database, 2, table="U")
    query.restart()
    assert row_ids(query.step(again=True)) == [("T", 1)]
    assert query.tables == ["T"]
    assert row_ids(query.drain()) == [("U", 2)]


def test_one_table_may_go_while_another_one_comes(create_database: CreateDatabase) -> None:
    database = create_database(*watchable_ddl("T"), *watchable_ddl("U"))
    query = Query(database, tables="*")
    write(database, 1, table="U")
    assert row_ids(query.drain()) == [("U", 1)]
    change_schema(database, "DROP INDEX UByTime", "DROP TABLE U", *watchable_ddl("V"))
    write(database, 2)
    write(database, 3, table="V")
    assert row_ids(query.drain(again=True)) == [("T", 2), ("V", 3)]
    change_schema(database, *watchable_ddl("U", 8))
    write(database, 7, table="U")
    assert row_ids(query.drain(again=True)) == [("U", 7)]


def test_a_table_whose_index_is_made_again_does_not_come_twice(
    create_database: CreateDatabase,
) -> None:
    database = create_database(*watchable_ddl("T"), *watchable_ddl("U"))
    query = Query(database, tables="*", maxRowsPerBatch="2")
    write(database, 1)
    write(database, 1, table="U")
    query.drain()
    write(database, 2)
    for key in range(2, 5):
        write(database, key, table="U")
    change_schema(database, "DROP INDEX TByTime")
    for key in range(5, 8):
        write(database, key)
        write(database, key, table="U")
    change_schema(database, index_ddl("T"))
    for key in range(8, 11):
        write(database, key)
    counts = Counter(row_ids(query.drain(again=True)))
    assert set(counts) == {("T", key) for key in (2, *range(5, 11))} | {
        ("U", key) for key in range(2, 8)
    }
    assert max(counts.values()) == 1


def test_a_quiet_table_whose_index_is_made_again_does_not_come_twice(
    create_database: CreateDatabase,
) -> None:
    database = create_database(*watchable_ddl("T"), *watchable_ddl("U"))
    query = Query(database, tables="*", maxRowsPerBatch="2")
    write(database, 1)
    query.drain()
    change_schema(database, "DROP INDEX TByTime")
    for key in range(8):
        write(database, key, table="U")
    change_schema(database, index_ddl("T"))
    write(database, 8, table="U")
    assert row_ids(query.drain(again=True)) == [("U", key) for key in range(9)]


def test_a_table_that_cannot_be_polled_any_more_is_not_left_out_silently(
    create_database: CreateDatabase,
) -> None:
    database = create_database(*watchable_ddl("T"), *watchable_ddl("U"))
    query = Query(database, tables="*")
    query.drain()
    change_schema(database, "DROP INDEX TByTime")
    write(database, 1, table="U")
    with pytest.raises(NotWatchableError, match="T"):
        query.plan()
    change_schema(database, index_ddl("T"))
    write(database, 2)
    assert row_ids(query.drain()) == [("T", 2), ("U", 1)]


# Shards.


@pytest.mark.parametrize("options", [{"table": "T"}, {"tables": "*"}, {"tables": "T,U"}])
@pytest.mark.parametrize("down", [False, True])
def test_all_rows_come_after_resharding(
    create_database: CreateDatabase, options: dict[str, str], down: bool
) -> None:
    database = create_database(*watchable_ddl("T"), *watchable_ddl("U"))
    query = Query(database, **options)
    write(database, 0)
    query.drain()
    write(database, 1, 2, 3)
    assert query.plan()
    change_schema(database, *reshard_ddl("T", 8))
    write(database, *range(4, 14))
    if down:
        query.restart()
    first = query.read()
    query.commit()
    rows = first + query.drain(again=True)
    keys = [row["Id"] for row in rows] if "table" in options else [k for _, k in row_ids(rows)]
    assert sorted(keys) == list(range(1, 14))


def test_a_batch_of_another_table_does_not_hide_new_shards(
    create_database: CreateDatabase,
) -> None:
    database = create_database(*watchable_ddl("T"), *watchable_ddl("U"))
    query = Query(database, tables="*")
    query.drain()
    change_schema(database, *reshard_ddl("T", 8))
    with database.batch() as batch:
        batch.insert("T", ["Id"], [(7,)])
        batch.insert("U", ["Id"], [(1,)])
    assert row_ids(query.step(again=True)) == [("T", 7), ("U", 1)]


# Batches that are executed again.


def test_a_cut_batch_is_the_same_when_it_is_executed_again(
    create_database: CreateDatabase,
) -> None:
    database = create_database(*watchable_ddl("T"), *watchable_ddl("U"), *watchable_ddl("V"))
    query = Query(database, tables="*", maxRowsPerBatch="15")
    write(database, 99, table="U")
    write(database, 98, table="V")
    for key in range(30):
        write(database, key)
    # The only row of U is deleted, and that of V changes, so that neither is among the changed.
    with database.batch() as batch:
        batch.delete("U", KeySet(keys=[(99,)]))
    write(database, 98, table="V", Version=1)
    assert query.plan()
    rows = query.read()
    assert {("U", 99), ("V", 98)} <= set(row_ids(rows))
    write(database, 3, Version=1)
    with database.batch() as batch:
        batch.delete("T", KeySet(keys=[(5,)]))
    query.restart()
    assert query.read() == rows
    query.commit()
    counts = Counter(row_ids(rows + query.drain(again=True)))
    assert set(counts) == {("T", key) for key in range(30)} | {("U", 99), ("V", 98)}
    assert sorted(row for row, count in counts.items() if count > 1) == [("T", 3), ("V", 98)]


@pytest.mark.parametrize("max_rows", ["0", "3"])
def test_a_batch_is_the_same_after_deletes_and_changes(
    create_database: CreateDatabase, max_rows: str
) -> None:
    database = create_database(*watchable_ddl("T"))
    query = Query(database, table="T", maxRowsPerBatch=max_rows)
    for key in range(10):
        write(database, key, Version=1)
    assert query.plan()
    rows = query.read()
    write(database, *range(5), Version=2)
    with database.batch() as batch:
        batch.delete("T", KeySet(keys=[(1,), (7,)]))
    query.restart()
    assert query.read() == rows
    query.commit()
    rest = {row["Id"]: row["Version"] for row in query.drain(again=True)}
    assert {key: rest[key] for key in (0, 2, 3, 4)} == dict.fromkeys((0, 2, 3, 4), 2)


# Backlogs.


def test_a_backlog_over_changes_of_the_schema_is_whole(create_database: CreateDatabase) -> None:
    database = create_database(*watchable_ddl("T"))
    query = Query(database, tables="*", maxRowsPerBatch="3")
    write(database, 0, Version=0)
    query.drain()
    version = 0
    truth: dict[int, int] = {}

    def commits(**values: Any) -> None:
        nonlocal version
        for key in (*range(6), 3, 10 + version):
            version += 1
            write(database, key, Version=version, **values)
            truth[key] = version

    commits()
    change_schema(database, "ALTER TABLE T ADD COLUMN Extra STRING(MAX)")
    commits(Extra="x")
    change_schema(database, "DROP INDEX TByTime")
    commits(Extra="x")
    change_schema(database, index_ddl("T"))
    commits(Extra="x")
    change_schema(database, "ALTER TABLE T DROP COLUMN Extra")
    commits()
    change_schema(database, *reshard_ddl("T", 8))
    commits()
    query.restart()
    rows = query.drain(again=True)
    newest: dict[int, int] = {}
    for row in sorted(rows, key=lambda row: row["_commit_timestamp"]):
        newest[values_of(row)["Id"]] = values_of(row)["Version"]
    assert newest == truth
    assert len({row["_change_id"] for row in rows}) == len(rows)


def test_a_column_that_was_not_there_yet_is_null(create_database: CreateDatabase) -> None:
    database = create_database(*watchable_ddl("T"))
    query = Query(database, table="T", maxRowsPerBatch="2")
    for key in range(6):
        write(database, key)
    change_schema(database, "ALTER TABLE T ADD COLUMN Extra STRING(MAX)")
    for key in range(6, 12):
        write(database, key, Extra="x")
    query.restart()
    extras = {row["Id"]: row["Extra"] for row in query.drain(again=True)}
    assert set(extras) == set(range(12))
    assert all(extras[key] is None for key in range(6))
    assert all(extras[key] == "x" for key in range(6, 12))


def test_a_dropped_column_stops_the_query(create_database: CreateDatabase) -> None:
    database = create_database(*watchable_ddl("T"))
    change_schema(database, "ALTER TABLE T ADD COLUMN Extra STRING(MAX)")
    query = Query(database, table="T")
    write(database, 1, Extra="x")
    assert [row["Extra"] for row in query.drain()] == ["x"]
    write(database, 2, Extra="y")
    assert query.plan()
    change_schema(database, "ALTER TABLE T DROP COLUMN Extra")
    write(database, 3)
    assert [row["Extra"] for row in query.step()] == ["y"]
    with pytest.raises(SchemaChangedError, match="Extra was dropped"):
        query.step()
    query.restart()
    rows = query.drain(again=True)
    assert [(row["Id"], "Extra" in row) for row in rows] == [(3, False)]


def test_a_dropped_column_is_null_by_choice(create_database: CreateDatabase) -> None:
    database = create_database(*watchable_ddl("T"))
    change_schema(database, "ALTER TABLE T ADD COLUMN Extra STRING(MAX)")
    query = Query(database, table="T", onSchemaChange="nulls", maxRowsPerBatch="2")
    query.drain()
    for key in range(4):
        write(database, key, Extra="x")
    change_schema(database, "ALTER TABLE T DROP COLUMN Extra")
    for key in range(4, 8):
        write(database, key)
    extras = {row["Id"]: row["Extra"] for row in query.drain()}
    assert extras == dict.fromkeys(range(4), "x") | dict.fromkeys(range(4, 8))


@pytest.mark.parametrize("capture", CAPTURES)
def test_json_has_the_columns_of_the_end_of_its_batch(
    create_database: CreateDatabase, capture: str
) -> None:
    database = create_database(*watchable_ddl("T"), STREAM)
    query = query_of_all(database, capture)
    query.drain()
    write(database, 1)
    assert query.plan()
    change_schema(database, "ALTER TABLE T ADD COLUMN Extra STRING(MAX)")
    write(database, 2, Extra="x")
    (first,) = query.step(again=True)
    assert "Extra" not in values_of(first)
    assert query.plan()
    change_schema(database, "ALTER TABLE T DROP COLUMN Extra")
    write(database, 3)
    (second,) = query.step(again=True)
    assert values_of(second)["Extra"] == "x"
    (third,) = query.drain(again=True)
    assert "Extra" not in values_of(third)


# Backfills.


@pytest.mark.parametrize("restarted", [False, True])
def test_a_table_that_is_added_in_the_middle_of_a_backfill_comes_after_it(
    create_database: CreateDatabase, restarted: bool
) -> None:
    database = create_database(*watchable_ddl("T"), *watchable_ddl("V"))
    write(database, *range(10))
    write(database, *range(10), table="V")
    given = {"startingTimestamp": "earliest", "backfillRowsPerBatch": "4", "consumer": "c"}
    query = Query(database, tables="*", **given)
    rows = query.step(again=restarted)
    change_schema(database, *watchable_ddl("U"))
    write(database, 1, 2, table="U")
    write(database, 10)
    rows += query.step(again=restarted)
    write(database, 3, table="U")
    rows += query.drain(again=restarted)
    assert row_ids(rows) == (
        [("T", key) for key in range(11)]
        + [("U", key) for key in (1, 2, 3)]
        + [("V", key) for key in range(10)]
    )
    assert set(SpannerPositions(database).load_all("c")) == {"T", "U", "V"}


# Offsets of earlier releases.


@pytest.mark.parametrize("version", [1, 2])
def test_offsets_that_name_no_tables_go_on(create_database: CreateDatabase, version: int) -> None:
    database = create_database(*watchable_ddl("T"), *watchable_ddl("U"))
    query = Query(database, tables="*")
    write(database, 1)
    write(database, 1, table="U")
    assert len(query.drain()) == 2
    write(database, 2)
    assert query.plan()
    query.offsets = [
        json.dumps(rewrite_offset(json.loads(text), version)) for text in query.offsets
    ]
    write(database, 2, table="U")
    query.reader.stop()
    query.reader = query._fresh()
    assert row_ids(query.step()) == [("T", 2)]
    change_schema(database, *watchable_ddl("V"))
    write(database, 3, table="V")
    assert row_ids(query.drain()) == [("U", 2), ("V", 3)]
    assert query.tables == ["T", "U", "V"]


def rewrite_offset(offset: dict[str, Any], version: int) -> dict[str, Any]:
    """An offset as an earlier release wrote it."""
    return {k: v for k, v in offset.items() if k != "tables"} | {"version": version}


# Batch reads of the past.


def read_batch(database: Database, snapshot: bool = False, **options: str) -> list[Row]:
    names = {k: v for k, v in given(database).items() if k in ("project", "instance", "database")}
    source = parse_source_options(names | options)
    reader = pickle.loads(
        pickle.dumps(
            make_batch_reader((resolve_snapshot_scan if snapshot else resolve_scan)(source))
        )
    )
    rows = [r for part in reader.partitions() for b in reader.read(part) for r in b.to_pylist()]
    return sorted(rows, key=repr)


def test_batch_reads_of_the_past_have_nulls_in_newer_columns(
    create_database: CreateDatabase,
) -> None:
    database = create_database(*watchable_ddl("T"))
    before = format_timestamp(write(database, 1, Version=1))
    change_schema(database, "ALTER TABLE T ADD COLUMN Extra STRING(MAX)")
    change_schema(database, *reshard_ddl("T", 8))
    write(database, 1, 7, Version=2, Extra="x")
    choices: list[dict[str, Any]] = [
        {"snapshotTimestamp": before},
        {"startingTimestamp": LONG_AGO, "endingTimestamp": before},
    ]
    for named in choices:
        (row,) = read_batch(database, table="T", **named)
        assert (row["Id"], row["Version"], row["Extra"]) == (1, 1, None)
    now = read_batch(database, table="T", startingTimestamp=before)
    assert [(row["Id"], row["Extra"]) for row in now] == [(1, "x"), (7, "x")]


def test_a_snapshot_needs_no_index_now_or_then(create_database: CreateDatabase) -> None:
    database = create_database(table_ddl("T"))
    before = format_timestamp(write(database, 1))
    assert [row["Id"] for row in read_batch(database, snapshot=True, table="T")] == [1]
    change_schema(database, shards_ddl("T", 2), index_ddl("T"))
    write(database, 2)
    (row,) = read_batch(database, table="T", snapshotTimestamp=before)
    assert row["Id"] == 1


def test_a_batch_read_of_all_tables_takes_those_of_its_end(create_database: CreateDatabase) -> None:
    database = create_database(*watchable_ddl("T"))
    before = format_timestamp(write(database, 1))
    change_schema(database, *watchable_ddl("U"))
    write(database, 2, table="U")
    named: dict[str, Any] = {"tables": "*", "startingTimestamp": LONG_AGO}
    assert row_ids(read_batch(database, endingTimestamp=before, **named)) == [("T", 1)]
    assert row_ids(read_batch(database, **named)) == [("T", 1), ("U", 2)]


# How much a batch holds.


def write_large(database: Database, first: int, count: int, size: int, table: str = "T") -> None:
    """One commit of so many rows of so many bytes."""
    with database.batch() as batch:
        rows = [(key, "x" * size) for key in range(first, first + count)]
        batch.insert_or_update(table, ("Id", "Payload"), rows)


PAYLOADS = "CREATE TABLE P (Id INT64, Payload STRING(MAX)) PRIMARY KEY (Id)"


def list_batch_sizes(query: Query, again: bool = False) -> list[int]:
    """The rows of each batch until nothing is left, without the empty ones."""
    sizes: list[int] = []
    while (rows := len(query.step(again))) or not sizes:
        sizes.append(rows)
    return sizes


def test_batches_of_a_stream_hold_whole_commits_up_to_a_limit(
    create_database: CreateDatabase,
) -> None:
    database = create_database(PAYLOADS, STREAM)
    query = query_of_all(database, "change-stream", maxRowsPerBatch="5")
    query.drain()
    for first, count in ((0, 2), (2, 3), (5, 9), (14, 1), (15, 4), (19, 1)):
        write_large(database, first, count, 10, "P")
    assert list_batch_sizes(query, again=True) == [5, 9, 5, 1]


def test_batches_of_a_stream_hold_so_many_bytes(create_database: CreateDatabase) -> None:
    database = create_database(PAYLOADS, STREAM)
    query = query_of_all(database, "change-stream", maxBytesPerBatch="10KiB")
    query.drain()
    for key in range(8):
        write_large(database, key, 1, 4_000 if key < 4 else 9, "P")
    assert list_batch_sizes(query) == [2, 6]


def test_a_batch_of_a_stream_comes_again_as_planned_with_another_limit(
    create_database: CreateDatabase,
) -> None:
    """The offset is in the checkpoint before the batch is run, and says what it holds."""
    database = create_database(PAYLOADS, STREAM)
    query = query_of_all(database, "change-stream", maxRowsPerBatch="3")
    query.drain()
    for key in range(9):
        write_large(database, key, 1, 10, "P")
    assert query.plan()
    rows = query.read()
    assert len(rows) == 3
    query.set_options(maxRowsPerBatch="100")
    query.restart()
    write_large(database, 0, 9, 20, "P")
    assert query.plan()
    assert query.read() == rows
    query.commit()
    assert len(query.drain()) == 15


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_stream_far_behind_comes_in_batches_that_follow_each_other(
    create_database: CreateDatabase, capture: str
) -> None:
    database = create_database(*watchable_ddl("T"), STREAM)
    query = query_of_all(database, capture, maxRowsPerBatch="4")
    query.drain()
    for key in range(20):
        write(database, key)
    delivered: list[Row] = []
    while rows := query.step():
        assert len(rows) <= 4
        earlier = [row["_commit_timestamp"] for row in delivered]
        assert not earlier or min(row["_commit_timestamp"] for row in rows) > max(earlier)
        delivered += rows
    assert row_ids(delivered) == [("T", key) for key in range(20)]


def test_polled_batches_hold_about_so_many_bytes(create_database: CreateDatabase) -> None:
    database = create_database(*watchable_ddl("T"), "ALTER TABLE T ADD COLUMN Payload STRING(MAX)")
    query = Query(database, table="T", maxBytesPerBatch="20KB")
    query.drain()
    for key in range(30):
        write_large(database, key, 1, 2_000)
    sizes = list_batch_sizes(query)
    assert sum(sizes) == 30
    assert 6 <= max(sizes) <= 10, "a row is somewhat more than its payload"


def test_pages_of_a_backfill_hold_about_so_many_bytes(create_database: CreateDatabase) -> None:
    database = create_database(*watchable_ddl("T"), "ALTER TABLE T ADD COLUMN Payload STRING(MAX)")
    write_large(database, 0, 30, 2_000)
    query = Query(database, table="T", startingTimestamp="earliest", maxBytesPerBatch="20KB")
    sizes = list_batch_sizes(query, again=True)
    assert sum(sizes) == 30
    assert 6 <= max(sizes) <= 10


def test_progress_counts_the_rows_that_a_batch_leaves(create_database: CreateDatabase) -> None:
    database = create_database(*watchable_ddl("T"))
    for number in range(6):
        write(database, number, Version=number)
    query = Query(database, tables="T", maxRowsPerBatch="2")
    behind = []
    for _ in range(3):
        assert query.plan()
        reported = query.reader.reportLatestOffset()
        assert reported is not None
        behind.append(reported["rowsBehind"])
        query.read()
        query.commit()
    assert behind == [4, 2, 0]
