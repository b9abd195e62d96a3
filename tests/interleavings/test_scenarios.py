"""Some schedules of every scenario; ``make explore`` runs as many as one likes."""

from __future__ import annotations

import pytest

from interleavings.explore import Explorer
from interleavings.run import failure_text
from interleavings.scenarios import ALL

SCHEDULES = 40
SEED = 1
BROKEN: dict[str, str] = {}
"""Scenarios that are known to fail, and why."""


@pytest.mark.parametrize("name", ALL)
def test_schedules(name: str, request: pytest.FixtureRequest) -> None:
    if name in BROKEN:
        request.applymarker(pytest.mark.xfail(reason=BROKEN[name], strict=True))
    with Explorer(ALL[name]) as explorer:
        found = explorer.summary(explorer.random(SEED, SCHEDULES), until_failure=True)
    assert not found.failures, failure_text(name, found.failures[0])


@pytest.mark.parametrize("name", ["standby", "takeover"])
def test_schedules_without_and_with_one_preemption(name: str) -> None:
    with Explorer(ALL[name]) as explorer:
        found = explorer.summary(explorer.exhaustive(1, SCHEDULES), until_failure=True)
    assert not found.failures, failure_text(name, found.failures[0])
