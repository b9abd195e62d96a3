"""From the start of a job to the first rows in its sink: each phase, beside Spark's own rows."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from benchmarks.first_rows.job import JobKind
from benchmarks.first_rows.rounds import Job, SystemName, describe, run_in_turns
from benchmarks.reads.served_table import OPTIONS, serve_table
from benchmarks.scenario import Bench, Scenario, has_java, make_bar_chart
from watcher.process.spark.local_spark import SHORT_RUN

FLOOR: SystemName = "rate"
FROM_BEGINNING = {"startingTimestamp": "earliest"}


class FirstRowsSettings(BaseModel):
    """``systems``: ``rate`` (Spark's rate source, or a range: the floor, always there), ``python``
    (a source in Python that does nothing but give rows), ``ours``, ``ours-prestarted`` (with
    ``watcher.prestart()`` before the session), ``ours-archived`` (with the archive that
    ``spark-archive`` makes, too), ``rate-archived`` (the floor with it). ``jobs``: ``stream``,
    ``batch``. ``short_run``: the JVM's options for runs of a minute, for all.

    Each job is a process: ``imports`` (Python and what the job imports), ``session``, ``register``,
    ``plan`` (until there is a DataFrame), ``first`` (until its rows are in Parquet, a micro-batch
    of a stream committed), ``second`` (the same once more). They take turns, ``rounds`` times;
    medians count."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    systems: tuple[
        Literal["rate-archived", "python", "ours", "ours-prestarted", "ours-archived"], ...
    ] = ("rate-archived", "python", "ours", "ours-prestarted", "ours-archived")
    jobs: tuple[JobKind, ...] = ("stream", "batch")
    rows: Annotated[int, Field(ge=1)] = 1_000
    rounds: Annotated[int, Field(ge=1)] = 3
    short_run: bool = False


def run(settings: FirstRowsSettings, bench: Bench) -> None:
    """A row of the table for each job of each system."""
    if not has_java(bench):
        return
    with serve_table(settings.rows):
        for kind in settings.jobs:
            measure(settings, kind, bench)
    bench.outcome.charts.append(
        make_bar_chart("times the floor", "system", "times_floor", bench.outcome.figures)
    )


def measure(settings: FirstRowsSettings, kind: JobKind, bench: Bench) -> None:
    """All systems in turns."""
    systems: tuple[SystemName, ...] = (FLOOR, *settings.systems)
    options = OPTIONS | (FROM_BEGINNING if kind == "stream" else {})
    spark = SHORT_RUN if settings.short_run else {}
    jobs = [Job(name, kind, settings.rows, options=options, spark=spark) for name in systems]
    found = run_in_turns(jobs, settings.rounds)
    for name, phases in zip(systems, found, strict=True):
        bench.add({"job": kind, "system": name} | describe(phases, found[0]))


SCENARIO = Scenario(
    name="first-rows",
    summary="from the start of a Spark job to its first rows in Parquet: each phase and its floor",
    settings=FirstRowsSettings,
    keys=("job", "system"),
    run=run,
    short=("jobs=batch", "systems=ours", "rounds=1"),
    own_server=True,
    in_short_set=False,
)
