"""How fast rows that have already changed are delivered."""

from __future__ import annotations

from benchmarks.load.workload import Workload
from benchmarks.run_settings import Consumer, RunPlan
from benchmarks.scenario import Bench, Figure, Scenario, costs, make_curve, plan_of


class BacklogSettings(RunPlan):
    """``sizes`` are the rows of each backlog; a run each. The time is from the start of the
    watcher, its connecting included, to the last row."""

    workload: Workload = Workload(rows=0, inserts=1)
    consumer: Consumer = Consumer(interval=0.1)
    write: bool = False
    sizes: tuple[int, ...] = (100_000, 300_000, 1_000_000)


def run(settings: BacklogSettings, bench: Bench) -> None:
    """A run for each size."""
    for size in settings.sizes:
        bench.add(measure_backlog(f"backlog of {size:,}", settings, size, bench))
    figures = bench.outcome.figures
    bench.outcome.charts += [
        make_curve("rows a second by backlog", "rows", ("rows/s",), "rows/s", figures),
        make_curve("seconds by backlog", "rows", ("seconds",), "seconds", figures),
    ]


def measure_backlog(name: str, settings: RunPlan, size: int, bench: Bench) -> Figure:
    """Loads so many rows, and has them delivered."""
    result = bench.run(name, plan_of(settings, backlog=size, write=False))
    rate = result.delivered_per_second
    return {
        "rows": size,
        "seconds": round(result.verdict.delivered / rate, 2) if rate else None,
        "rows/s": round(rate),
        "missing": result.verdict.missing,
        **costs(result),
    }


SCENARIO = Scenario(
    name="backlog",
    summary="rows that have changed before the watcher starts: rows a second, CPU, memory",
    settings=BacklogSettings,
    keys=("rows",),
    run=run,
    short=("sizes=30000",),
)
