"""Micro-batches of small sources in one warm session, in turns:

    python -m benchmarks.reads.micro_batch_runs SETTINGS OUT

``SETTINGS`` are ``MicroBatchSettings`` as JSON; ``OUT`` gets a line of JSON for each source in each
round. A process of its own, because Java stays in the process in which a session was made.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.first_rows.python_source import FORMAT as NUMBERS
from benchmarks.first_rows.python_source import Numbers
from benchmarks.processes import RunError
from benchmarks.reads.form_tables import DATABASE_OPTIONS, POLLED, name_polled
from benchmarks.reads.spark_processes import count_cpu_seconds
from benchmarks.scenario import Figure
from watcher import register
from watcher.process.spark.local_spark import session

SourceName = Literal["rate", "python", "table", "consumer", "tables"]
PHASES = ("latestOffset", "queryPlanning", "addBatch", "walCommit", "commitOffsets")
WHOLE = "triggerExecution"
LOOK_EVERY_SECONDS = 0.1
SECONDS_MAX = 180


class MicroBatchSettings(BaseModel):
    """``sources``, each in turn in every round: ``rate`` (Spark's own rows, one partition),
    ``python`` (a source in Python that does nothing but give rows: the floor), ``table`` (one that
    is polled), ``consumer`` (the same with ``consumer``), ``tables`` (so many, of which each
    changes). ``rows`` change for each micro-batch, of each table. ``trigger_ms`` is its interval;
    after ``warm_up`` micro-batches medians of ``batches`` count. ``async_progress``: Spark's
    ``asyncProgressTrackingEnabled``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sources: tuple[SourceName, ...] = ("rate", "python", "table", "consumer", "tables")
    rows: Annotated[int, Field(ge=1)] = 100
    tables: Annotated[int, Field(ge=2)] = 5
    trigger_ms: Annotated[int, Field(ge=0)] = 300
    warm_up: Annotated[int, Field(ge=0)] = 5
    batches: Annotated[int, Field(ge=1)] = 10
    rounds: Annotated[int, Field(ge=1)] = 3
    async_progress: bool = False


@dataclass(frozen=True, slots=True)
class Round:
    """What the micro-batches of a source took in a round: milliseconds of each phase, tasks, and
    CPU milliseconds of the driver, its JVM and the workers a micro-batch."""

    progress: list[Mapping[str, Any]]
    tasks: float
    cpu_ms: float

    def median(self, *phases: str) -> float:
        """Of some phases together."""
        sums = [float(sum(d.get(name, 0) for name in phases)) for d in self._durations()]
        return statistics.median(sums)

    def _durations(self) -> list[Mapping[str, int]]:
        return [each["durationMs"] for each in self.progress]


def main() -> None:
    """Reads the command line; a line for each source in each round."""
    settings, out = MicroBatchSettings.model_validate_json(sys.argv[1]), Path(sys.argv[2])
    spark = session("micro-batches", {"spark.sql.streaming.numRecentProgressUpdates": "1000"})
    register(spark)
    spark.dataSource.register(Numbers)
    with out.open("w") as file:
        for number in range(settings.rounds):
            for source in settings.sources:
                measured = asdict(measure_round(spark, settings, source, number))
                print(json.dumps([source, measured]), file=file, flush=True)
    spark.stop()


def measure_round(
    spark: SparkSession, settings: MicroBatchSettings, source: SourceName, number: int
) -> Round:
    """The micro-batches of a query of its own."""
    with tempfile.TemporaryDirectory() as folder:
        query = start(load(spark, settings, source, number), settings, folder)
        try:
            wait_for_batches(query, settings.warm_up)
            used, before = count_cpu_seconds(), len(list_filled(query))
            wait_for_batches(query, settings.warm_up + settings.batches)
            cpu = (count_cpu_seconds() - used) / (len(list_filled(query)) - before)
            progress = list_filled(query)[settings.warm_up :]
            return Round(progress, count_tasks(spark, query), cpu * 1_000)
        finally:
            query.stop()


def load(
    spark: SparkSession, settings: MicroBatchSettings, source: SourceName, number: int
) -> DataFrame:
    """The stream of a source."""
    read = spark.readStream
    if source == "rate":
        rate = read.format("rate-micro-batch").option("numPartitions", "1")
        return rate.option("rowsPerBatch", str(settings.rows)).load()
    if source == "python":
        return read.format(NUMBERS).option("rows", str(settings.rows)).load()
    options = {"table": POLLED}
    if source == "consumer":
        options |= {"consumer": f"micro-batches-{number}"}
    if source == "tables":
        options = {"tables": ",".join(map(name_polled, range(settings.tables)))}
    return read.format("spanner-changes").options(**DATABASE_OPTIONS, **options).load()


def start(frame: DataFrame, settings: MicroBatchSettings, folder: str) -> StreamingQuery:
    """A query into nothing."""
    writer = frame.writeStream.format("noop").option("checkpointLocation", folder)
    if settings.async_progress:
        writer = writer.option("asyncProgressTrackingEnabled", "true")
    return writer.trigger(processingTime=f"{settings.trigger_ms} milliseconds").start()


def list_filled(query: StreamingQuery) -> list[Mapping[str, Any]]:
    """The progress of each micro-batch that had rows, in their order."""
    every = (json.loads(each.json) for each in query.recentProgress)
    by_batch = {each["batchId"]: each for each in every if each["numInputRows"]}
    return [by_batch[number] for number in sorted(by_batch)]


def wait_for_batches(query: StreamingQuery, count: int) -> None:
    """Until so many micro-batches had rows. Raises RunError, and what ended the query."""
    until = time.monotonic() + SECONDS_MAX
    while query.isActive and len(list_filled(query)) < count:
        if time.monotonic() > until:
            raise RunError(f"no {count} micro-batches in {SECONDS_MAX} s: {query.status}")
        time.sleep(LOOK_EVERY_SECONDS)
    if (error := query.exception()) is not None:
        raise error


def count_tasks(spark: SparkSession, query: StreamingQuery) -> float:
    """The median of the tasks of its micro-batches that Spark still knows."""
    tracker = spark.sparkContext.statusTracker()
    counts = []
    for job in tracker.getJobIdsForGroup(str(query.runId)):
        info = tracker.getJobInfo(job)
        stages = [tracker.getStageInfo(each) for each in info.stageIds] if info else []
        counts.append(sum(stage.numTasks for stage in stages if stage is not None))
    return statistics.median(counts) if counts else 0


def describe(rounds: list[Round], floor: list[Round]) -> Figure:
    """A row of the table: medians of the rounds, and of what each says beside the floor."""

    def median(*phases: str) -> int:
        return round(statistics.median(each.median(*phases) for each in rounds))

    pairs = list(zip(rounds, floor, strict=True))
    return {
        "whole_ms": median(WHOLE),
        "times_floor": round(
            statistics.median(a.median(WHOLE) / b.median(WHOLE) for a, b in pairs), 2
        ),
        **{f"{phase}_ms": median(phase) for phase in PHASES[:3]},
        "checkpoint_ms": median("walCommit", "commitOffsets"),
        "tasks": statistics.median(each.tasks for each in rounds),
        "cpu_ms": round(statistics.median(each.cpu_ms for each in rounds)),
        "times_floor_cpu": round(statistics.median(a.cpu_ms / b.cpu_ms for a, b in pairs), 2),
    }


if __name__ == "__main__":
    main()
