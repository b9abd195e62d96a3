"""A scenario from its settings to its result."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence

from pydantic import BaseModel

from benchmarks.experiment import Show, ignore
from benchmarks.overrides import flat, settings_of
from benchmarks.processes import RunError
from benchmarks.result import ScenarioResult, environment
from benchmarks.scenario import Bench, Outcome, Scenario
from watcher.errors import ConfigurationError


def conduct(
    scenario: Scenario,
    given: Sequence[str] = (),
    database: str | None = None,
    show: Show = ignore,
) -> ScenarioResult:
    """Runs a scenario with some settings replaced (``key=value``), on an embedded server or on a
    database that is there. A run that could not be done is a problem of the result.

    Raises ConfigurationError for settings that are wrong.
    """
    settings = checked(scenario, given, database)
    found = Outcome(scenario.keys)
    where, began = environment(), time.monotonic()
    try:
        scenario.run(settings, Bench(found, database, show))
    except RunError as error:
        found.problems.append(str(error))
    return ScenarioResult(
        scenario=scenario.name,
        summary=scenario.summary,
        command=command(scenario, given, database),
        environment=where,
        settings={name: jsonable(value) for name, value in flat(settings).items()},
        seconds=round(time.monotonic() - began, 1),
        keys=found.keys,
        figures=tuple(found.figures),
        charts=tuple(found.charts),
        runs=tuple(found.runs),
        notes=tuple(found.notes),
        skipped=tuple(found.skipped),
        problems=tuple(found.problems),
    )


def checked(scenario: Scenario, given: Sequence[str], database: str | None) -> BaseModel:
    """The settings of a run that is possible. Raises ConfigurationError."""
    if scenario.own_server and database is not None:
        raise ConfigurationError(f"the scenario {scenario.name} runs on the embedded server only")
    return settings_of(scenario.settings, given)


def command(scenario: Scenario, given: Sequence[str], database: str | None) -> str:
    """The command line that does the same again."""
    parts = ["spanner-watcher", "bench", "run", scenario.name]
    for each in given:
        parts += ["--set", each]
    if database is not None:
        parts += ["--database", database]
    return shlex.join(parts)


def jsonable(value: object) -> object:
    """A setting as JSON has it."""
    return list(value) if isinstance(value, tuple) else value
