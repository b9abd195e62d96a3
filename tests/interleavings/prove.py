"""Proves the explorer: each fault that is put back is found, after so many schedules."""

from __future__ import annotations

import time

from interleavings.explore import Explorer, Outcome
from interleavings.guards import GUARDS, Guard
from interleavings.mutations import MUTATIONS, Mutation
from interleavings.scenarios import VARIANTS
from spanner_schema.model.schema import Dialect

SCHEDULES_MAX = 2_000
"""So many are tried at most to find a fault."""


def find(
    mutation: Mutation | Guard,
    schedules: int,
    seed: int | None = None,
    dialect: Dialect = Dialect.GOOGLESQL,
) -> tuple[int, Outcome | None]:
    """How many schedules it took to find a fault; None when it was not found. Without a ``seed``
    they are those of the mutation's own."""
    seed = mutation.seed if seed is None else seed
    with Explorer(VARIANTS[mutation.variant], dialect) as explorer, mutation.remove():
        for number, outcome in enumerate(explorer.random(seed, schedules), start=1):
            if outcome.problems:
                return number, outcome
    return schedules, None


def prove(schedules: int, seed: int | None) -> int:
    """Prints the table; 1 when a fault was not found."""
    missed = 0
    print(f"{'fault':<64}{'part':<6}{'scenario':<20}{'schedules':>10}{'seconds':>9}")
    for mutation in (*MUTATIONS, *GUARDS):
        part = mutation.part if isinstance(mutation, Mutation) else "guard"
        began = time.perf_counter()
        number, outcome = find(mutation, schedules, seed)
        seconds = time.perf_counter() - began
        count = str(number) if outcome is not None else "not found"
        print(
            f"{mutation.name:<64}{part:<6}{mutation.variant:<20}{count:>10}{seconds:>9.0f}",
            flush=True,
        )
        if outcome is None:
            missed += 1
        else:
            print(f"    {outcome.problems[0]}\n    {outcome.text}")
    return int(missed > 0)
