"""A table into Spark by our source and by Spark's connector for Spanner, in one warm session.

The connector's jar is built by who runs this: docs/benchmarks.md says how.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from benchmarks.compiled import MissingToolsError
from benchmarks.connector_reads import JAR, ConnectorSettings
from benchmarks.maven import find_tools
from benchmarks.processes import run_module
from benchmarks.scenario import Bench, Scenario, make_bar_chart
from benchmarks.served_table import serve_table
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
    with tempfile.TemporaryDirectory() as folder, serve_table(settings.rows):
        out = Path(folder, "figures")
        environment = {"PYTHONPATH": settings.spark} if settings.spark else {}
        arguments = (settings.model_dump_json(), str(out))
        run_module(
            "connector", Path(folder, "log"), "benchmarks.connector_reads", arguments, environment
        )
        for line in out.read_text().splitlines():
            bench.add(json.loads(line))
    bench.outcome.charts.append(
        make_bar_chart("times the connector's rows/s", "read", "times", bench.outcome.figures)
    )


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
    short=("rows=20000", "kinds=five,count", "rounds=1"),
    own_server=True,
)
