"""A Spark application as a user submits it, for the tests of clusters:

    spark-submit --py-files package.zip cluster_job.py '{"conf": {...}, "folder": "...", ...}'

It drains the source into FOLDER/parquet and prints what it saw as one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

SEEN = "SEEN "


def where(_numbers: Iterable[int]) -> Iterator[tuple[int, str]]:
    """The process, and the place that it imports the package from."""
    import watcher

    yield os.getppid(), str(Path(watcher.__file__ or "").parent.parent)


def main(job: dict[str, Any]) -> None:
    """Runs a job."""
    builder = SparkSession.builder.config("spark.ui.enabled", "false")
    for name, value in job["conf"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    import watcher

    watcher.register(spark)
    folder = Path(job["folder"])
    stream = spark.readStream.format("spanner-changes").options(**job["options"]).load()
    query = (
        stream.writeStream.format("parquet")
        .option("path", str(folder / "parquet"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(**job.get("trigger", {"availableNow": True}))
        .start()
    )
    query.awaitTermination()
    executors = spark.sparkContext.parallelize(range(4), 4).mapPartitions(where).collect()
    seen = {
        "executors": len({parent for parent, _ in executors}),
        "driver": str(Path(watcher.__file__ or "").parent.parent),
        "places": sorted({place for _, place in executors}),
        "rows": spark.read.parquet(str(folder / "parquet")).count(),
        "batch": spark.read.format("spanner-changes").options(**job["batch"]).load().count(),
    }
    print(SEEN + json.dumps(seen))
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
