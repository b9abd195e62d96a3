"""``watcher.read_table``: one table as a DataFrame, of the columns and rows that are needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from weakref import WeakSet

from pyspark.sql import DataFrame, SparkSession

from watcher.model.errors import ConfigurationError
from watcher.runners.spark.registration import register_source
from watcher.runners.spark.resolution import resolve_batch_scan
from watcher.runners.spark.scan import Scan
from watcher.runners.spark.source import FORMAT
from watcher.runners.spark.spark_versions import PUSHES_FILTERS
from watcher.settings.spark_parsing import parse_source_options
from watcher.spanner.address import DatabaseAddress

if PUSHES_FILTERS:
    from watcher.runners.spark.batch import find_left
    from watcher.runners.spark.conditions import ConditionPart, split_condition

KNOWN: WeakSet[SparkSession] = WeakSet()
"""The sessions that know the source by this module: Spark warns of one that is made known again."""


def read_table(
    spark: SparkSession,
    database: str,
    table: str,
    columns: Sequence[str] | None,
    where: str | None,
    options: Mapping[str, object],
) -> DataFrame:
    """As ``watcher.read_table``."""
    address = DatabaseAddress.parse(database)
    given = {
        **{name: str(value) for name, value in options.items()},
        "project": address.project,
        "instance": address.instance,
        "database": address.database,
        "table": table,
    }
    if columns is not None and not columns:
        raise ConfigurationError("'columns' is empty: name the columns to read, or leave it out")
    if spark not in KNOWN:
        register_source(spark)
        KNOWN.add(spark)
    read, left = list(columns or ()), where
    if where is not None and PUSHES_FILTERS:
        scan = resolve_batch_scan(parse_source_options(given))
        checked, rest = separate(scan, split_condition(where, scan.shown.names))
        if checked:
            given["where"] = join_parts(checked)
        left = join_parts(rest)
        read = add_columns(read, rest)
    elif where is not None:
        read = []  # Spark checks it, and may need any column
    if read:
        given["columns"] = ",".join(read)
    frame = spark.read.format(FORMAT).options(**given).load()
    frame = frame.where(left) if left else frame
    return frame.select(*map(quote, columns)) if columns else frame


def separate(
    scan: Scan, parts: Sequence[ConditionPart]
) -> tuple[list[ConditionPart], list[ConditionPart]]:
    """What Spanner can check, and what it cannot."""
    checked: list[ConditionPart] = []
    rest: list[ConditionPart] = []
    for part in parts:
        (rest if part.filters is None or find_left(scan, part.filters) else checked).append(part)
    return checked, rest


def join_parts(parts: Sequence[ConditionPart]) -> str:
    """Parts of a condition as one."""
    return " AND ".join(f"({part.text})" for part in parts)


def add_columns(columns: Sequence[str], parts: Sequence[ConditionPart]) -> list[str]:
    """The columns to read, with those that conditions need; none where all may be needed."""
    if not columns or any(part.columns is None for part in parts):
        return []
    needed = [name for part in parts for name in sorted(part.columns or ())]
    return list(dict.fromkeys([*columns, *needed]))


def quote(name: str) -> str:
    """A column's name in Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"
