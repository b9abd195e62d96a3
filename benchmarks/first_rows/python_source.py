"""The job on a source in Python that does nothing but give rows: what Spark needs for any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import LongType, StructField, StructType

from benchmarks.first_rows.job import Settings, run_job

FORMAT = "numbers"


class NumbersPartition(InputPartition):
    """So many numbers."""

    def __init__(self, rows: int) -> None:
        self.rows = rows


class NumbersReader(DataSourceReader):
    """A batch in one task."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def partitions(self) -> list[InputPartition]:
        """One."""
        return [NumbersPartition(self._rows)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """All rows as one batch."""
        assert isinstance(partition, NumbersPartition)
        yield pa.RecordBatch.from_pydict({"value": pa.array(range(partition.rows), pa.int64())})


class NumbersStreamReader(DataSourceStreamReader):
    """The same rows in each micro-batch; there is always one more."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._number = 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's name)
        """Before the first."""
        return {"number": 0}

    def latestOffset(self, *_places: Any) -> dict[str, int]:  # noqa: N802 (Spark's name)
        """The next one: 4.2 says where a batch starts, older versions do not."""
        self._number += 1
        return {"number": self._number}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:  # noqa: ARG002
        """One."""
        return [NumbersPartition(self._rows)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """All rows as one batch."""
        yield from NumbersReader(self._rows).read(partition)


class Numbers(DataSource):
    """Numbers: ``rows`` of them."""

    @classmethod
    def name(cls) -> str:
        """The format."""
        return FORMAT

    def schema(self) -> StructType:
        """One column."""
        return StructType([StructField("value", LongType())])

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 (Spark's signature)
        """A batch."""
        return NumbersReader(int(self.options["rows"]))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802, ARG002
        """A stream."""
        return NumbersStreamReader(int(self.options["rows"]))


class PythonRows:
    """Rows of that source."""

    def prepare(self, settings: Settings) -> None:
        """There is nothing to prepare."""

    def register(self, spark: SparkSession, settings: Settings) -> None:  # noqa: ARG002
        """As any source in Python."""
        spark.dataSource.register(Numbers)

    def load(self, spark: SparkSession, settings: Settings) -> DataFrame:
        """``rows`` rows, or so many in each micro-batch."""
        read = spark.read if settings["job"] == "batch" else spark.readStream
        return read.format(FORMAT).option("rows", str(settings["rows"])).load()


if __name__ == "__main__":
    run_job(PythonRows())
