"""Copies that are merged by deletion vectors, and Spark's Delta: each reads and goes on from what
the other has written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from fixtures.copied_tables import KEY_VALUES, CopiedTable, ExpectedCopy, read_delta_files
from fixtures.replicas import read_delta
from pyspark.sql import SparkSession

from watcher.replica.copies import DELETED_COLUMN, MERGE_ON_READ, STAMP_COLUMN
from watcher.replica.delta.copy import DeltaCopy
from watcher.replica.rows import reduce_changes
from watcher.replica.spark.frames import arrow_schema, session_settings
from watcher.replica.writing.compaction import CompactionPolicy

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

TABLE = CopiedTable(
    pa.schema(
        [
            ("real", pa.float64()),
            ("bytes", pa.binary()),
            ("decimal", pa.decimal128(38, 9)),
            ("Number", pa.int64()),
            ("text", pa.string()),
            ("day", pa.date32()),
            ("float", pa.float32()),
            ("Value", pa.string()),
            (STAMP_COLUMN, pa.timestamp("us", "UTC")),
        ]
    ),
    ("real", "bytes", "decimal", "Number", "text", "day", "float"),
)
QUICK_VACUUM = {
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}
"""Spark lists a folder in 10,000 tasks otherwise."""
DAY = 86_400_000_000
EAGER = CompactionPolicy(0, 1, 1, deleted_rows=1)


def draw_rows(randomness: Random, window: int, count: int) -> list[dict[str, Any]]:
    """Rows whose keys come again."""
    rows = []
    for _ in range(count):
        cells: dict[str, Any] = {
            name: randomness.choice([None, *KEY_VALUES[TABLE.schema.field(name).type][:2]])
            for name in TABLE.key
        }
        stamp = pa.scalar(window * DAY, TABLE.schema.field(STAMP_COLUMN).type).as_py()
        marks = {STAMP_COLUMN: stamp, DELETED_COLUMN: bool(window) and randomness.random() < 0.3}
        rows.append(cells | marks | {"Value": f"{window}"})
    return rows


def test_spark_and_this_product_go_on_from_each_other(
    spark: SparkSession, delta: Mapping[str, str], tmp_path: Path
) -> None:
    folder, randomness = tmp_path / "t", Random(7)
    copy, expected = DeltaCopy(str(folder), "c", MERGE_ON_READ, EAGER), ExpectedCopy(TABLE)
    loaded = list({TABLE.identify(r): r for r in draw_rows(randomness, 0, 400)}.values())
    expected.load(loaded)
    copy.load(TABLE.schema, TABLE.make_rows(loaded).to_batches(), 100)

    def merge(window: int) -> None:
        rows = draw_rows(randomness, window, 150)
        expected.merge(rows)
        copy.merge(reduce_changes([TABLE.make_changes(rows)], TABLE.key), TABLE.key, 100 + window)

    def assert_read_alike() -> None:
        frame = spark.read.format("delta").load(str(folder))
        by_spark = frame.toArrow().cast(arrow_schema(frame)).cast(TABLE.schema)
        expected.assert_equals(by_spark.to_pylist())
        state = copy.read_state()
        assert state is not None
        scanned = pa.Table.from_batches(copy.scan(state.version), TABLE.schema)
        expected.assert_equals(scanned.to_pylist())
        expected.assert_equals(read_delta(DeltaTable(str(folder))).to_pylist())

    for window in (1, 2, 3):
        merge(window)
    assert_read_alike()
    expected.assert_equals(read_delta_files(folder))
    path = f"delta.`{folder}`"
    spark.sql(f"DELETE FROM {path} WHERE Number = 1")
    expected.rows = {key: row for key, row in expected.rows.items() if row["Number"] != 1}
    assert_read_alike()
    merge(4)
    assert_read_alike()
    assert copy.compact(TABLE.key, whole=True).replaced
    assert_read_alike()
    expected.assert_equals(read_delta_files(folder))
    spark.sql(f"OPTIMIZE {path}")
    merge(5)
    assert_read_alike()
    spark.sql(f"REORG TABLE {path} APPLY (PURGE)")
    merge(6)
    assert_read_alike()
    while copy.compact(TABLE.key, whole=True).more:
        pass
    merge(8)
    assert_read_alike()
    vectors = set(folder.glob("_vectors/*.bin"))
    with session_settings(spark, QUICK_VACUUM):
        spark.sql(f"VACUUM {path} RETAIN 0 HOURS")
    assert set(folder.glob("_vectors/*.bin")) == vectors, "VACUUM leaves the folder alone"
    merge(9)
    assert_read_alike()
