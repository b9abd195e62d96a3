"""Side by side with the published Java watcher: server, load, index, interval and limit alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.compiled import MissingToolsError
from benchmarks.java_watcher import build
from benchmarks.load.workload import Workload
from benchmarks.query_costs import QueryCosts
from benchmarks.result import RunResult
from benchmarks.run_settings import Consumer, Preparation, RunPlan, SystemName
from benchmarks.scenario import (
    Bench,
    Figure,
    Scenario,
    change_values,
    make_percentiles_chart,
    plan_of,
    set_rate,
)

TRANSACTIONS = 100.0
BURST_SECONDS = 2.1
"""Not a multiple of the interval: at two seconds every burst came as long before a poll as the
first, and the start of a run decided on the latency."""
INTERVAL_MIN = 0.02
"""Seconds. Polls that follow one another faster take longer than their interval."""
SYSTEMS: tuple[SystemName, SystemName] = ("watcher", "java")


class JavaSettings(RunPlan):
    """``sizes`` are the rows of each backlog, ``rates`` rows a second. ``equal_seconds`` is how
    long rows of bursts (of ``equal_rows`` rows with one commit timestamp, at a limit of
    ``equal_limit`` rows a poll) are updated while the bursts are delivered; 0 leaves it out. At
    ``equal_cost_rates`` rows a second ours also polls as often as costs its client as much CPU as
    Java's; ``probe_interval`` is where its polls are measured for that."""

    workload: Workload = Workload(seconds=20)
    preparation: Preparation = Preparation(shards=19)
    consumer: Consumer = Consumer(interval=1.0, max_rows=10_000)
    backlog_mutations: int = 1_000
    count_scans: bool = True
    sizes: tuple[int, ...] = (30_000, 100_000, 300_000)
    rates: tuple[float, ...] = (500, 1_000, 3_000, 5_000)
    equal_seconds: float = 20
    equal_rows: int = 5_000
    equal_limit: int = 1_000
    equal_cost_rates: tuple[float, ...] = (1_000,)
    probe_interval: float = 0.1


Measure = Callable[[RunResult], float | None]
Pair = tuple[RunResult, RunResult]
"""A run of ours, and one of Java's."""


def run(settings: JavaSettings, bench: Bench) -> None:
    """Each case with the one, then with the other."""
    try:
        build.command()
    except MissingToolsError as error:
        bench.outcome.skipped.append(str(error))
        return
    pairs: dict[str, Pair] = {}
    for name, plan in list_cases(settings):
        pairs[name] = run_pair(bench, name, plan)
        add_figures(bench, name, plan, pairs[name])
    for rate in settings.equal_cost_rates:
        compare_at_equal_cost(settings, bench, rate, pairs.get(name_rate(rate)))
    bench.outcome.notes.append(
        "ratio: how many times ours is better. Times and CPU count from when a watcher runs, so"
        " that the start of the JVM and of Python is in none; rows a second of a backlog until its"
        " last row. missing: keys whose newest version never came."
    )


def run_pair(bench: Bench, name: str, plan: RunPlan) -> Pair:
    """A case with ours, then with Java's."""
    ours, java = (bench.run(f"{name}, {system}", change_system(plan, system)) for system in SYSTEMS)
    return ours, java


def add_figures(bench: Bench, name: str, plan: RunPlan, pair: Pair) -> None:
    """The rows of a case, and its chart."""
    measures = MEASURES_OF_LOAD if plan.write else MEASURES
    bench.outcome.figures += compare_runs(name, measures, *pair)
    if plan.write:
        bench.outcome.charts.append(make_percentiles_chart(f"{name}: latency by percentile", pair))


def compare_at_equal_cost(
    settings: JavaSettings, bench: Bench, rate: float, pair: Pair | None
) -> None:
    """Ours at the interval that takes as much client CPU as Java's at its own."""
    name, plan = name_rate(rate), plan_of_rate(settings, rate)
    ours, java = pair or run_pair(bench, name, plan)
    probe = bench.run(
        f"{name}, watcher, every {settings.probe_interval:g} s",
        change_interval(plan, settings.probe_interval),
    )
    long, short, goal = (measure_poll_cost(run) for run in (ours, probe, java))
    if long is None or short is None or goal is None:
        bench.outcome.skipped.append(f"{name} at equal client CPU: a client told no CPU time")
        return
    interval = choose_equal_interval(long, short, goal.cpu)
    name = f"{name}, equal client CPU"
    frequent = bench.run(f"{name}, every {interval:g} s", change_interval(plan, interval))
    bench.outcome.notes.append(
        f"{name}: ours every {interval:g} s, Java's every {plan.consumer.interval:g} s"
    )
    add_figures(bench, name, plan, (frequent, java))


def list_cases(settings: JavaSettings) -> list[tuple[str, RunPlan]]:
    """The runs of each system, by name."""
    cases = [(f"backlog of {size:,}", backlog(settings, size)) for size in settings.sizes]
    cases += [(name_rate(rate), plan_of_rate(settings, rate)) for rate in settings.rates]
    if settings.equal_seconds:
        cases.append(("equal-timestamps", equal_timestamps(settings)))
    return cases


def name_rate(rate: float) -> str:
    """The case of a rate, for people."""
    return f"{rate:,.0f} rows/s"


def plan_of_rate(settings: JavaSettings, rate: float) -> RunPlan:
    """So many rows a second."""
    return plan_of(settings, workload=set_rate(settings.workload, rate))


def backlog(settings: JavaSettings, size: int) -> RunPlan:
    """Nothing but rows that have changed before."""
    load = change_values(settings.workload, rows=0, inserts=1.0)
    return plan_of(settings, workload=load, backlog=size, write=False)


def equal_timestamps(settings: JavaSettings) -> RunPlan:
    """A burst every ``BURST_SECONDS``; between them small updates of the rows of the latest."""
    bursts = int(settings.equal_seconds // BURST_SECONDS) + 1
    load = change_values(
        settings.workload,
        transactions=TRANSACTIONS,
        mutations=10,
        seconds=settings.equal_seconds,
        writers=1,
        tables=1,
        rows=bursts * settings.equal_rows,
        burst=settings.equal_rows,
        burst_every=int(BURST_SECONDS * TRANSACTIONS),
    )
    consumer = settings.consumer.model_copy(update={"max_rows": settings.equal_limit})
    return plan_of(settings, workload=load, consumer=consumer)


def change_system(plan: RunPlan, system: SystemName) -> RunPlan:
    """The same with another system."""
    return plan_of(plan, consumer=plan.consumer.model_copy(update={"system": system}))


def change_interval(plan: RunPlan, interval: float) -> RunPlan:
    """The same, polled every so many seconds."""
    return plan_of(plan, consumer=plan.consumer.model_copy(update={"interval": interval}))


def compare_runs(
    case: str, measures: Mapping[str, Measure], ours: RunResult, theirs: RunResult
) -> list[Figure]:
    """A row a measure; the other system's column has its name."""
    rows: list[Figure] = []
    for name, measure in measures.items():
        our_figure, their_figure = measure(ours), measure(theirs)
        better = (
            (our_figure, their_figure) if name in MORE_IS_BETTER else (their_figure, our_figure)
        )
        rows.append(
            {
                "case": case,
                "figure": name,
                "ours": our_figure,
                theirs.plan.consumer.system: their_figure,
                "ratio": None if name in COUNTS else ratio(*better),
            }
        )
    return rows


def ratio(above: float | None, below: float | None) -> float | None:
    """How many times ours is better; below 1 it is worse."""
    return round(above / below, 2) if above is not None and below else None


def compute_running_rate(run: RunResult) -> float | None:
    """Rows a second from when the watcher ran until the last row."""
    times = run.client
    return round(run.verdict.delivered / times.running) if times and times.running else None


def cpu_per_100k(run: RunResult) -> float | None:
    """CPU seconds of the client per 100,000 delivered rows."""
    rows = run.verdict.delivered
    return round(run.client.cpu_running * 100_000 / rows, 2) if run.client and rows else None


def compute_scanned_per_row(run: RunResult) -> float | None:
    """Rows that the server scanned for each delivered row."""
    rows = run.verdict.delivered
    return round(run.queries.rows_scanned / rows, 2) if run.queries and rows else None


def read_query_cost(take: Callable[[QueryCosts], float]) -> Measure:
    """A figure of what the server did for the client."""
    return lambda run: take(run.queries) if run.queries else None


MEASURES: dict[str, Measure] = {
    "rows/s": compute_running_rate,
    "client CPU s/100k rows": cpu_per_100k,
    "client peak MB": lambda run: run.consumer_peak_mb,
    "server queries": read_query_cost(lambda costs: costs.queries),
    "rows scanned": read_query_cost(lambda costs: costs.rows_scanned),
    "rows scanned/row": compute_scanned_per_row,
    "server CPU s of queries": read_query_cost(lambda costs: costs.cpu_seconds),
    "written": lambda run: run.verdict.written,
    "delivered": lambda run: run.verdict.delivered,
    "missing": lambda run: run.verdict.missing,
}
MEASURES_OF_LOAD: dict[str, Measure] = {
    "p50 s": lambda run: round(run.since_intended.p50, 3),
    "p99 s": lambda run: round(run.since_intended.p99, 3),
    "max s": lambda run: round(run.since_intended.maximum, 3),
    "written/s": lambda run: round(run.written_per_second),
    **{name: measure for name, measure in MEASURES.items() if name != "rows/s"},
}
MORE_IS_BETTER = {"rows/s"}
COUNTS = {"written/s", "written", "delivered", "missing"}
"""Figures of which no ratio is made."""

SCENARIO = Scenario(
    name="java",
    summary="side by side with the Java Spanner Change Watcher 1.2.1: backlog, latency, losses",
    settings=JavaSettings,
    keys=("case", "figure"),
    run=run,
    own_server=True,
)


@dataclass(frozen=True, slots=True)
class PollCost:
    """``cpu``: client CPU seconds in a second of load, at an ``interval`` in seconds."""

    interval: float
    cpu: float


def measure_poll_cost(run: RunResult) -> PollCost | None:
    """What a run has cost its client; None where it has not told its CPU time."""
    times = run.client
    if times is None or not times.running:
        return None
    return PollCost(run.plan.consumer.interval, times.cpu_running / times.running)


def choose_equal_interval(long: PollCost, short: PollCost, cpu: float) -> float:
    """The interval at which polls cost ``cpu``, from what two intervals cost: a part that the rows
    cost, and one for each poll. Never a longer one than the ``long`` one, nor under 20 ms."""
    polls = 1 / short.interval - 1 / long.interval
    cost_of_poll = (short.cpu - long.cpu) / polls
    cost_of_rows = long.cpu - cost_of_poll / long.interval
    if cpu <= long.cpu:
        return long.interval
    if cost_of_poll <= 0 or cpu <= cost_of_rows:
        return INTERVAL_MIN
    fitting = cost_of_poll / (cpu - cost_of_rows)
    return round(min(long.interval, max(INTERVAL_MIN, fitting)), 3)
