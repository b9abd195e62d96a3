"""How the rows of Iceberg's tables lie in their files, in Spark's words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from watcher.replica.layout import IDENTITY, TIMES, Layout, PartitionField
from watcher.replica.merge_sql import SPARK
from watcher.replica.spark.frames import ROWS_VIEW, render_text, sort_frame

ORDER = "sort-order"
"""The property that shows the order of a table."""
FILE_SIZE = "write.target-file-size-bytes"
DISTRIBUTION = "write.distribution-mode"
PARTITION = re.compile(r"Part \d+")
ASCENDING = "ASC NULLS LAST"
ORDERED = rf"(?:`((?:[^`]|``)+)`|([^`,() ]+)) {ASCENDING}"


def render_table(
    name: str, layout: Layout, properties: Mapping[str, str], location: str | None = None
) -> str:
    """The statement that makes a table of ``ROWS_VIEW``, or puts it in the place of one.
    ``location``: its folder; None: where the catalog has it."""
    fields = ", ".join(map(render_field, layout.fields))
    parts = f" PARTITIONED BY ({fields})" if fields else ""
    values = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    place = "" if location is None else f" LOCATION {render_text(location)}"
    made = f"CREATE OR REPLACE TABLE {name} USING iceberg{parts}{place} TBLPROPERTIES ({values})"
    return f"{made} AS SELECT * FROM {ROWS_VIEW}"  # noqa: S608 (names are quoted)


def render_field(field: PartitionField, functions: str = "") -> str:
    """A field of partitions; with the catalog's ``functions`` as a value of rows."""
    column = SPARK.quote(field.column)
    if field.transform == IDENTITY:
        return column
    name = f"{field.transform}s" if field.transform in TIMES else field.transform
    number = "" if field.number is None else f"{field.number}, "
    return f"{functions}{name}({number}{column})"


def arrange_frame(rows: DataFrame, layout: Layout, catalog: str) -> DataFrame:
    """Rows as a new table gets them: that has no order yet which Spark would write it in."""
    if not layout.sort_by:
        return rows
    values = [f.expr(render_field(each, f"{catalog}.system.")) for each in layout.fields]
    placed = rows.repartition(*values) if values else rows
    return sort_frame(placed, layout.sort_by, *values)


def load_settings(layout: Layout) -> dict[str, str]:
    """Settings of a load whose rows are arranged: Spark leaves them so."""
    return {"spark.sql.iceberg.distribution-mode": "none"} if layout.sort_by else {}


def render_order(layout: Layout) -> str:
    """What tells a table its order."""
    if not layout.sort_by:
        return "WRITE UNORDERED"
    together = "DISTRIBUTED BY PARTITION " if layout.partition_by else ""
    names = ", ".join(f"{SPARK.quote(name)} {ASCENDING}" for name in layout.sort_by)
    return f"WRITE {together}LOCALLY ORDERED BY {names}"


def name_order(layout: Layout) -> str:
    """The order of a table as ``ORDER`` shows it, without quotes."""
    return ", ".join(f"{name} {ASCENDING}" for name in layout.sort_by)


def parse_order(text: str) -> tuple[str, ...]:
    """The columns of an order as ``ORDER`` shows it; none if settings have no such order."""
    if not re.fullmatch(f"{ORDERED}(?:, {ORDERED})*", text):
        return ()
    return tuple(quoted.replace("``", "`") or plain for quoted, plain in re.findall(ORDERED, text))


def list_partitions(described: Sequence[Sequence[str]]) -> list[str]:
    """The partitions of a table, as settings spell them, of what DESCRIBE says."""
    names = [name for name, *_ in described]
    if "# Partition Information" in names:
        return names[names.index("# Partition Information") + 2 :]
    fields = [text for name, text, *_ in described if PARTITION.fullmatch(name)]
    return [re.sub(rf"^({'|'.join(TIMES)})s\(", r"\1(", text.replace("`", "")) for text in fields]
