"""The job on Spark's own connector for Spanner, which is a jar."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from benchmarks.first_rows.job import Settings, run_job


class ConnectorRows:
    """Rows of a table."""

    def prepare(self, settings: Settings) -> None:
        """There is nothing to prepare."""

    def register(self, spark: SparkSession, settings: Settings) -> None:
        """There is nothing to register."""

    def load(self, spark: SparkSession, settings: Settings) -> DataFrame:
        """The table now."""
        return spark.read.format("cloud-spanner").options(**settings["options"]).load()


if __name__ == "__main__":
    run_job(ConnectorRows())
