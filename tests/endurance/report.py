"""What a run has measured -> a report with every problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any

from endurance.deliveries import Delivery, Rows
from endurance.gauges import (
    Event,
    Sample,
    count_late_seconds,
    find_recoveries,
    grows,
    thirds,
)
from endurance.judge import FOREVER, count_repeats, find_problems, newest_rows

GROWTH = 0.15
"""By so much the median of the last third may be above that of the first."""
MB_LEAST, DESCRIPTORS_LEAST, ROWS_LEAST = 30.0, 5.0, 20_000.0
"""A growth below these is noise."""


@dataclass(frozen=True)
class Followed:
    """What is known of a consumer: its windows, how far it was behind (time, seconds), the kills of
    it and of the server, and how often it says that it tried a window again."""

    name: str
    deliveries: Sequence[Delivery]
    staleness: Sequence[tuple[float, float]]
    kills: Sequence[Event]
    retries: int

    @cached_property
    def recoveries(self) -> Sequence[tuple[Event, float | None]]:
        """Each kill, and after how many seconds the consumer was late no more."""
        return find_recoveries(self.staleness, self.kills)

    @cached_property
    def repeats(self) -> int:
        """How many windows came again."""
        return count_repeats(self.deliveries)


def find_wrong_table(truth: Rows, table: set[tuple[int, int]]) -> Iterator[str]:
    """Whether the table is what the truth says: the judge of the judges."""
    expected = {(key, version) for _, key, version in newest_rows(truth, 0, FOREVER).tolist()}
    if table != expected:
        yield f"the table differs from what was written in {len(table ^ expected)} rows"


def find_wrong_deliveries(truth: Rows, consumer: Followed) -> Iterator[str]:
    """Rows that were lost, doubled, or never written; windows that came again without a reason."""
    for problem in find_problems(truth, consumer.deliveries):
        yield f"{consumer.name}: {problem}"
    repeats, kills = consumer.repeats, len(consumer.kills)
    if repeats > kills + consumer.retries:
        yield (
            f"{consumer.name}: {repeats} windows again after {kills} kills and"
            f" {consumer.retries} retries"
        )


def find_slow_recoveries(consumer: Followed, seconds_max: float) -> Iterator[str]:
    """Kills after which a consumer was behind for too long."""
    for kill, seconds in consumer.recoveries:
        if seconds is None or seconds > seconds_max:
            after = "not before the next kill" if seconds is None else f"after {seconds:.1f} s"
            yield f"{consumer.name}: {kill.what} killed, less than 2 s behind again {after}"


def summarise(consumer: Followed, grace_seconds: float) -> dict[str, Any]:
    """The figures of a consumer."""
    seconds = sorted(each for _, each in consumer.recoveries if each is not None)
    late = count_late_seconds(consumer.staleness, consumer.kills, grace_seconds)
    stale = sorted(seconds for _, seconds in consumer.staleness)
    return {
        "rows": sum(len(each.rows) for each in consumer.deliveries),
        "windows": len(consumer.deliveries),
        "windows_again": consumer.repeats,
        "kills": len(consumer.kills),
        "retries": consumer.retries,
        "recovery_seconds_median": round(median(seconds), 2) if seconds else None,
        "recovery_seconds_max": round(seconds[-1], 2) if seconds else None,
        "late_seconds": round(late, 1),
        "staleness_median": round(median(stale), 2) if stale else None,
        "staleness_p99": round(stale[len(stale) * 99 // 100], 2) if stale else None,
    }


def list_gauges(samples: Sequence[Sample]) -> Iterator[tuple[str, Sequence[float], float]]:
    """Name and values of each gauge, and the growth that is noise."""
    index = [float(each.index_rows) for each in samples if each.index_rows is not None]
    yield "index rows", index, ROWS_LEAST
    for name in sorted({name for each in samples for name in each.processes}):
        looks = [each.processes[name] for each in samples if name in each.processes]
        yield f"{name} MB", [memory for memory, _ in looks], MB_LEAST
        yield f"{name} file descriptors", [float(count) for _, count in looks], DESCRIPTORS_LEAST


def find_growth(samples: Sequence[Sample]) -> Iterator[str]:
    """Gauges that grow."""
    for name, values, least in list_gauges(samples):
        if grows(values, GROWTH, least):
            yield f"{name} grows: {thirds(values)}"


def summarise_gauges(samples: Sequence[Sample]) -> Mapping[str, Sequence[float]]:
    """The medians of the thirds of each gauge, and the most."""
    return {
        name: [*(round(value, 1) for value in thirds(values)), round(max(values, default=0), 1)]
        for name, values, _ in list_gauges(samples)
    }
