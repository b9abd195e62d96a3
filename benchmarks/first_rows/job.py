"""The job that all systems run: a session, its rows, and a sink; each moment is noted.

Nothing of the product is imported here: a job on Spark's own sources has none of it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

import psutil
from pyspark.sql import DataFrame, SparkSession

from benchmarks.reads.spark_processes import count_cpu_seconds

JobKind = Literal["stream", "batch"]
LOOK_EVERY_SECONDS = 0.01

Settings = Mapping[str, Any]
"""What ``benchmarks.scenarios.first_rows`` hands to a job, from JSON: ``job``, ``sink``,
``folder``, ``rows``, ``spark`` (settings of the session), ``options`` of the source."""


class System(Protocol):
    """What differs between jobs. ``kind`` is ``stream`` or ``batch``."""

    def prepare(self, settings: Settings) -> None:
        """Before there is a session."""
        ...

    def register(self, spark: SparkSession, settings: Settings) -> None:
        """Makes the source known to the session."""
        ...

    def load(self, spark: SparkSession, settings: Settings) -> DataFrame:
        """The rows, as a stream or a batch."""
        ...


class Moments:
    """Seconds since the process was created, and CPU seconds, at each moment."""

    def __init__(self) -> None:
        self._began = psutil.Process().create_time()
        self.noted: dict[str, tuple[float, float]] = {}

    def note(self, name: str) -> None:
        """It is now."""
        self.noted[name] = (time.time() - self._began, count_cpu_seconds())


def run_job(system: System) -> None:
    """Reads the command line (the settings, and where the moments go), runs the job."""
    settings: Settings = json.loads(sys.argv[1])
    moments = Moments()
    system.prepare(settings)
    moments.note("imports")
    spark = make_session(settings["spark"])
    moments.note("session")
    system.register(spark, settings)
    moments.note("register")
    frame = system.load(spark, settings)
    moments.note("plan")
    for name in ("first", "second"):
        write(frame, settings, Path(settings["folder"], name))
        moments.note(name)
    Path(sys.argv[2]).write_text(json.dumps(moments.noted))
    spark.stop()


def make_session(settings: Mapping[str, str]) -> SparkSession:
    """A session with two cores."""
    builder = SparkSession.builder.master("local[2]").appName("first rows")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def write(frame: DataFrame, settings: Settings, folder: Path) -> None:
    """Writes the rows; of a stream the first micro-batch."""
    if settings["job"] == "batch":
        writer = frame.write.format(settings["sink"]).mode("overwrite")
        writer.save(str(folder)) if settings["sink"] == "parquet" else writer.save()
        return
    checkpoint = folder.with_suffix(".checkpoint")
    query = (
        frame.writeStream.format(settings["sink"])
        .option("path", str(folder))
        .option("checkpointLocation", str(checkpoint))
        .start()
    )
    while query.isActive and not (checkpoint / "commits" / "0").exists():
        time.sleep(LOOK_EVERY_SECONDS)
    query.stop()
    if (error := query.exception()) is not None:
        raise error
