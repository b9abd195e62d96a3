"""What an empty task costs a Python worker, by the version of Spark and by how workers start."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from benchmarks.first_rows.rounds import QUIET
from benchmarks.processes import ask_module
from benchmarks.scenario import Bench, Figure, Scenario, has_java, make_bar_chart
from watcher.model.errors import ConfigurationError

NAMED = {"PYSPARK_PYTHON": sys.executable}
DAEMON = {"spark.python.daemon.module": "watcher.spark_daemon"}
ONE_CORE = {"spark.master": "local[1]"}


@dataclass(frozen=True, slots=True)
class Workers:
    """How workers start. ``product``: their tasks load our source; ``register``: the session knows
    it, so that they are started by its command where no Python is named."""

    product: bool
    register: bool
    environment: Mapping[str, str] = field(default_factory=dict)
    spark: Mapping[str, str] = field(default_factory=dict)


WORKERS = {
    "spark alone": Workers(product=False, register=False, environment=NAMED),
    "PYSPARK_PYTHON set": Workers(product=True, register=True, environment=NAMED),
    "not set": Workers(product=True, register=True),
    "watcher.spark_daemon": Workers(product=True, register=True, environment=NAMED, spark=DAEMON),
}
"""``spark alone`` is what was before: tasks of a source that leaves all to Spark."""


class TaskSettings(BaseModel):
    """``spark`` are folders with other PySparks than the one that is installed, which is read
    where there is ``installed``. Medians of ``rounds`` of so many ``tasks``, on one core, in a
    session for each way to start workers: ``spark alone`` (tasks that load nothing of ours),
    ``PYSPARK_PYTHON set``, ``not set`` (then ``register`` names our command),
    ``watcher.spark_daemon``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    spark: tuple[str, ...] = ("installed",)
    tasks: Annotated[int, Field(ge=1)] = 60
    rounds: Annotated[int, Field(ge=1)] = 3


def run(settings: TaskSettings, bench: Bench) -> None:
    """A row of the table for each version and way."""
    if not has_java(bench):
        return
    for folder in settings.spark:
        if folder != "installed" and not Path(folder, "pyspark").is_dir():
            raise ConfigurationError(f"{folder} has no PySpark: pip install --target {folder}")
    for folder in settings.spark:
        for name, workers in WORKERS.items():
            bench.add(measure(settings, folder, workers) | {"workers": name})
    bench.outcome.charts.append(
        make_bar_chart("CPU ms a task", "workers", "cpu_ms", bench.outcome.figures)
    )


def measure(settings: TaskSettings, spark: str, workers: Workers) -> Figure:
    """The version of Spark, and CPU milliseconds a task."""
    chosen = {
        "product": workers.product,
        "register": workers.register,
        "tasks": settings.tasks,
        "rounds": settings.rounds,
        "spark": {**QUIET, **ONE_CORE, **workers.spark},
    }
    path = {} if spark == "installed" else {"PYTHONPATH": spark}
    environment = {**workers.environment, **path}
    arguments = (json.dumps(chosen),)
    found: Figure
    (found,) = ask_module("tasks", "benchmarks.reads.task_costs", arguments, environment)
    return found


SCENARIO = Scenario(
    name="tasks",
    summary="what an empty task costs a Python worker of Spark's, by how workers start",
    settings=TaskSettings,
    keys=("spark", "workers"),
    run=run,
    short=("tasks=5", "rounds=1"),
    own_server=True,
    in_short_set=False,
)
