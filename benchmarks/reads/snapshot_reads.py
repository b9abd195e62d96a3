"""Reads the table of ``served_table`` into Spark again and again, in one warm session:

    python -m benchmarks.reads.snapshot_reads SETTINGS OUT

``SETTINGS`` are ``SnapshotSettings`` as JSON; ``OUT`` gets a line of JSON for each way to read. A
process of its own, because Java stays in the process in which a session was made.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from benchmarks.processes import RunError
from benchmarks.reads.form_tables import COUNTED_ROWS
from benchmarks.reads.served_table import OPTIONS
from benchmarks.reads.shaped_rows import COLUMNS
from benchmarks.reads.spark_processes import count_cpu_seconds
from benchmarks.scenario import Figure
from watcher import register
from watcher.process.spark.local_spark import session

ColumnSet = Literal["all", "stored", "short"]
CHOSEN: dict[ColumnSet, tuple[str, ...]] = {
    "all": (),
    "stored": tuple(name for name, _ in COLUMNS),
    "short": ("Id", "Name", "City", "Price", "Score"),
}


class SnapshotSettings(BaseModel):
    """``columns``: ``all`` that the source has, ``stored`` the seven of the table (about 430
    bytes), named in the schema of the read, ``short`` five of these, without the long text.
    ``max_partitions`` is the source's ``maxPartitions`` (0: as many as it takes by itself). After
    ``warm_up`` reads the median of ``runs`` counts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: Annotated[int, Field(ge=1)] = 300_000
    columns: tuple[ColumnSet, ...] = ("all", "stored", "short")
    max_partitions: tuple[Annotated[int, Field(ge=0)], ...] = (0, 4)
    warm_up: Annotated[int, Field(ge=0)] = 2
    runs: Annotated[int, Field(ge=1)] = 5


def main() -> None:
    """Reads the command line; a line for each set of columns and number of partitions."""
    settings, out = SnapshotSettings.model_validate_json(sys.argv[1]), Path(sys.argv[2])
    spark = session("snapshot")
    register(spark)
    with out.open("w") as file:
        for columns, most in product(settings.columns, settings.max_partitions):
            figure: Figure = {"columns": columns, "max_partitions": most}
            figure |= measure_snapshots(make_read(spark, columns, most), settings)
            print(json.dumps(figure), file=file, flush=True)
    spark.stop()


def make_read(spark: SparkSession, columns: ColumnSet, most: int) -> Callable[[], DataFrame]:
    """A read of these columns."""
    options = OPTIONS | ({"maxPartitions": str(most)} if most else {})
    read = spark.read.format("spanner-changes").options(**options)
    if CHOSEN[columns]:
        known = read.load().schema
        read = read.schema(StructType([known[name] for name in CHOSEN[columns]]))
    return read.load


def measure_snapshots(load: Callable[[], DataFrame], settings: SnapshotSettings) -> Figure:
    """Medians of some runs. Raises RunError when rows are missing."""
    count = load().count()
    if count != settings.rows:
        raise RunError(f"read {count:,} of {settings.rows:,} rows")
    speeds, costs = [], []
    for number in range(settings.warm_up + settings.runs):
        used, began = count_cpu_seconds(), time.perf_counter()
        load().write.format("noop").mode("overwrite").save()
        seconds, used = time.perf_counter() - began, count_cpu_seconds() - used
        if number >= settings.warm_up:
            speeds.append(settings.rows / seconds)
            costs.append(used * COUNTED_ROWS / settings.rows)
    return {
        "rows/s": round(statistics.median(speeds)),
        "client_cpu_s_100k": round(statistics.median(costs), 2),
    }


if __name__ == "__main__":
    main()
