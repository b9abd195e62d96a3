"""What a micro-batch of few rows takes in a warm session, beside what Spark needs by itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from benchmarks.form_tables import ADDRESS, add_polled, name_polled, update_polled
from benchmarks.micro_batch_runs import MicroBatchSettings
from benchmarks.processes import ask_module
from benchmarks.scenario import Bench, Scenario, has_java, make_bar_chart
from benchmarks.served_table import serve_table
from watcher.spanner.database import connect

SHORTEST_MS = 100


def run(settings: MicroBatchSettings, bench: Bench) -> None:
    """A row of the table for each source."""
    if not has_java(bench):
        return
    with serve_table(settings.rows):
        add_polled(settings.tables - 1, settings.rows)
        arguments = (settings.model_dump_json(),)
        with change_rows(settings):
            found = ask_module("micro-batches", "benchmarks.micro_batch_runs", arguments)
    for figure in found:
        bench.add(figure)
    bench.outcome.charts.append(
        make_bar_chart("ms a micro-batch", "source", "whole_ms", bench.outcome.figures)
    )


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
    name="micro-batches",
    summary="a micro-batch of few rows in a warm session: each phase, tasks, CPU, and the floor",
    settings=MicroBatchSettings,
    keys=("source",),
    run=run,
    short=("sources=python,table", "batches=5", "warm_up=2", "rounds=1"),
    own_server=True,
    in_short_set=False,
)
