"""A whole table into Spark, again and again in one session: rows a second, CPU time of the client.

Spark's connector for Spanner is no peer here: its jar is in no Maven repository.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import psutil
from pydantic import BaseModel, ConfigDict, Field
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from benchmarks.form_tables import COUNTED_ROWS
from benchmarks.local_spark import session
from benchmarks.processes import RunError
from benchmarks.scenario import Bench, Figure, Scenario, make_bar_chart
from benchmarks.served_table import serve_table, source_options
from benchmarks.shaped_rows import COLUMNS
from watcher import register
from watcher.runners.java import JavaNotFoundError, ensure_java

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


@dataclass(frozen=True, slots=True)
class WarmReader:
    """A read of the table in a session; ``count_cpu`` gives the CPU seconds of the client so far:
    of this process, of Spark, and of Spark's Python processes."""

    load: Callable[[], DataFrame]
    count_cpu: Callable[[], float]


def run(settings: SnapshotSettings, bench: Bench) -> None:
    """A row of the table for each set of columns and number of partitions."""
    try:
        ensure_java()
    except JavaNotFoundError as error:
        bench.outcome.skipped.append(str(error))
        return
    with serve_table(settings.rows) as server:
        spark = session("snapshot")
        try:
            register(spark)
            for columns in settings.columns:
                for most in settings.max_partitions:
                    reader = make_reader(spark, columns, most, server.pid)
                    figure: Figure = {"columns": columns, "max_partitions": most}
                    bench.add(figure | measure_snapshots(reader, settings))
        finally:
            spark.stop()
    bench.outcome.charts.append(
        make_bar_chart("rows/s into Spark", "columns", "rows/s", bench.outcome.figures)
    )


def make_reader(spark: SparkSession, columns: ColumnSet, most: int, server: int) -> WarmReader:
    """A read of these columns; the process ``server`` counts as none of the client's."""
    options = source_options() | ({"maxPartitions": str(most)} if most else {})
    read = spark.read.format("spanner-changes").options(**options)
    if CHOSEN[columns]:
        known = read.load().schema
        read = read.schema(StructType([known[name] for name in CHOSEN[columns]]))
    return WarmReader(read.load, partial(count_cpu_seconds, server))


def count_cpu_seconds(server: int) -> float:
    """CPU seconds of this process and of all below it, without the server."""
    me = psutil.Process()
    times = me.cpu_times()
    seconds: float = times.user + times.system
    for process in me.children(recursive=True):
        try:
            if process.pid != server:
                times = process.cpu_times()
                seconds += times.user + times.system + times.children_user + times.children_system
        except psutil.NoSuchProcess:
            continue
    return seconds


def measure_snapshots(reader: WarmReader, settings: SnapshotSettings) -> Figure:
    """Medians of some runs. Raises RunError when rows are missing."""
    count = reader.load().count()
    if count != settings.rows:
        raise RunError(f"read {count:,} of {settings.rows:,} rows")
    speeds, costs = [], []
    for number in range(settings.warm_up + settings.runs):
        used, began = reader.count_cpu(), time.perf_counter()
        reader.load().write.format("noop").mode("overwrite").save()
        seconds, used = time.perf_counter() - began, reader.count_cpu() - used
        if number >= settings.warm_up:
            speeds.append(settings.rows / seconds)
            costs.append(used * COUNTED_ROWS / settings.rows)
    return {
        "rows/s": round(statistics.median(speeds)),
        "client_cpu_s_100k": round(statistics.median(costs), 2),
    }


SCENARIO = Scenario(
    name="snapshot",
    summary="a whole table into Spark in a warm session: rows a second, CPU",
    settings=SnapshotSettings,
    keys=("columns", "max_partitions"),
    run=run,
    short=("rows=20000", "columns=all", "max_partitions=0", "runs=1", "warm_up=0"),
    own_server=True,
)
