"""What a micro-batch of few rows takes in a warm session, beside what Spark needs by itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from benchmarks.experiment import RunProgress
from benchmarks.processes import follow_module
from benchmarks.reads.form_tables import ADDRESS, add_polled, name_polled, update_polled
from benchmarks.reads.micro_batch_runs import MicroBatchSettings, Round, describe
from benchmarks.reads.served_table import serve_table
from benchmarks.scenario import Bench, Scenario, has_java, make_bar_chart
from watcher.spanner.database import connect

NAME = "micro-batches"
SHORTEST_MS = 100


def run(settings: MicroBatchSettings, bench: Bench) -> None:
    """A row of the table for each source."""
    if not has_java(bench):
        return
    with serve_table(settings.rows):
        add_polled(settings.tables - 1, settings.rows)
        with change_rows(settings):
            found = measure(settings, bench)
    for source, rounds in found.items():
        bench.add({"source": source, **describe(rounds, found.get("python", rounds))})
    bench.outcome.charts.append(
        make_bar_chart("ms a micro-batch", "source", "whole_ms", bench.outcome.figures)
    )


def measure(settings: MicroBatchSettings, bench: Bench) -> dict[str, list[Round]]:
    """The rounds of each source; shows how far they are."""
    found: dict[str, list[Round]] = {source: [] for source in settings.sources}
    began, module = time.monotonic(), "benchmarks.reads.micro_batch_runs"
    for source, measured in follow_module(NAME, module, (settings.model_dump_json(),)):
        found[source].append(Round(**measured))
        phase = f"round {len(found[source])} of {settings.rounds}"
        bench.show(RunProgress(f"{NAME}, {source}", phase, time.monotonic() - began, 0, 0))
    return found


@contextmanager
def change_rows(settings: MicroBatchSettings) -> Iterator[None]:
    """Changes rows of all tables meanwhile, in this process, whose CPU time is not measured. Raises
    what stopped that."""
    stop = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        changing = threads.submit(change_until, stop, settings)
        try:
            yield
        finally:
            stop.set()
        changing.result()


def change_until(stop: threading.Event, settings: MicroBatchSettings) -> None:
    """As often as there is a trigger, or ten times a second."""
    database, number = connect(ADDRESS), 0
    tables = [name_polled(each) for each in range(settings.tables)]
    while not stop.wait(max(settings.trigger_ms, SHORTEST_MS) / 1_000):
        number += 1
        update_polled(database, tables, settings.rows, number)


SCENARIO = Scenario(
    name=NAME,
    summary="a micro-batch of few rows in a warm session: each phase, tasks, CPU, and the floor",
    settings=MicroBatchSettings,
    keys=("source",),
    run=run,
    short=("sources=python,table", "batches=5", "warm_up=2", "rounds=1"),
    own_server=True,
    in_short_set=False,
)
