"""Change streams in Spark: typed columns, one form for all tables, envelopes, a replica.

A longer run: ``REPLICA_WINDOWS=100 python -m pytest tests/end_to_end/test_spark_change_stream.py``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fixtures.spark import batch, changes, drain, parquet
from fixtures.versions import TABLES, Row, Version, Writes, set_partition_mode, with_each_mode
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from watcher.model.change import Operation
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.queries import QueryClient
from watcher.spanner.timestamps import format_timestamp, to_micros

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'NEW_ROW_AND_OLD_VALUES')"
WINDOWS = int(os.environ.get("REPLICA_WINDOWS", "10"))


@pytest.fixture
def mode() -> str:
    """The partition mode of the stream; some tests are run with each."""
    return "IMMUTABLE_KEY_RANGE"


@pytest.fixture
def database(create_database: Callable[..., Database], mode: str) -> Database:
    return create_database(*TABLES, set_partition_mode(STREAM, mode))


def now(database: Database) -> str:
    address = DatabaseAddress.parse(database.name)
    return format_timestamp(QueryClient(address).fetch_read_timestamp())


def micros(moment: object) -> int:
    """A timestamp of Spark's, which Parquet gives back without a zone."""
    assert isinstance(moment, datetime)
    return to_micros(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def versions(rows: list[dict[str, object]]) -> dict[Row, list[Version]]:
    """Rows of the form for all tables, by row and in commit order."""
    ordered: dict[Row, list[Version]] = {}
    for each in sorted(rows, key=lambda row: str(row["_commit_timestamp"])):
        key, values, old = (json.loads(str(each[n])) for n in ("key", "values", "old_values"))
        version = Version(
            micros(each["_commit_timestamp"]),
            Operation(str(each["operation"])),
            values.get("Version"),
            old.get("Version"),
        )
        ordered.setdefault((str(each["table"]), key["Id"]), []).append(version)
    return ordered


@with_each_mode
def test_every_version_arrives_once_over_restarts(
    spark: SparkSession, database: Database, tmp_path: Path
) -> None:
    begin = now(database)
    writes = Writes(database, 1)
    more = {"tables": "*", "capture": "change-stream", "startingTimestamp": begin}
    for _ in range(3):
        writes.write(30)
        drain(changes(spark, database, **more), tmp_path)
    delivered = parquet(tmp_path).to_pylist()
    assert versions(delivered) == writes.truth
    assert len({each["_change_id"] for each in delivered}) == len(delivered)
    assert versions(batch(spark, database, **more).toArrow().to_pylist()) == writes.truth


@with_each_mode
def test_whole_tables_come_first(spark: SparkSession, database: Database, tmp_path: Path) -> None:
    writes = Writes(database, 2)
    writes.write(30)
    living = {row: writes.newest(row) for row in writes.truth if writes.newest(row) is not None}
    before = {row: len(each) for row, each in writes.truth.items()}
    more = {"tables": "T,U", "capture": "change-stream", "stream": "S"}
    drain(changes(spark, database, **more), tmp_path)
    first = parquet(tmp_path).to_pylist()
    assert {each["operation"] for each in first} == {"READ"}
    assert {
        (each["table"], json.loads(each["key"])["Id"]): json.loads(each["values"])["Version"]
        for each in first
    } == living
    writes.write(30)
    drain(changes(spark, database, **more), tmp_path)
    later = [each for each in parquet(tmp_path).to_pylist() if each["operation"] != "READ"]
    expected = {row: each[before.get(row, 0) :] for row, each in writes.truth.items()}
    assert versions(later) == {row: each for row, each in expected.items() if each}


@pytest.mark.both_dialects
def test_one_table_has_its_own_columns(
    spark: SparkSession, create_database: Callable[..., Database], tmp_path: Path
) -> None:
    database = create_database(
        "CREATE TABLE T (Id INT64, B BOOL, F FLOAT64, N NUMERIC, S STRING(MAX), Y BYTES(MAX),"
        " D DATE, M TIMESTAMP, J JSON, A ARRAY<INT64>, L INT64 AS (1 + 1) STORED)"
        " PRIMARY KEY (Id)",
        "CREATE CHANGE STREAM S FOR T OPTIONS (value_capture_type = 'NEW_ROW')",
    )
    begin = now(database)
    columns = ("Id", "B", "F", "N", "S", "Y", "D", "M", "J", "A")
    with database.batch() as written:
        written.insert(
            "T",
            columns,
            [
                (
                    1,
                    True,
                    1.5,
                    "1.25",
                    "text",
                    b"Ynl0ZXM=",
                    "2026-01-31",
                    "2026-01-31T12:00:00.123456Z",
                    '{"a":1}',
                    [1, None],
                ),
                (2, *[None] * 9),
            ],
        )
    with database.batch() as written:
        written.delete("T", KeySet(keys=[[2]]))
    more = {"table": "T", "capture": "change-stream", "startingTimestamp": begin}
    drain(changes(spark, database, **more), tmp_path)
    delivered = sorted(
        parquet(tmp_path).to_pylist(), key=lambda row: (row["Id"], row["_operation"])
    )
    assert [(row["Id"], row["_operation"]) for row in delivered] == [
        (1, "INSERT"),
        (2, "DELETE"),
        (2, "INSERT"),
    ]
    first = delivered[0]
    assert (first["B"], first["F"], str(first["N"]), first["S"], first["Y"]) == (
        True,
        1.5,
        "1.250000000",
        "text",
        b"bytes",
    )
    assert (str(first["D"]), json.loads(first["J"])) == ("2026-01-31", {"a": 1})
    assert first["A"] == [1, None]
    assert format_timestamp(micros(first["M"])) == "2026-01-31T12:00:00.123456Z"
    assert [delivered[1][name] for name in columns[1:]] == [None] * 9
    assert "L" not in first
    assert len({row["_transaction_id"] for row in delivered}) == 2


def test_what_a_stream_does_not_tell_is_refused(
    spark: SparkSession, create_database: Callable[..., Database]
) -> None:
    database = create_database(*TABLES, "CREATE CHANGE STREAM S FOR T")
    more = {"table": "T", "capture": "change-stream", "startingTimestamp": "latest"}
    with pytest.raises(PySparkException, match="set the option 'wholeRows' to 'true'"):
        changes(spark, database, **more)
    assert "_operation" in changes(spark, database, **more, wholeRows=True).columns
    with pytest.raises(PySparkException, match="does not watch table U"):
        changes(spark, database, **more | {"table": "U", "stream": "S"})
    with pytest.raises(PySparkException, match="'wholeRows' needs 'capture' = 'change-stream'"):
        changes(spark, database, table="T", wholeRows=True)


@pytest.mark.both_dialects
@with_each_mode
def test_keys_and_values_of_an_envelope(
    spark: SparkSession, database: Database, tmp_path: Path
) -> None:
    begin = now(database)
    with database.batch() as written:
        written.insert("T", ["Id", "Version", "Text"], [(1, 1, "a")])
    with database.batch() as written:
        written.update("T", ["Id", "Version"], [(1, 2)])
    with database.batch() as written:
        written.delete("T", KeySet(keys=[[1]]))
    more = {
        "table": "T",
        "capture": "change-stream",
        "startingTimestamp": begin,
        "envelope": "debezium",
    }
    drain(changes(spark, database, **more), tmp_path)
    messages = sorted(
        parquet(tmp_path).to_pylist(),
        key=lambda row: (row["_commit_timestamp"], row["value"] is None),
    )
    assert [json.loads(row["key"])["Id"] for row in messages] == [1] * 4
    events = [json.loads(row["value"]) for row in messages[:-1]]
    assert messages[-1]["value"] is None
    assert [(e["op"], e["before"] and e["before"]["Version"]) for e in events] == [
        ("c", None),
        ("u", 1),
        ("d", 2),
    ]
    assert [e["after"] and e["after"]["Version"] for e in events] == [1, 2, None]
    with pytest.raises(PySparkException, match="unknown envelope 'debesium'; did you mean"):
        changes(spark, database, **more | {"envelope": "debesium"})
    barriers = {"envelope": "ydb", "envelopeOptions": '{"barriers": true}'}
    with pytest.raises(PySparkException, match="need an order, which rows in Spark do not have"):
        changes(spark, database, **more | barriers)


def apply(target: Database, changed: DataFrame) -> None:
    """The changes of a micro-batch in one transaction, the last one of each row."""
    newest: dict[tuple[str, str], dict[str, object]] = {}
    order = ["_commit_timestamp", "_transaction_id", "_record_sequence"]
    for row in changed.orderBy(*order).toArrow().to_pylist():
        newest[row["table"], row["key"]] = row
    with target.batch() as written:
        for (table, key), row in newest.items():
            if row["operation"] == "DELETE":
                written.delete(table, KeySet(keys=[list(json.loads(key).values())]))
            else:
                values = json.loads(str(row["values"]))
                written.insert_or_update(table, list(values), [list(values.values())])


def contents(database: Database, at: object = None) -> list[list[object]]:
    """Both tables, as of a timestamp or now."""
    cells: list[list[object]] = []
    for table in ("T", "U"):
        with database.snapshot(**({"read_timestamp": at} if at else {})) as snapshot:
            names = ("Id", "Version", "Text")
            cells += ([table, *row] for row in snapshot.read(table, names, KeySet(all_=True)))
    return cells


@with_each_mode
def test_a_replica_is_equal_at_the_end_of_every_window(
    spark: SparkSession,
    database: Database,
    create_database: Callable[..., Database],
    tmp_path: Path,
) -> None:
    target = create_database(*TABLES)
    begin = now(database)
    writes = Writes(database, 7)
    checked = [0]

    def replicate(changed: DataFrame, number: int) -> None:
        apply(target, changed)
        [last] = sorted((tmp_path / "offsets").glob(str(number)))
        end = json.loads(last.read_text().splitlines()[2])["position"]
        assert contents(target) == contents(database, datetime.fromisoformat(end))
        checked[0] += 1
        if checked[0] < WINDOWS:
            writes.write(3)

    writes.write(3)
    query = (
        changes(spark, database, tables="*", capture="change-stream", startingTimestamp=begin)
        .writeStream.foreachBatch(replicate)
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    try:
        while checked[0] < WINDOWS and query.isActive:
            query.awaitTermination(1)
        assert query.exception() is None
    finally:
        query.stop()
    assert checked[0] >= WINDOWS
    assert contents(target) == contents(database)
