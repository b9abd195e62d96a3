"""The job on our source."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

import watcher
from benchmarks.first_rows.job import Settings, run_job


class ChangedRows:
    """Rows of a table."""

    def prepare(self, settings: Settings) -> None:
        """``prestart`` is what docs/spark.md says of a faster start."""
        if settings["prestart"]:
            watcher.prestart()

    def register(self, spark: SparkSession, settings: Settings) -> None:  # noqa: ARG002
        """As users do."""
        watcher.register(spark)

    def load(self, spark: SparkSession, settings: Settings) -> DataFrame:
        """The table now, or as a stream from its beginning."""
        read = spark.read if settings["job"] == "batch" else spark.readStream
        return read.format("spanner-changes").options(**settings["options"]).load()


if __name__ == "__main__":
    run_job(ChangedRows())
