"""Some schedules of every scenario; ``make explore`` runs as many as one likes."""

from __future__ import annotations

import pytest

from interleavings.explore import Explorer
from interleavings.run import failure_text
from interleavings.scenarios import ALL

pytestmark = pytest.mark.timeout(300)
MANY, SOME = 300, 25
OFTEN = frozenset(
    {
        "backfill",
        "latest",
        "takeover",
        "takeover-backfill",
        "frozen",
        "frozen-backfill",
        "standby",
        "spark-stopped",
        "time-shards",
    }
)
"""Where it is the order alone that matters, and a schedule is cheap: ``MANY`` schedules of each.
Schedules of Spark, of change streams and of schema changes cost several times as much."""
SEED = 1


@pytest.mark.parametrize("name", ALL)
def test_schedules(name: str) -> None:
    with Explorer(ALL[name]) as explorer:
        schedules = explorer.random(SEED, MANY if name in OFTEN else SOME)
        found = explorer.summary(schedules, until_failure=True)
    assert not found.failures, failure_text(name, found.failures[0])


@pytest.mark.parametrize("name", ["standby", "takeover"])
def test_schedules_without_and_with_one_preemption(name: str) -> None:
    with Explorer(ALL[name]) as explorer:
        found = explorer.summary(explorer.exhaustive(1, SOME), until_failure=True)
    assert not found.failures, failure_text(name, found.failures[0])
