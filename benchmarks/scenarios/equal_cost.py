"""The interval at which a watcher takes as much client CPU as another one at its own."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.result import RunResult

INTERVAL_MIN = 0.02
"""Seconds. Polls that follow one another faster take longer than their interval."""


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
