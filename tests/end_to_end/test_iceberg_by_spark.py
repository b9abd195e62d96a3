"""Copies in Iceberg without Spark, as Spark reads them by their metadata."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
from fixtures.iceberg_histories import open_copy, open_table, read_by_others
from fixtures.named_rows import KEY, load_rows, make_rows, read_content
from fixtures.spark_formats import require_format
from pyspark.sql import SparkSession

from watcher.replica.formats import ICEBERG
from watcher.replica.writing.compaction import CompactionPolicy

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

POLICY = CompactionPolicy(5, 4, 32, deleted_rows=10)


def test_spark_reads_what_merges_and_compactions_leave(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path
) -> None:
    require_format(request, ICEBERG)
    randomness = Random(1)
    copy = open_copy(tmp_path, POLICY)
    expected: dict[int, str] = dict(load_rows(copy, 2_000))
    for window in range(1, 9):
        rows = {randomness.randrange(2_500): draw(randomness, window) for _ in range(100)}
        copy.merge(make_rows(rows, window), KEY, 100 + window)
        expected = apply(expected, rows)
        if window == 4:
            copy.compact(KEY, whole=True)
            assert read_by_spark(spark, tmp_path) == expected
    assert read_by_spark(spark, tmp_path) == read_content(copy) == expected
    for each in read_by_others(tmp_path):
        assert each.num_rows == len(expected)


def draw(randomness: Random, window: int) -> str | None:
    """A name, or the row goes."""
    return f"w{window}" if randomness.random() < 0.8 else None


def apply(names: Mapping[int, str], rows: Mapping[int, str | None]) -> dict[int, str]:
    """The names after a window."""
    merged = {**names, **rows}
    return {number: name for number, name in merged.items() if name is not None}


def read_by_spark(spark: SparkSession, folder: Path) -> dict[int, str]:
    """The names by key; every key has one row."""
    rows = spark.read.format("iceberg").load(open_table(folder).metadata_location).collect()
    assert len({row.Id for row in rows}) == len(rows)
    return {row.Id: row.Name for row in rows}
