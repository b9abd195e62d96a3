"""The newest record of each row, and each record once, in Spark: DataFrames in and out.

A frame has the columns ``key`` and ``value``, text or binary, as queues give them; its other
columns are kept. Where it has a column ``table``, as the Spark source gives it, that is the table.
"""

from __future__ import annotations

from typing import Literal

from watcher.envelopes import ENVELOPES
from watcher.envelopes.order import Ordering, Path, ordering
from watcher.extras import require_extras

try:
    from pyspark.sql import Column, DataFrame, Window
    from pyspark.sql import functions as F  # noqa: N812 (its usual name)
except ModuleNotFoundError:
    require_extras("spark")
    raise

TABLE, ORDER, RANK = "_table", "_order", "_rank"


def newest(frame: DataFrame, name: str, ties: str | None = None) -> DataFrame:
    """One row for each key of each table: its newest record, also when that is a delete.

    Tombstones, barriers and heartbeats are left out. ``ties`` is a column that tells which of two
    equally new records came later, such as the offset in a queue: see ``order.ORDERINGS``.
    """
    by = [F.col(ORDER).desc(), *([F.col(ties).desc()] if ties else [])]
    rank = F.row_number().over(Window.partitionBy(TABLE, "key").orderBy(*by))
    ranked = placed(frame, name).withColumn(RANK, rank).where(F.col(RANK) == 1)
    return ranked.drop(TABLE, ORDER, RANK)


def once(frame: DataFrame, name: str) -> DataFrame:
    """Every change once: what was delivered again is dropped.

    For formats whose records tell the changes of one transaction apart (``order.ORDERINGS``), or
    captures that give one change of a row in a transaction, as polling does.
    """
    return placed(frame, name).dropDuplicates([TABLE, "key", ORDER]).drop(TABLE, ORDER)


def messages_of_lines(lines: DataFrame, name: str) -> DataFrame:
    """The lines that a watcher writes (a column ``value``, as ``spark.read.text`` gives it) as
    ``key`` and ``value``."""
    line = F.col("value")
    if ENVELOPES[name].keyed:
        return lines.select(
            field(line, ("key",)).alias("key"), field(line, ("value",)).alias("value")
        )
    return lines.select(key_of(line, name).alias("key"), line)


def key_of(line: Column, name: str) -> Column:
    """The key of a record whose key stands inside; null for a barrier."""
    if name == "datastream":
        payload = F.from_json(field(line, ("payload",)), "map<string, string>")
        columns = F.from_json(field(line, ("source_metadata", "primary_keys")), "array<string>")
        return F.to_json(F.transform(columns, lambda column: payload[column]))
    place: Path = ("data_change_record", "mods", 0, "keys") if name == "change-stream" else ("key",)
    return field(line, place)


def placed(frame: DataFrame, name: str) -> DataFrame:
    """The records of changes, with their table and their order."""
    how = ordering(name)
    value = F.col("value").cast("string")
    records = frame.where(F.col("key").isNotNull() & F.col("value").isNotNull())
    first = found(value, how, how.fields[0][0])
    missing = F.raise_error(f"a record of '{name}' does not say when it happened: {how.needs}")
    order = F.struct(
        *[
            typed(found(value, how, path), kind).alias(f"o{number}")
            for number, (path, kind) in enumerate(how.fields)
        ]
    )
    table = found(value, how, how.table) if how.table else F.lit("")
    if "table" in frame.columns:
        table = F.col("table")
    return records.withColumns(
        {TABLE: table, ORDER: F.when(first.isNull(), missing).otherwise(order)}
    )


def typed(column: Column, kind: Literal["long", "string"]) -> Column:
    """As ``order.typed``."""
    if kind == "long":
        return F.coalesce(column.cast("long"), F.lit(-1).cast("long"))
    return F.coalesce(column, F.lit(""))


def found(value: Column, how: Ordering, path: Path) -> Column:
    """What stands at a place, under the first root that has it."""
    return F.coalesce(*[field(value, root + path) for root in how.roots])


def field(value: Column, path: Path) -> Column:
    """What stands at a place of a JSON text, as text; null where there is none."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return F.get_json_object(value, "$" + "".join(parts))
