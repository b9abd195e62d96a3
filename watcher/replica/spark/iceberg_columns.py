"""Columns that leave Iceberg tables which Spark writes, and values of new ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from watcher.replica.copies import DROPPED
from watcher.replica.layout import Layout
from watcher.replica.merge_sql import SPARK
from watcher.replica.spark.frame_values import FrameValues
from watcher.replica.spark.frames import render_text, session_settings
from watcher.replica.spark.iceberg_layout import ORDER, parse_order

MAIN = "main"
"""The branch of a table that everybody reads."""


def may_go(gone: Iterable[str], layouts: Sequence[Layout], properties: Mapping[str, str]) -> bool:
    """Whether no partitions and no order need one of these columns. An order may be none that a
    layout states."""
    if (order := properties.get(ORDER)) and not parse_order(order):
        return False
    named = {each.column for layout in layouts for each in layout.fields}
    return named.union(*(layout.sort_by for layout in layouts)).isdisjoint(gone)


def lose_columns(spark: SparkSession, name: str, lost: Iterable[str], keep: bool) -> None:
    """Drops columns of a table, or marks them as dropped. A query that was killed may have done
    that."""
    there = set(spark.table(name).columns)
    for column in map(SPARK.quote, filter(there.__contains__, lost)):
        marked = f"ALTER COLUMN {column} COMMENT {render_text(DROPPED)}"
        spark.sql(f"ALTER TABLE {name} {marked if keep else f'DROP COLUMN {column}'}")


def write_values(
    spark: SparkSession, name: str, values: FrameValues, described: Mapping[str, str]
) -> None:
    """Writes all files anew. Iceberg refuses that where anybody has committed since the rows were
    read. ``described``: settings that write the properties of the snapshot."""
    refs = spark.table(f"{name}.refs").where(f.col("name") == f.lit(MAIN))
    known = str(refs.select("snapshot_id").collect()[0][0])
    there = spark.table(name)
    rows = values.fill(there, values.names).select(*map(SPARK.quote, there.columns))
    options = {"isolation-level": "serializable", "validate-from-snapshot-id": known}
    with session_settings(spark, described):
        rows.writeTo(name).options(**options).overwrite(f.lit(True))
