"""The newest record of each row, and each record once, in every format, in Python and in Spark."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import TypeVar

import pytest
from fixtures.documented import ACCOUNTS, change_of
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (its usual name)

from watcher.envelopes import encode, frames, make_envelope
from watcher.envelopes.lines import JsonLines
from watcher.envelopes.order import select_newest
from watcher.model.change import Change, Operation, Shape, Value
from watcher.model.errors import ConfigurationError

FORMATS: list[tuple[str, dict[str, object]]] = [
    ("plain", {}),
    ("cloudevents", {}),
    ("datastream", {}),
    ("debezium", {}),
    ("debezium", {"with_schema": True}),
    ("ydb", {"virtual_timestamps": True}),
    ("ydb-debezium", {}),
    ("change-stream", {}),
]
AT = 1_700_000_000_000_000
STAMP = "2022-09-27T12:30:00.123456Z"
Test = TypeVar("Test", bound=Callable[..., None])
Pair = tuple[bytes | None, bytes | None]


def mark_spark_test(test: Test) -> Test:
    """Marks a test that starts a Spark session."""
    marks = (pytest.mark.spark, pytest.mark.xdist_group("spark"))
    for mark in marks:
        test = mark(test)
    return test


def history(shape: Shape = ACCOUNTS) -> list[Change]:
    """Changes of six rows over nine transactions; the last of some rows is a delete."""
    drawn = random.Random(7)
    changes = []
    for number, account in product(range(9), "abcdef"):
        last = number == 8 and account in "ab"
        operation = Operation.DELETE if last else drawn.choice([Operation.INSERT, Operation.UPDATE])
        row: dict[str, Value] = {"LastUpdate": STAMP, "Balance": number}
        changes.append(
            change_of(
                shape,
                operation,
                # As numbers these are in order, as texts they are not.
                AT + 10**number,
                {"AccountId": account},
                None if operation is Operation.DELETE else row,
                {} if operation is Operation.INSERT else row,
                transaction=f"t{99 - number}",
                sequence=str(drawn.randint(0, 9)).zfill(8),
            )
        )
    return changes


def encode_shuffled(name: str, options: dict[str, object], changes: list[Change]) -> list[Pair]:
    """Records in any order, some of them twice."""
    drawn = random.Random(11)
    shuffled = changes + drawn.sample(changes, 20)
    drawn.shuffle(shuffled)
    return list(encode(shuffled, make_envelope(name, options)))


def last_of(name: str, options: dict[str, object], changes: list[Change]) -> set[Pair]:
    """The records of the last change of each row."""
    last = {(c.table, c.key["AccountId"]): c for c in changes}
    chosen = make_envelope(name, options)
    return {next(encode([change], chosen)) for change in last.values()}


def make_frame(spark: SparkSession, pairs: list[Pair]) -> DataFrame:
    """A frame as a queue gives it."""
    rows = [(key, value, number) for number, (key, value) in enumerate(pairs)]
    return spark.createDataFrame(rows, "key binary, value binary, offset long")


def pairs_of(frame: DataFrame) -> list[Pair]:
    return [(bytes(row.key), bytes(row.value)) for row in frame.select("key", "value").collect()]


@pytest.mark.parametrize(("name", "options"), FORMATS)
def test_the_newest_record_of_each_row_is_that_of_its_last_change(
    name: str, options: dict[str, object]
) -> None:
    newest = select_newest(encode_shuffled(name, options, history()), name)
    assert len(newest) == 6
    assert set(newest) == last_of(name, options, history())


@mark_spark_test
@pytest.mark.parametrize(("name", "options"), FORMATS)
def test_spark_finds_the_same_newest_records(
    spark: SparkSession, name: str, options: dict[str, object]
) -> None:
    frame = make_frame(spark, encode_shuffled(name, options, history()))
    newest = pairs_of(frames.select_newest(frame, name, ties="offset"))
    assert len(newest) == 6
    assert set(newest) == last_of(name, options, history())


@mark_spark_test
@pytest.mark.parametrize(("name", "options"), FORMATS)
def test_spark_drops_what_was_delivered_again(
    spark: SparkSession, name: str, options: dict[str, object]
) -> None:
    pairs = encode_shuffled(name, options, history())
    distinct = pairs_of(frames.drop_duplicates(make_frame(spark, pairs), name))
    assert len(distinct) == len(history())
    assert set(distinct) == {pair for pair in pairs if pair[1] is not None}


@mark_spark_test
@pytest.mark.parametrize(("name", "options"), FORMATS)
def test_the_lines_of_a_watcher_are_read_as_keys_and_values(
    spark: SparkSession, name: str, options: dict[str, object]
) -> None:
    chosen = make_envelope(name, options)
    lines = [line for change in history() for line in JsonLines(chosen).encode(change)]
    lines += JsonLines(chosen).encode_resolved(AT)
    frame = spark.createDataFrame([(line,) for line in lines], "value string")
    newest = frames.select_newest(frames.parse_lines(frame, name), name)
    values = {json.dumps(json.loads(row.value)) for row in newest.collect()}
    last = last_of(name, options, history())
    assert values == {json.dumps(json.loads(value or b"")) for _, value in last}


def test_rows_of_two_tables_with_the_same_key_are_two_rows() -> None:
    other = history(replace(ACCOUNTS, table="Savings"))
    for name in ("plain", "datastream", "debezium", "change-stream"):
        newest = select_newest(encode_shuffled(name, {}, history() + other), name)
        assert set(newest) == last_of(name, {}, history() + other)


@mark_spark_test
def test_the_table_of_a_queue_tells_rows_of_ydb_apart(spark: SparkSession) -> None:
    pairs = encode_shuffled("ydb", {"virtual_timestamps": True}, history())
    frame = make_frame(spark, pairs)
    both = frame.withColumn("table", F.lit("one")).union(frame.withColumn("table", F.lit("two")))
    counts = frames.select_newest(both, "ydb").groupBy("table").count().collect()
    assert {row.table: row["count"] for row in counts} == {"one": 6, "two": 6}


@pytest.mark.parametrize("name", ["plain", "datastream", "debezium", "change-stream"])
def test_of_two_changes_in_one_transaction_the_later_one_is_newest(name: str) -> None:
    changes = [
        change_of(
            ACCOUNTS,
            Operation.UPDATE,
            AT,
            {"AccountId": "a"},
            {"LastUpdate": STAMP, "Balance": number},
            {"Balance": 0},
            sequence=str(number).zfill(8),
        )
        for number in range(12)
    ]
    newest = select_newest(encode(reversed(changes), make_envelope(name)), name)
    assert newest == list(encode(changes[-1:], make_envelope(name)))


@mark_spark_test
def test_records_of_ydb_without_virtual_timestamps_cannot_be_ordered(spark: SparkSession) -> None:
    pairs = encode_shuffled("ydb", {}, history())
    with pytest.raises(ConfigurationError, match="virtual_timestamps = true"):
        select_newest(pairs, "ydb")
    with pytest.raises(PySparkException, match="virtual_timestamps = true"):
        frames.select_newest(make_frame(spark, pairs), "ydb").collect()
    with pytest.raises(ConfigurationError, match="have no order"):
        select_newest(pairs, "datastream-avro")
