"""Values of new columns in rows that are data frames: of those of a copy, and of those of a window
that changed before their table got the columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_type

from watcher.replica.merge_sql import SOURCE, SPARK, TARGET


@dataclass(frozen=True)
class FrameValues:
    """Values at the end of a window. Those of ``constants`` are the same in every row; ``scan`` has
    the others, with the columns of the ``key`` of their rows."""

    constants: Mapping[str, pa.Scalar]
    key: tuple[str, ...] = ()
    scan: DataFrame | None = None

    @property
    def names(self) -> frozenset[str]:
        """The columns that have values."""
        return self._scanned | self.constants.keys()

    def fill(self, rows: DataFrame, names: Collection[str]) -> DataFrame:
        """Rows with the values of those of these columns that have some, as the last columns; NULL
        in a row that Spanner does not have."""
        scanned = [name for name in self._scanned if name in names]
        if self.scan is not None and scanned:
            there = rows.drop(*scanned).alias(TARGET)
            same = f.expr(SPARK.match_keys(self.key))
            joined = there.join(self.scan.alias(SOURCE), same, "left")
            rows = joined.select(f"{TARGET}.*", *(SPARK.quote(name, SOURCE) for name in scanned))
        for name, value in self.constants.items():
            if name in names:
                made = f.lit(value.as_py()).cast(from_arrow_type(value.type))
                rows = rows.withColumn(name, made)
        return rows

    @property
    def _scanned(self) -> frozenset[str]:
        columns = () if self.scan is None else self.scan.columns
        return frozenset(columns) - frozenset(self.key)
