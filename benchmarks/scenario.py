"""What a scenario is: settings, and something that turns them into figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from benchmarks import experiment
from benchmarks.experiment import Show, ignore_progress
from benchmarks.load.workload import Workload
from benchmarks.pages.charts import Chart, Line
from benchmarks.result import Cell, RunResult
from benchmarks.run_settings import PEERS, RunPlan
from watcher.model.errors import ConfigurationError
from watcher.process.spark.java import JavaNotFoundError, ensure_java
from watcher.settings.fields import describe_validation_error

Model = TypeVar("Model", bound=BaseModel)

Figure = dict[str, Cell]
Points = tuple[tuple[float, float | None], ...]


@dataclass(slots=True)
class ScenarioOutcome:
    """What a scenario found, filled while it runs. ``keys`` name the columns that tell a row of the
    table from the others."""

    keys: tuple[str, ...]
    figures: list[Figure] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    runs: list[RunResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Bench:
    """Where a scenario runs, and what it has found so far. ``database`` None: an embedded server,
    new for every run."""

    outcome: ScenarioOutcome
    database: str | None = None
    show: Show = ignore_progress

    def run(self, name: str, plan: RunPlan) -> RunResult:
        """Does a run; whatever it lost, invented or doubled is a problem of the scenario."""
        result = experiment.run_plan(name, plan, self.database, self.show)
        self.outcome.runs.append(result)
        self.outcome.problems += list_problems(result)
        return result

    def add(self, figure: Figure) -> None:
        """A row of the table."""
        self.outcome.figures.append(figure)


@dataclass(frozen=True, slots=True)
class Scenario:
    """``run`` takes ``settings`` and fills the outcome. ``short`` are its settings for a short run,
    None where it has none; with ``in_short_set`` it is part of the short set. ``own_server``: it
    cannot run on another database."""

    name: str
    summary: str
    settings: type[BaseModel]
    keys: tuple[str, ...]
    run: Callable[[Any, Bench], None]
    short: tuple[str, ...] | None = None
    own_server: bool = False
    in_short_set: bool = True


def plan_of(settings: RunPlan, **changes: object) -> RunPlan:
    """The part of a scenario's settings that is a plan, with changes."""
    values = {name: getattr(settings, name) for name in RunPlan.model_fields}
    return RunPlan.model_validate(values | changes)


def change_values(model: Model, **values: object) -> Model:
    """A part of the settings with other values. Raises ConfigurationError for what cannot be."""
    try:
        return type(model).model_validate(model.model_dump() | values)
    except ValidationError as error:
        raise ConfigurationError(describe_validation_error(error)) from error


def set_rate(load: Workload, rate: float) -> Workload:
    """So many rows a second, in transactions of the same size."""
    return change_values(load, transactions=rate / load.mutations)


def list_problems(run: RunResult) -> list[str]:
    """What makes a run fail. The losses of others are what is measured, and no failure."""
    verdict = run.verdict
    if verdict.exact or run.plan.consumer.system in PEERS:
        return []
    kinds = ("missing", "invented", "wrong", "duplicates", "reordered")
    losses = [f"{getattr(verdict, k):,} {k}" for k in kinds if getattr(verdict, k)]
    return [f"{run.name}: of {verdict.written:,} rows written, {', '.join(losses)}"]


def latencies(run: RunResult) -> Figure:
    """Columns of every table that shows latencies: seconds from the intended arrival."""
    late = run.since_intended
    return {
        "p50_s": round(late.p50, 3),
        "p90_s": round(late.p90, 3),
        "p99_s": round(late.p99, 3),
        "p99.9_s": round(late.p999, 3),
        "max_s": round(late.maximum, 3),
    }


def throughput(run: RunResult) -> Figure:
    """Columns of every table that shows rates."""
    return {
        "written/s": round(run.written_per_second),
        "delivered/s": round(run.delivered_per_second),
        "missing": run.verdict.missing,
        "aborted": run.aborted,
    }


def costs(run: RunResult) -> Figure:
    """Columns of every table that shows what delivering cost."""
    rows = run.verdict.delivered
    scanned = run.scanned.scanned_per_row if run.scanned else None
    query = run.scanned.milliseconds_per_window if run.scanned else (None, None)
    cpu = run.consumer_cpu_seconds
    return {
        "scanned/row": scanned,
        "query_ms": query[0],
        "query_cpu_ms": query[1],
        "queries": run.queries.queries if run.queries else None,
        "queries_cpu_s": run.queries.cpu_seconds if run.queries else None,
        "index_rows": run.index_rows[-1][1] if run.index_rows else None,
        "cpu_s": cpu,
        "server_cpu_s": run.server_cpu_seconds,
        "cpu_s/100k": round(cpu * 100_000 / rows, 2) if rows else None,
        "peak_mb": run.consumer_peak_mb,
    }


def delivery(run: RunResult) -> Figure:
    """Latencies, rates and costs: what most tables show of a run."""
    return {**latencies(run), **throughput(run), **costs(run)}


def make_percentiles_chart(title: str, runs: Sequence[RunResult]) -> Chart:
    """Latency by percentile; x is 1 / (1 - percentile), so that each nine has its own width."""
    lines = [
        Line(
            label=run.name,
            points=tuple((100 / (100 - p), s) for p, s in run.since_intended.curve if p < 100),
        )
        for run in runs
    ]
    return Chart(
        title=title,
        x="percentile",
        y="seconds from the intended arrival",
        lines=tuple(lines),
        percentiles=True,
        log_y=True,
    )


def has_java(bench: Bench) -> bool:
    """Whether Spark can run here; if not, the scenario is skipped with the reason."""
    try:
        ensure_java()
    except JavaNotFoundError as error:
        bench.outcome.skipped.append(str(error))
        return False
    return True


def make_bar_chart(title: str, key: str, column: str, figures: Sequence[Figure]) -> Chart:
    """A column of the table as a bar for each row; rows without it are left out."""
    known = [(str(row[key]), row[column]) for row in figures if row.get(column) is not None]
    lines = (Line(label=label, points=((0.0, float(str(value))),)) for label, value in known)
    return Chart(title=title, x=key, y=column, lines=tuple(lines), bars=True)


def make_curve(
    title: str, x: str, columns: Sequence[str], y: str, figures: Sequence[Figure]
) -> Chart:
    """Columns of the table against one of them; a figure that is not there leaves a gap."""

    def make_points(column: str) -> Points:
        return tuple((float(str(f[x])), number(f.get(column))) for f in figures)

    lines = tuple(Line(label=column, points=make_points(column)) for column in columns)
    return Chart(title=title, x=x, y=y, lines=lines)


def number(cell: Cell) -> float | None:
    """A figure that is a number."""
    return None if cell is None else float(str(cell))


def make_time_chart(
    title: str, y: str, lines: dict[str, tuple[tuple[float, float | None], ...]]
) -> Chart:
    """A chart over the seconds of a run."""
    return Chart(
        title=title,
        x="seconds since the load began",
        y=y,
        lines=tuple(Line(label=label, points=points) for label, points in lines.items()),
    )


def make_run_charts(run: RunResult) -> list[Chart]:
    """What is drawn of every run."""

    def make_points(values: Sequence[float | None]) -> Points:
        return tuple((float(second), value) for second, value in enumerate(values))

    series = run.series
    charts = [
        make_time_chart(
            "throughput",
            "rows a second",
            {"written": make_points(series.written), "delivered": make_points(series.delivered)},
        ),
        make_time_chart(
            "backlog", "rows committed, not delivered", {"backlog": make_points(series.backlog)}
        ),
        make_time_chart(
            "latency",
            "seconds from the intended arrival",
            {
                "p50": make_points(series.p50),
                "p99": make_points(series.p99),
                "maximum": make_points(series.maximum),
            },
        ),
        make_percentiles_chart("latency by percentile", [run]),
    ]
    if run.index_rows:
        charts.append(make_time_chart("index", "rows in the index", {"index": run.index_rows}))
    return charts
