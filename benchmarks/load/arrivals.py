"""When each transaction is due: an open loop, in which nobody waits for a slow system."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from benchmarks.load.workload import Workload

Offsets = npt.NDArray[np.float64]


def arrivals(workload: Workload) -> Offsets:
    """Seconds from the beginning at which each transaction of a workload is due, ascending."""
    first, last = workload.transactions, workload.until or workload.transactions
    if workload.profile == "ramp":
        return ramp(first, last, workload.seconds)
    if workload.profile == "steps":
        rates = step_rates(workload)
        length = workload.seconds / len(rates)
        return np.concatenate([n * length + steady(r, length) for n, r in enumerate(rates)])
    return steady(first, workload.seconds)


def steady(rate: float, seconds: float) -> Offsets:
    """Even arrivals."""
    return np.arange(math.floor(rate * seconds + 1e-9)) / rate


def ramp(first: float, last: float, seconds: float) -> Offsets:
    """Arrivals whose rate grows evenly: the n-th is due when n transactions have become due.

    Due by t: first * t + slope * t^2 / 2. Solved for t, in a form that also holds for slope 0.
    """
    slope = (last - first) / seconds
    numbers = np.arange(math.floor((first + last) / 2 * seconds + 1e-9))
    root = np.sqrt(np.maximum(first * first + 2 * slope * numbers, 0.0))
    return np.asarray(2 * numbers / (first + root), np.float64)


def step_rates(workload: Workload) -> tuple[float, ...]:
    """Transactions a second of each step."""
    last = workload.until or workload.transactions
    return tuple(float(r) for r in np.linspace(workload.transactions, last, workload.steps))
