"""A change stream of thousands of partitions that split and merge: what a window costs its reader.

The embedded server has twelve partitions at most. So the answers to all queries of a window are
made beforehand, and read by the product's own code: Spanner's part and the network are left out."""

from __future__ import annotations

import pickle
import time
import tracemalloc
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from benchmarks.experiment import RunProgress
from benchmarks.model import Assumptions, estimate_stream_window
from benchmarks.scale_model import Calibration, add_forecasts
from benchmarks.scenario import Bench, Figure, Scenario, make_curve
from benchmarks.simulated_stream import (
    STREAM,
    SimulatedQueries,
    SimulatedStream,
    churn_partitions,
    simulate,
)
from watcher.captures.change_stream import ChangeStreamCapture, WatchedStream
from watcher.model.change import ValueCapture
from watcher.model.window import Window

READERS = 16
WINDOW = Window(1_700_000_000_000_000, 1_700_000_010_000_000)
Result = TypeVar("Result")


class ScalePartitionsSettings(BaseModel):
    """``values`` are numbers of partitions at the start of a window of ten seconds; a ``churn`` of
    them split or merge in it. Forecasts are made of the first two."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    values: tuple[Annotated[int, Field(ge=1)], ...] = (100, 1_000, 10_000)
    churn: Annotated[float, Field(ge=0, le=1)] = 0.05
    seed: int = 1


def run(settings: ScalePartitionsSettings, bench: Bench) -> None:
    """A row of the table for each number of partitions."""
    for count in settings.values:
        bench.show(RunProgress(f"{count:,} partitions", "planning and reading", 0, 0, 0))
        figure, problem = measure_window(count, settings)
        bench.add(figure)
        bench.outcome.problems += [problem] if problem else []
        bench.outcome.notes.append(describe_queries(int(str(figure["in_window"]))))
    add_forecasts(bench.outcome, "partitions", CALIBRATIONS)
    bench.outcome.charts.append(
        make_curve(
            "a window by the number of partitions",
            "partitions",
            ("plan_ms", "read_ms"),
            "ms of CPU",
            bench.outcome.figures,
        )
    )


CALIBRATIONS: dict[str, Calibration] = {
    "plan_ms": "line",
    "read_ms": "line",
    "plan_peak_mb": "line",
    "read_peak_mb": "line",
}


def measure_window(count: int, settings: ScalePartitionsSettings) -> tuple[Figure, str]:
    """What a window costs; the second is what was wrong, if anything was."""
    partitions = churn_partitions(count, settings.churn, WINDOW, settings.seed)
    stream = simulate(partitions, WINDOW)
    capture = make_capture(stream)
    plan_ms, slices = measure_cpu(lambda: capture.plan(WINDOW))
    stream.queries = 0
    read_ms, changes = measure_cpu(lambda: sum(1 for _ in capture.read_window(WINDOW)))
    queries = stream.queries
    slice_ms, _ = measure_cpu(lambda: [sum(1 for _ in capture.read(part)) for part in slices])
    queries_of_slices = stream.queries - queries
    figure: Figure = {
        "partitions": count,
        "in_window": len(partitions),
        "plan_ms": plan_ms,
        "slices": len(slices),
        "sent_kb": round(sum(len(pickle.dumps(part)) for part in slices) / 1_000),
        "plan_peak_mb": measure_peak(lambda: capture.plan(WINDOW)),
        "read_ms": read_ms,
        "queries": queries,
        "read_peak_mb": measure_peak(lambda: sum(1 for _ in capture.read_window(WINDOW))),
        "slices_ms": slice_ms,
    }
    return figure, check_queries(len(partitions), queries, queries_of_slices, changes)


def describe_queries(partitions: int) -> str:
    """How long the queries of a window would take, which is not measured here."""
    assumptions = Assumptions()
    alone, side_by_side = (
        estimate_stream_window(partitions, readers, assumptions) for readers in (1, READERS)
    )
    return (
        f"by bench model, not measured: the queries of {partitions:,} partitions take"
        f" {alone:,.1f} s one after another, as a watcher asks them, and {side_by_side:,.1f} s"
        f" {READERS} side by side, with {assumptions.seek_seconds} s each"
    )


def check_queries(partitions: int, window: int, slices: int, changes: int) -> str:
    """A window asks for its partitions, and once for each; so do its slices together, without the
    first. What did not is told."""
    if (window, slices, changes) == (partitions + 1, partitions, 0):
        return ""
    return (
        f"{partitions:,} partitions were read by {window - 1:,} queries of a window, and by"
        f" {slices:,} of its slices, with {changes:,} changes where there are none"
    )


def make_capture(stream: SimulatedStream) -> ChangeStreamCapture:
    """The capture of a watcher, whose queries are answered from memory."""
    watched = WatchedStream(STREAM, {}, ValueCapture.NEW_ROW)
    queries: Any = SimulatedQueries(stream)
    return ChangeStreamCapture(queries, watched)


def measure_cpu(work: Callable[[], Result]) -> tuple[float, Result]:
    """Milliseconds of CPU time of this process, and the result."""
    began = time.process_time()
    result = work()
    return round((time.process_time() - began) * 1_000, 1), result


def measure_peak(work: Callable[[], object]) -> float:
    """The most memory that Python's objects take meanwhile, in MB."""
    tracemalloc.start()
    try:
        work()
        return round(tracemalloc.get_traced_memory()[1] / 1_000_000, 2)
    finally:
        tracemalloc.stop()


SCENARIO = Scenario(
    name="scale-partitions",
    summary="a change stream of 100 to 10,000 partitions with churn: planning, reading",
    settings=ScalePartitionsSettings,
    keys=("partitions",),
    run=run,
    short=("values=20,100,400",),
    own_server=True,
)
