"""The job on Spark's own rows: its rate source as a stream, a range as a batch."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from benchmarks.first_rows.job import Settings, run_job


class SparkRows:
    """Rows that Spark makes."""

    def prepare(self, settings: Settings) -> None:
        """There is nothing to prepare."""

    def register(self, spark: SparkSession, settings: Settings) -> None:
        """There is nothing to register."""

    def load(self, spark: SparkSession, settings: Settings) -> DataFrame:
        """``rows`` rows, or so many in each micro-batch."""
        if settings["job"] == "batch":
            return spark.range(settings["rows"]).toDF("value")
        rate = spark.readStream.format("rate-micro-batch").option("numPartitions", "1")
        return rate.option("rowsPerBatch", str(settings["rows"])).load()


if __name__ == "__main__":
    run_job(SparkRows())
