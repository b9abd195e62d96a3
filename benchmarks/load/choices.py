"""Which rows a writer writes, seeded: no two writers of a run ever choose the same key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.load.workload import Workload

Keys = npt.NDArray[np.int64]
ZIPF_EXPONENT = 1.1
FIRST_INSERTED = 1 << 40
"""Keys of inserted rows start here; those that are there before start at 0."""
SPREAD = 0x9E3779B97F4A7C15
"""Odd, so that multiplying by it modulo a power of two is a permutation."""


@dataclass(frozen=True, slots=True)
class PlannedTransaction:
    """The rows of one commit; ``versions`` are unique in a run."""

    table: int
    keys: Keys
    versions: Keys
    insert: bool


class Choices:
    """The transactions of one writer."""

    def __init__(self, workload: Workload, writer: int) -> None:
        self._workload = workload
        self._writer = writer
        self._random = np.random.default_rng([workload.seed, writer])
        self._inserted = 0
        self._updated = 0
        self._count = 0
        self._own = len(range(writer, workload.rows, workload.writers))

    def next(self) -> PlannedTransaction:
        """The next one."""
        number, self._count = self._count, self._count + 1
        load = self._workload
        table = (number * load.writers + self._writer) % (load.changing or load.tables)
        insert = not load.burst and self._inserts()
        keys = self._burst(number) if load.burst else self._insert() if insert else self._update()
        first = (number * load.writers + self._writer) * max(load.mutations, load.burst)
        return PlannedTransaction(table, keys, first + np.arange(len(keys)), insert)

    def _inserts(self) -> bool:
        return bool(self._random.random() < self._workload.inserts) or self._own == 0

    def _burst(self, number: int) -> Keys:
        """The rows of a burst, or some of those of the latest."""
        load = self._workload
        latest, after = divmod(number, load.burst_every)
        numbers = latest * load.burst + np.arange(load.burst)
        if after:
            numbers = np.unique(self._random.choice(numbers, min(load.mutations, load.burst)))
        return numbers % self._own * load.writers + self._writer

    def _insert(self) -> Keys:
        inserted = self._inserted + np.arange(self._workload.mutations)
        self._inserted += self._workload.mutations
        numbers = inserted * self._workload.writers + self._writer + FIRST_INSERTED
        if self._workload.keys == "sequential":
            return numbers
        return spread(numbers)

    def _update(self) -> Keys:
        load, count = self._workload, min(self._workload.mutations, self._own)
        if load.keys == "sequential":
            numbers = (self._updated + np.arange(count)) % self._own
            self._updated += count
        elif load.keys == "zipf":
            numbers = (self._random.zipf(ZIPF_EXPONENT, count) - 1) % self._own
        else:
            numbers = self._random.integers(0, self._own, count)
        return np.unique(numbers) * load.writers + self._writer


def spread(numbers: Keys) -> Keys:
    """Distinct numbers as distinct positive keys all over INT64, away from the loaded ones."""
    mixed = (numbers.astype(np.uint64) * np.uint64(SPREAD)) & np.uint64((1 << 62) - 1)
    return (mixed | np.uint64(1 << 62)).astype(np.int64)
