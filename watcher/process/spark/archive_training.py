"""A session of Spark that does what jobs do first, while its Java notes the classes that it loads:
a source in Python, read as a table and as a stream, aggregates, a function in Python, Parquet."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

FORMAT = "spanner-watcher-numbers"


def main() -> None:
    """``archive_training FOLDER``: what it writes is below the folder."""
    folder = Path(sys.argv[1])
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    spark.dataSource.register(make_numbers())
    read_table(spark, folder)
    read_stream(spark, folder)
    spark.stop()
    wait_for_java()


def read_table(spark: SparkSession, folder: Path) -> None:
    """Rows of a source, an aggregate and a join."""
    rows = spark.read.format(FORMAT).load()
    rows.write.parquet(str(folder / "table"))
    written = spark.read.parquet(str(folder / "table"))
    rows.join(written, ["value", "name"]).groupBy("name").count().orderBy("name").collect()


def read_stream(spark: SparkSession, folder: Path) -> None:
    """Two streams: into Parquet, and into a function."""
    stream = spark.readStream.format(FORMAT).load()
    writer = stream.writeStream.format("parquet").option("path", str(folder / "stream"))
    files = writer.option("checkpointLocation", str(folder / "files")).start()
    files.processAllAvailable()
    files.stop()
    writer = stream.writeStream.foreachBatch(count_rows)
    function = writer.option("checkpointLocation", str(folder / "function")).start()
    function.processAllAvailable()
    function.stop()


def count_rows(batch: DataFrame, _number: int) -> None:
    """What ``foreachBatch`` calls."""
    batch.count()


def wait_for_java() -> None:
    """Java writes the archive when it ends, which it does when its standard input does. Raises
    SystemExit with its exit code, if it has failed: what it wrote may not be whole."""
    gateway = SparkContext._gateway
    assert gateway is not None
    java = gateway.proc
    gateway.shutdown()
    java.stdin.close()
    sys.exit(java.wait())


def make_numbers() -> type[DataSource]:
    """A source that needs nothing but PySpark. Pickled by value, as it is no attribute of a module:
    workers may not find this one."""

    class Rows(DataSourceReader):
        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
            yield pa.RecordBatch.from_pydict({"value": [1, 2], "name": ["a", "b"]})

    class Stream(DataSourceStreamReader):
        def initialOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's name)
            return {"end": 0}

        def latestOffset(self, *_: object) -> dict[str, int]:  # noqa: N802 (of all versions of Spark)
            return {"end": 1}

        def partitions(
            self, start: dict[str, int], end: dict[str, int]
        ) -> Sequence[InputPartition]:
            return [InputPartition((start["end"], end["end"]))]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
            yield pa.RecordBatch.from_pydict({"value": [1, 2], "name": ["a", "b"]})

    class Numbers(DataSource):
        @classmethod
        def name(cls) -> str:
            return FORMAT

        def schema(self) -> str:
            return "value long, name string"

        def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
            return Rows()

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
            return Stream()

    return Numbers


if __name__ == "__main__":
    main()
