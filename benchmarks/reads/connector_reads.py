"""Reads the table of ``served_table`` with our source and with Spark's connector, in one session:

    python -m benchmarks.reads.connector_reads SETTINGS PID OUT

``SETTINGS`` are ``ConnectorSettings`` as JSON; ``OUT`` gets a line of JSON for each kind of read;
``PID`` is the server. A process of its own, because Java stays in the process in which a session
was made.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pyspark
from pydantic import BaseModel, ConfigDict, Field
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.processes import RunError, read_cpu_seconds
from benchmarks.reads.form_tables import ADDRESS, COUNTED_ROWS, POLLED
from benchmarks.reads.served_table import OPTIONS
from benchmarks.reads.shaped_rows import ShapeName
from benchmarks.reads.snapshot_reads import CHOSEN
from benchmarks.reads.spark_processes import count_cpu_seconds
from benchmarks.scenario import Figure
from watcher import register
from watcher.process.spark.local_spark import session
from watcher.spanner.address import EMULATOR_HOST

JAR = "SPANNER_CONNECTOR_JAR"
Kind = Literal["whole", "five", "count", "aggregates"]
Read = Callable[[SparkSession, "ConnectorSettings", tuple[str, ...]], DataFrame]


def find_jar() -> str:
    """What the environment says."""
    return os.environ.get(JAR, "")


class ConnectorSettings(BaseModel):
    """``jar`` is the connector, built for the Spark that is measured (default: the variable
    SPANNER_CONNECTOR_JAR); ``spark`` a folder with another PySpark than the one that is installed.

    ``shape`` of the rows: ``bytes`` (450 bytes, of which 200 are BYTES) or ``text`` (430 bytes).
    ``kinds``: ``whole`` (every column that each shows), ``five`` of them, ``count``, and
    ``aggregates`` over four. Before these, ``first_rounds`` new sessions of each read the whole
    table (0: none). ``max_partitions`` is our source's ``maxPartitions`` (0: none). After
    a read that does not count they take turns, ``rounds`` times; medians count."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    jar: str = Field(default_factory=find_jar)
    spark: str = ""
    rows: Annotated[int, Field(ge=1)] = 300_000
    shape: ShapeName = "bytes"
    kinds: tuple[Kind, ...] = ("whole", "five", "count", "aggregates")
    max_partitions: Annotated[int, Field(ge=0)] = 4
    rounds: Annotated[int, Field(ge=1)] = 3
    first_rounds: Annotated[int, Field(ge=0)] = 3


@dataclass(slots=True)
class Costs:
    """What each round needed: seconds, CPU seconds of the JVM and its Python workers, and those of
    the server."""

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    server_cpu: list[float] = field(default_factory=list)


def read_ours(
    spark: SparkSession, settings: ConnectorSettings, columns: tuple[str, ...]
) -> DataFrame:
    """By our source; Spark does not tell it the columns, so they are named."""
    options = make_own_options(settings.max_partitions)
    options |= {"columns": ",".join(columns)} if columns else {}
    return spark.read.format("spanner-changes").options(**options).load()


def read_theirs(
    spark: SparkSession, _settings: ConnectorSettings, columns: tuple[str, ...]
) -> DataFrame:
    """By the connector, which Spark tells the columns."""
    frame = spark.read.format("cloud-spanner").options(**make_their_options()).load()
    return frame.select(*columns) if columns else frame


def make_own_options(max_partitions: int) -> dict[str, str]:
    """The options of our source."""
    return OPTIONS | ({"maxPartitions": str(max_partitions)} if max_partitions else {})


def make_their_options() -> dict[str, str]:
    """The options of the connector."""
    return {
        "projectId": ADDRESS.project,
        "instanceId": ADDRESS.instance,
        "databaseId": ADDRESS.database,
        "table": POLLED,
        "emulatorHost": os.environ[EMULATOR_HOST],
    }


SYSTEMS: dict[str, Read] = {"ours": read_ours, "connector": read_theirs}
COLUMNS: dict[Kind, tuple[str, ...]] = {
    "whole": (),
    "five": CHOSEN["short"],
    "count": ("Id",),
    "aggregates": ("Id", "Score", "Price", "Name"),
}


def act(kind: Kind, frame: DataFrame, rows: int) -> None:
    """Reads everything that the kind needs. Raises RunError when rows are missing."""
    if kind == "count":
        check_rows(frame.count(), rows)
    elif kind == "aggregates":
        check_rows(aggregate(frame)[0], rows)
    else:
        frame.write.format("noop").mode("overwrite").save()


def aggregate(frame: DataFrame) -> Any:
    """Aggregates over four columns; averages of floats are rounded, since their order is free."""
    average = f.round(f.avg("Score"), 6)
    found = frame.agg(f.count("Id"), f.sum("Id"), average, f.max("Price"), f.min("Name"))
    return found.collect()[0]


def check_rows(found: int, rows: int) -> None:
    """Raises RunError when rows are missing."""
    if found != rows:
        raise RunError(f"read {found:,} of {rows:,} rows")


def check_values(spark: SparkSession, settings: ConnectorSettings) -> None:
    """Raises RunError where the two do not read the same."""
    columns = COLUMNS["aggregates"]
    found = {name: aggregate(read(spark, settings, columns)) for name, read in SYSTEMS.items()}
    if tuple(found["ours"]) != tuple(found["connector"]):
        raise RunError(f"the two read different values: {found}")


def measure_kind(
    spark: SparkSession, settings: ConnectorSettings, kind: Kind, server: int
) -> Figure:
    """Both in turns; medians of the rounds, and of what each round says of the two."""
    costs = {name: Costs() for name in SYSTEMS}
    for number in range(settings.rounds + 1):
        for name, read in SYSTEMS.items():
            used, served, began = count_cpu_seconds(), read_cpu_seconds(server), time.perf_counter()
            act(kind, read(spark, settings, COLUMNS[kind]), settings.rows)
            seconds, used = time.perf_counter() - began, count_cpu_seconds() - used
            if number:
                costs[name].seconds.append(seconds)
                costs[name].cpu.append(used)
                costs[name].server_cpu.append(read_cpu_seconds(server) - served)
    return describe(kind, costs["ours"], costs["connector"], settings.rows)


def describe(kind: Kind, ours: Costs, theirs: Costs, rows: int) -> Figure:
    """A row of the table; ``times`` above 1: ours is better."""
    return {
        "read": kind,
        "rows/s": round(rows / statistics.median(ours.seconds)),
        "connector_rows/s": round(rows / statistics.median(theirs.seconds)),
        "times": compare(theirs.seconds, ours.seconds),
        "cpu_s_100k": round(statistics.median(ours.cpu) * COUNTED_ROWS / rows, 2),
        "connector_cpu_s_100k": round(statistics.median(theirs.cpu) * COUNTED_ROWS / rows, 2),
        "times_cpu": compare(theirs.cpu, ours.cpu),
        "server_cpu_s": round(statistics.median(ours.server_cpu), 2),
        "connector_server_cpu_s": round(statistics.median(theirs.server_cpu), 2),
    }


def compare(theirs: list[float], ours: list[float]) -> float:
    """How many times our cost theirs is: the median of what each round says."""
    pairs = zip(theirs, ours, strict=True)
    return round(statistics.median(their / our for their, our in pairs), 2)


def main() -> None:
    """Reads the command line; a line for the version of Spark, and one for each kind."""
    settings = ConnectorSettings.model_validate_json(sys.argv[1])
    server, out = int(sys.argv[2]), Path(sys.argv[3])
    spark = session("connector", {"spark.jars": settings.jar})
    register(spark)
    check_values(spark, settings)
    with out.open("w") as file:
        for kind in settings.kinds:
            figure = {"spark": pyspark.__version__} | measure_kind(spark, settings, kind, server)
            print(json.dumps(figure), file=file, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
