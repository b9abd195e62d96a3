"""How late the rows were: HDR histograms, from the commit and from the intended arrival.

From the intended arrival is free of coordinated omission: while a server stands still, the rows
that were due meanwhile count with all of their waiting, not only the few that were under way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hdrh.histogram import HdrHistogram

LOWEST_MICROS, HIGHEST_MICROS, DIGITS = 1, 3_600_000_000, 3
PERCENTILES = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)

Micros = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds. ``curve`` are (percentile, seconds), fine enough to draw."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    p999: float
    maximum: float
    curve: tuple[tuple[float, float], ...]


def latency(micros: Micros) -> Latency:
    """The figures of a sample; all zero for an empty one. Below a microsecond counts as one."""
    histogram = HdrHistogram(LOWEST_MICROS, HIGHEST_MICROS, DIGITS)
    # Counting equal values first: recording is a Python call each.
    values, counts = np.unique(round_micros(micros), return_counts=True)
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        if not histogram.record_value(value, count):
            raise ValueError(f"a latency of {value} microseconds is more than an hour")
    if not len(micros):
        return Latency(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, ())
    at = dict(histogram.get_percentile_to_value_dict(list(PERCENTILES)))
    seconds = {percentile: value / 1_000_000 for percentile, value in at.items()}
    return Latency(
        count=len(micros),
        mean=float(np.mean(micros)) / 1_000_000,
        p50=seconds[50.0],
        p90=seconds[90.0],
        p99=seconds[99.0],
        p999=seconds[99.9],
        maximum=float(np.max(micros)) / 1_000_000,
        curve=curve(histogram),
    )


def round_micros(micros: Micros) -> Micros:
    """Positive, and to four digits: HDR keeps three, and fewer distinct values are faster."""
    positive = np.maximum(micros, LOWEST_MICROS)
    unit = 10 ** np.maximum(np.floor(np.log10(positive)).astype(np.int64) - 3, 0)
    return np.asarray(positive // unit * unit, np.int64)


def curve(histogram: HdrHistogram) -> tuple[tuple[float, float], ...]:
    """Percentiles ever closer to 100, ten to each factor of ten, up to what the sample can tell."""
    percentiles = [100 * (1 - 10 ** (-step / 10)) for step in range(61)]
    kept = [p for p in percentiles if (100 - p) / 100 * histogram.get_total_count() >= 1]
    values = histogram.get_percentile_to_value_dict(kept)
    return tuple((p, values[p] / 1_000_000) for p in kept)
