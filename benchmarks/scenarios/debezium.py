"""Side by side with Debezium's connector: change stream, backlog and load alike."""

from __future__ import annotations

from benchmarks.compiled import MissingToolsError
from benchmarks.debezium import build
from benchmarks.load.workload import Workload
from benchmarks.run_settings import Consumer, RunPlan, SystemName
from benchmarks.scenario import (
    Bench,
    Scenario,
    change_values,
    make_percentiles_chart,
    plan_of,
    set_rate,
)
from benchmarks.scenarios.java import (
    Measure,
    change_system,
    compare_runs,
    compute_running_rate,
    cpu_per_100k,
)
from watcher.process.extras import MissingExtraError, require_extras

SYSTEMS: tuple[SystemName, SystemName] = ("watcher", "debezium")


class DebeziumSettings(RunPlan):
    """``sizes`` are the changes of each backlog, in commits of ``backlog_mutations``; ``rates``
    changes a second."""

    workload: Workload = Workload(seconds=20)
    consumer: Consumer = Consumer(capture="push", interval=0.1)
    backlog_mutations: int = 10
    sizes: tuple[int, ...] = (50_000, 150_000)
    rates: tuple[float, ...] = (1_000,)


def run(settings: DebeziumSettings, bench: Bench) -> None:
    """Each case with the one, then with the other."""
    try:
        require_extras("kafka")
        build.command()
    except (MissingToolsError, MissingExtraError) as error:
        bench.outcome.skipped.append(str(error))
        return
    for name, plan in list_cases(settings):
        runs = [bench.run(f"{name}, {system}", change_system(plan, system)) for system in SYSTEMS]
        bench.outcome.figures += compare_runs(
            name, MEASURES_OF_LOAD if plan.write else MEASURES, *runs
        )
        if plan.write:
            bench.outcome.charts.append(
                make_percentiles_chart(f"{name}: latency by percentile", runs)
            )
    bench.outcome.notes.append(
        "ratio: how many times ours is better. Ours ends in a callback, Debezium's in a topic of"
        " Kafka, where a consumer of librdkafka reads it. Its CPU is that of Kafka Connect alone,"
        " without the broker's. Times and CPU count from when each runs, which for Debezium is when"
        " its task says so: it then waits for partitions to be assigned by way of Kafka."
    )


def list_cases(settings: DebeziumSettings) -> list[tuple[str, RunPlan]]:
    """The runs of each system, by name."""
    load = change_values(settings.workload, rows=0, inserts=1.0)
    cases = [
        (f"backlog of {size:,}", plan_of(settings, workload=load, backlog=size, write=False))
        for size in settings.sizes
    ]
    cases += [
        (f"{rate:,.0f} changes/s", plan_of(settings, workload=set_rate(settings.workload, rate)))
        for rate in settings.rates
    ]
    return cases


MEASURES: dict[str, Measure] = {
    "rows/s": compute_running_rate,
    "client CPU s/100k rows": cpu_per_100k,
    "written": lambda run: run.verdict.written,
    "delivered": lambda run: run.verdict.delivered,
    "missing": lambda run: run.verdict.missing,
}
MEASURES_OF_LOAD: dict[str, Measure] = {
    "p50 s": lambda run: round(run.since_intended.p50, 4),
    "p99 s": lambda run: round(run.since_intended.p99, 4),
    "max s": lambda run: round(run.since_intended.maximum, 4),
    **{name: measure for name, measure in MEASURES.items() if name != "rows/s"},
}

SCENARIO = Scenario(
    name="debezium",
    summary="side by side with Debezium's connector for Spanner 3.6.0: backlog and latency",
    settings=DebeziumSettings,
    keys=("case", "figure"),
    run=run,
    own_server=True,
)
