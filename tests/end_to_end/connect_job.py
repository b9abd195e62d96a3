"""A Spark Connect application, for the tests: the client has no JVM, the server runs the source.

python connect_job.py '{"options": {...}, "folder": "..."}'
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import watcher


def main(job: dict[str, Any]) -> None:
    """Streams, reads a batch, and asks for something wrong."""
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    watcher.register(spark)
    options, folder = job["options"], Path(job["folder"])
    stream = (
        spark.readStream.format("spanner-changes")
        .options(**options, startingTimestamp="earliest")
        .load()
    )
    query = (
        stream.writeStream.format("parquet")
        .option("path", str(folder / "parquet"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    streamed = spark.read.parquet(str(folder / "parquet"))
    snapshot = spark.read.format("spanner-changes").options(**options).load()
    try:
        spark.read.format("spanner-changes").options(**options, tabel="x").load().printSchema()
        refused = ""
    except PySparkException as error:
        refused = str(error)
    seen = {
        "client": type(spark).__module__,
        "rows": streamed.count(),
        "few": snapshot.where("SingerId < 5").count(),
        "newest": watcher.newest_per_key(streamed.union(streamed), ["SingerId"]).count(),
        "refused": refused,
    }
    print("SEEN " + json.dumps(seen))
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
