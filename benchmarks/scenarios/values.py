"""What a value of each type costs: by our columns, the best library that is installed, and a loop.

Everything is from memory, in one process: neither server nor network is measured. CPU time counts,
so that libraries with threads of their own are not ahead by them.
"""

from __future__ import annotations

import statistics
import time
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from benchmarks.decoding.contenders import (
    LIBRARIES,
    LOOP,
    OURS,
    PATHS,
    Contender,
    are_same,
    is_written,
    list_refusals,
    load_libraries,
)
from benchmarks.decoding.sample_values import KINDS, SampleKind, make_sample
from benchmarks.processes import RunError
from benchmarks.scenario import Bench, Figure, Scenario, make_bar_chart
from watcher.model.errors import ConfigurationError

Costs = dict[str, list[float]]
"""Nanoseconds of CPU time a value, by contender, one for each round."""


class ValuesSettings(BaseModel):
    """``kinds`` are types with sizes (empty: all), ``nulls`` shares of NULL. ``paths``: ``result``
    is a query's result to Arrow, ``stream`` the JSON of a change stream to Arrow, the others are
    cells of JSON formats, from Arrow or from a change stream. Contenders take turns, ``runs``
    times; medians count. One that gives other values than ours is left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kinds: tuple[str, ...] = ()
    nulls: tuple[Annotated[float, Field(ge=0, le=1)], ...] = (0.0, 0.5)
    paths: tuple[str, ...] = ()
    rows: Annotated[int, Field(ge=10)] = 20_000
    runs: Annotated[int, Field(ge=1)] = 5


def run(settings: ValuesSettings, bench: Bench) -> None:
    """A row of the table for each path, kind and share of NULL."""
    kinds = choose(settings.kinds, tuple(KINDS), "kinds")
    for path in choose(settings.paths, tuple(PATHS), "paths"):
        for name in (each for each in kinds if is_written(path, KINDS[each].type)):
            for nulls in settings.nulls:
                bench.add(measure_kind(path, KINDS[name], nulls, settings))
    for figure in bench.outcome.figures:
        figure["what"] = f"{figure['path']}, {figure['value']}, {figure['nulls']}"
    bench.outcome.charts.append(
        make_bar_chart("times the best library's CPU time", "what", "times", bench.outcome.figures)
    )
    bench.outcome.skipped += [
        f"{name} is not installed: pip install {name}"
        for name in LIBRARIES
        if name not in load_libraries()
    ]


def choose(chosen: tuple[str, ...], known: tuple[str, ...], setting: str) -> tuple[str, ...]:
    """What to measure; all where nothing is chosen. Raises ConfigurationError."""
    for name in chosen:
        if name not in known:
            raise ConfigurationError(f"'{setting}' has no {name!r}; there are: {', '.join(known)}")
    return chosen or known


def measure_kind(path: str, kind: SampleKind, nulls: float, settings: ValuesSettings) -> Figure:
    """Measures one kind of values."""
    contenders = PATHS[path](make_sample(kind, settings.rows, nulls))
    exact = keep_exact(contenders)
    costs = measure_costs(exact, settings)
    libraries = {n: each for n, each in costs.items() if n not in (OURS, LOOP)}
    best = min(libraries, key=lambda name: statistics.median(libraries[name]), default=None)
    return {
        "path": path,
        "value": kind.name,
        "nulls": nulls,
        "ours_ns": round(statistics.median(costs[OURS]), 1),
        "library": best,
        "library_ns": round(statistics.median(libraries[best]), 1) if best else None,
        "times": compare(costs, best),
        "loop_ns": round(statistics.median(costs[LOOP]), 1) if LOOP in costs else None,
        "times_loop": compare(costs, LOOP if LOOP in costs else None),
        "inexact": ", ".join(sorted(contenders.keys() - exact.keys())) or None,
    }


def compare(costs: Costs, other: str | None) -> float | None:
    """How many times our cost another one's is: the median of what each round says."""
    if other is None:
        return None
    pairs = zip(costs[other], costs[OURS], strict=True)
    return round(statistics.median(theirs / ours for theirs, ours in pairs), 2)


def keep_exact(contenders: dict[str, Contender]) -> dict[str, Contender]:
    """Those that give the values that ours gives, which tests hold against Spanner's client."""
    expected = contenders[OURS]()
    exact, refusals = {OURS: contenders[OURS]}, list_refusals()
    for name, contender in contenders.items():
        try:
            if are_same(expected, contender()):
                exact[name] = contender
        except refusals:
            continue  # it does not take such values
    if not len(expected):
        raise RunError("no values were read")
    return exact


def measure_costs(contenders: dict[str, Contender], settings: ValuesSettings) -> Costs:
    """They take turns, so that what else the machine does is the same for all."""
    costs: Costs = {name: [] for name in contenders}
    for _ in range(settings.runs):
        for name, contender in contenders.items():
            began = time.process_time_ns()
            contender()
            costs[name].append((time.process_time_ns() - began) / settings.rows)
    return costs


SCENARIO = Scenario(
    name="values",
    summary="a value of every type to Arrow and to JSON, against the best libraries and a loop",
    settings=ValuesSettings,
    keys=("path", "value", "nulls"),
    run=run,
    short=("rows=1000", "runs=1", "nulls=0.5"),
    own_server=True,
)
