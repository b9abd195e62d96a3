"""A table into Spark by our source and by Spark's connector for Spanner, in one warm session.

The connector's jar is built by who runs this: docs/benchmarks.md says how.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.compiled import MissingToolsError
from benchmarks.first_rows.rounds import TO_FIRST_ROWS, Job, Phases, run_in_turns
from benchmarks.maven import find_tools
from benchmarks.processes import ask_module
from benchmarks.reads.connector_reads import (
    JAR,
    ConnectorSettings,
    compare,
    make_own_options,
    make_their_options,
)
from benchmarks.reads.served_table import serve_table
from benchmarks.scenario import Bench, Figure, Scenario, make_bar_chart
from watcher.model.errors import ConfigurationError
from watcher.process.spark.java import JavaNotFoundError, ensure_java

PROGRAM = "Spark's connector for Spanner"
JDK = 17


def run(settings: ConnectorSettings, bench: Bench) -> None:
    """A row of the table for each kind of read."""
    lacking = find_lacking(settings)
    if lacking is not None:
        bench.outcome.skipped.append(lacking)
        return
    with serve_table(settings.rows, settings.shape) as server:
        if settings.first_rounds:
            measure_first(settings, bench)
        arguments = (settings.model_dump_json(), str(server.pid))
        environment = make_environment(settings)
        for figure in ask_module(
            "connector", "benchmarks.reads.connector_reads", arguments, environment
        ):
            bench.add(figure)
    bench.outcome.charts.append(
        make_bar_chart("times the connector's rows/s", "read", "times", bench.outcome.figures)
    )


def make_environment(settings: ConnectorSettings) -> dict[str, str]:
    """What leads to the PySpark that is measured."""
    return {"PYTHONPATH": settings.spark} if settings.spark else {}


def measure_first(settings: ConnectorSettings, bench: Bench) -> None:
    """Rows for a session that is made, and for its first read of the whole table; new processes in
    turns. Before them one that does not count, of files that no one has read yet."""
    environment, jar = make_environment(settings), {"spark.jars": settings.jar}
    made = partial(Job, job="batch", rows=settings.rows, sink="noop", environment=environment)
    jobs = [
        made("ours-prestarted", options=make_own_options(settings.max_partitions)),
        made("connector", options=make_their_options(), spark=jar),
    ]
    run_in_turns(jobs, 1)
    ours, theirs = run_in_turns(jobs, settings.first_rounds)
    bench.add(describe_first("session made", ("imports", "session"), ours, theirs))
    bench.add(describe_first("first action", ("register", "plan", "first"), ours, theirs))
    bench.add(describe_first("start to rows", TO_FIRST_ROWS, ours, theirs))


def describe_first(
    read: str, phases: Sequence[str], ours: Sequence[Phases], theirs: Sequence[Phases]
) -> Figure:
    """A row of the table; ``times`` above 1: ours is faster."""
    mine, other = ([each.add(phases) for each in found] for found in (ours, theirs))
    return {
        "read": read,
        "seconds": round(statistics.median(a for a, _ in mine), 2),
        "connector_seconds": round(statistics.median(a for a, _ in other), 2),
        "times": compare([a for a, _ in other], [a for a, _ in mine]),
        "cpu_s": round(statistics.median(b for _, b in mine), 2),
        "connector_cpu_s": round(statistics.median(b for _, b in other), 2),
        "times_cpu": compare([b for _, b in other], [b for _, b in mine]),
    }


def find_lacking(settings: ConnectorSettings) -> str | None:
    """Why it cannot run here. Raises ConfigurationError for a path that leads nowhere."""
    for name, path in (("jar", settings.jar), ("spark", settings.spark)):
        if path and not Path(path).exists():
            raise ConfigurationError(f"{name}={path} does not exist")
    try:
        ensure_java()
        if not settings.jar:
            find_tools(PROGRAM, JDK)
    except (JavaNotFoundError, MissingToolsError) as error:
        return str(error)
    if settings.jar:
        return None
    return (
        f"the jar of {PROGRAM} is not named: build it as docs/benchmarks.md says, and give"
        f" --set jar=PATH, or set {JAR}"
    )


SCENARIO = Scenario(
    name="connector",
    summary="a table into Spark, beside Spark's own connector for Spanner: rows a second, CPU",
    settings=ConnectorSettings,
    keys=("read",),
    run=run,
    short=("rows=20000", "kinds=five,count", "rounds=1", "first_rounds=0"),
    own_server=True,
)
