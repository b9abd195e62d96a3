"""A scenario from its settings to its result."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence

from pydantic import BaseModel

from benchmarks.experiment import Show, ignore_progress
from benchmarks.machine_load import CpuMeter
from benchmarks.overrides import list_settings, settings_of
from benchmarks.processes import RunError
from benchmarks.result import ScenarioResult, environment
from benchmarks.scenario import Bench, Scenario, ScenarioOutcome
from watcher.model.errors import ConfigurationError


def conduct(
    scenario: Scenario,
    overrides: Sequence[str] = (),
    database: str | None = None,
    show: Show = ignore_progress,
) -> ScenarioResult:
    """Runs a scenario with some settings replaced (``key=value``), on an embedded server or on a
    database that is there. A run that could not be done is a problem of the result.

    Raises ConfigurationError for settings that are wrong.
    """
    settings = check_settings(scenario, overrides, database)
    outcome = ScenarioOutcome(scenario.keys)
    where, began = environment(), time.monotonic()
    with CpuMeter() as meter:
        try:
            scenario.run(settings, Bench(outcome, database, show))
        except RunError as error:
            outcome.problems.append(str(error))
    return ScenarioResult(
        scenario=scenario.name,
        summary=scenario.summary,
        command=format_command(scenario, overrides, database),
        environment=where,
        settings=list_settings(settings),
        seconds=round(time.monotonic() - began, 1),
        keys=outcome.keys,
        figures=tuple(outcome.figures),
        charts=tuple(outcome.charts),
        runs=tuple(outcome.runs),
        notes=tuple(outcome.notes),
        skipped=tuple(outcome.skipped),
        problems=tuple(outcome.problems),
        defaults=list_settings(scenario.settings()),
        cpu=meter.use,
    )


def check_settings(scenario: Scenario, overrides: Sequence[str], database: str | None) -> BaseModel:
    """The settings of a run that is possible. Raises ConfigurationError."""
    if scenario.own_server and database is not None:
        raise ConfigurationError(
            f"the scenario {scenario.name} runs on the embedded server only: leave out --database"
        )
    return settings_of(scenario.settings, overrides)


def format_command(scenario: Scenario, overrides: Sequence[str], database: str | None) -> str:
    """The command line that does the same again."""
    parts = ["spanner-watcher", "bench", "run", scenario.name]
    for each in overrides:
        parts += ["--set", each]
    if database is not None:
        parts += ["--database", database]
    return shlex.join(parts)
