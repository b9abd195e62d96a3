"""Selects the newest record of each row, and drops duplicates, in Spark DataFrames.

A frame has the columns ``key`` and ``value``, text or binary, as queues give them; its other
columns are kept. The table is the column ``table``, which the Spark source gives, or is read from
the record.
"""

from __future__ import annotations

from typing import Literal

from watcher.envelopes import ENVELOPES
from watcher.envelopes.message import Path, RecordLayout
from watcher.envelopes.order import find_layout
from watcher.process.extras import require_extras

try:
    from pyspark.sql import Column, DataFrame, Window
    from pyspark.sql import functions as F  # noqa: N812 (its usual name)
except ModuleNotFoundError:
    require_extras("spark")
    raise

TABLE, ORDER, RANK = "_table", "_order", "_rank"


def select_newest(frame: DataFrame, name: str, ties: str | None = None) -> DataFrame:
    """Selects one row for each key of each table: its newest record, even if that is a delete.

    Leaves out tombstones, barriers and heartbeats. ``ties`` is a column that says which of two
    equally new records came later, such as the offset in a queue: see ``Ydb.layout``.
    """
    by = [F.col(ORDER).desc(), *([F.col(ties).desc()] if ties else [])]
    rank = F.row_number().over(Window.partitionBy(TABLE, "key").orderBy(*by))
    ranked = add_order(frame, name).withColumn(RANK, rank).where(F.col(RANK) == 1)
    return ranked.drop(TABLE, ORDER, RANK)


def drop_duplicates(frame: DataFrame, name: str) -> DataFrame:
    """Drops changes that were delivered again.

    Works for formats whose records tell the changes of one transaction apart, and for captures that
    give one change of a row for each transaction, as polling does.
    """
    return add_order(frame, name).dropDuplicates([TABLE, "key", ORDER]).drop(TABLE, ORDER)


def parse_lines(lines: DataFrame, name: str) -> DataFrame:
    """Parses the lines of a watcher (a column ``value``, as ``spark.read.text`` gives it) into
    ``key`` and ``value``."""
    line = F.col("value")
    if ENVELOPES[name].has_key:
        return lines.select(
            get_field(line, ("key",)).alias("key"), get_field(line, ("value",)).alias("value")
        )
    return lines.select(extract_key(line, find_layout(name)).alias("key"), line)


def extract_key(line: Column, layout: RecordLayout) -> Column:
    """The key of a record that contains its key; null for a barrier."""
    assert layout.key is not None, "a format has keys of its own, or its records have them"
    key = get_field(line, layout.key)
    if layout.key_columns is None:
        return key
    values = F.from_json(key, "map<string, string>")
    columns = F.from_json(get_field(line, layout.key_columns), "array<string>")
    return F.to_json(F.transform(columns, lambda column: values[column]))


def add_order(frame: DataFrame, name: str) -> DataFrame:
    """Adds their table and their order to the records of changes."""
    layout = find_layout(name)
    value = F.col("value").cast("string")
    records = frame.where(F.col("key").isNotNull() & F.col("value").isNotNull())
    first = find_field(value, layout, layout.order[0][0])
    missing = F.raise_error(f"a record of the envelope '{name}' has no commit time: {layout.needs}")
    order = F.struct(
        *[
            convert_part(find_field(value, layout, path), kind).alias(f"o{number}")
            for number, (path, kind) in enumerate(layout.order)
        ]
    )
    table = find_field(value, layout, layout.table) if layout.table else F.lit("")
    if "table" in frame.columns:
        table = F.col("table")
    return records.withColumns(
        {TABLE: table, ORDER: F.when(first.isNull(), missing).otherwise(order)}
    )


def convert_part(column: Column, kind: Literal["long", "string"]) -> Column:
    """As ``order.convert_part``."""
    if kind == "long":
        return F.coalesce(column.cast("long"), F.lit(-1).cast("long"))
    return F.coalesce(column, F.lit(""))


def find_field(value: Column, layout: RecordLayout, path: Path) -> Column:
    """The value at a path, under the first root that has it."""
    return F.coalesce(*[get_field(value, root + path) for root in layout.roots])


def get_field(value: Column, path: Path) -> Column:
    """The value at a path of a JSON text, as text; null if there is none."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return F.get_json_object(value, "$" + "".join(parts))
