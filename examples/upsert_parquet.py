"""Keeps a Parquet copy of a table: every micro-batch is merged into it, newest version first.

    spark-submit examples/upsert_parquet.py PROJECT INSTANCE DATABASE TABLE KEY[,KEY] FOLDER \\
      [--until-now]

FOLDER/table/<batch> is the whole table after a batch; the newest with _SUCCESS is the table. One
more stays for those who are still reading. A batch that comes again after a crash gives the
same table again. Formats with MERGE (Delta, Iceberg) do this in place: see docs/spark.md.
``--until-now`` ends with what is there now; run it again for the rest.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import watcher

KEPT = 2


def tables(folder: Path) -> list[Path]:
    """The complete copies, the newest last."""
    paths = [path.parent for path in (folder / "table").glob("*/_SUCCESS")]
    return sorted(paths, key=lambda path: int(path.name))


def upsert(folder: Path, keys: list[str]) -> Callable[[DataFrame, int], None]:
    """For ``foreachBatch``: merges a batch into the copy."""

    def merge(changes: DataFrame, batch: int) -> None:
        before = [path for path in tables(folder) if int(path.name) < batch]
        rows = changes
        if before:
            rows = changes.sparkSession.read.parquet(str(before[-1])).unionByName(changes)
        newest = watcher.newest_per_key(rows, keys)
        newest.write.mode("overwrite").parquet(str(folder / "table" / str(batch)))
        for path in before[: 1 - KEPT]:
            shutil.rmtree(path)

    return merge


def main() -> None:
    """Runs until it is stopped, or until now."""
    project, instance, database, table, keys, folder, *more = sys.argv[1:]
    spark = SparkSession.builder.appName(f"upsert {table}").getOrCreate()
    watcher.register(spark)
    changes = (
        spark.readStream.format("spanner-changes")
        .options(project=project, instance=instance, database=database, table=table)
        .options(startingTimestamp="earliest", consumer=f"upsert-{table}")
        .load()
    )
    query = changes.writeStream.foreachBatch(upsert(Path(folder), keys.split(","))).option(
        "checkpointLocation", str(Path(folder) / "checkpoint")
    )
    if "--until-now" in more:
        query = query.trigger(availableNow=True)
    query.start().awaitTermination()


if __name__ == "__main__":
    main()
