"""Limits of waiting follow the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from fixtures import pace

BUSY = "print('begun', flush=True)\nwhile True: pass"


@pytest.fixture
def shared_core() -> Iterator[None]:
    """This thread has a core together with three processes that are never done."""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("threads cannot be bound to a core here")
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    command = [sys.executable, "-IS", "-c", BUSY]
    others = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    try:
        for other in others:
            assert other.stdout is not None
            other.stdout.readline()
        yield
    finally:
        os.sched_setaffinity(0, before)
        for other in others:
            other.kill()
            other.communicate()


@pytest.mark.usefixtures("shared_core")
def test_where_others_work_too_limits_are_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "MEASURED", [])
    assert pace.measure_slowness() > 1.5
    assert pace.allow(10) > 15
    assert pace.allow(0) == 0


def test_limits_are_never_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "measure_slowness", lambda: 1.0)
    monkeypatch.setattr(pace, "MEASURED", [])
    assert pace.allow(10) == 10


@pytest.mark.parametrize(("slowness", "limit"), [(1.0, 600), (1.5, 900), (100.0, 1_200)])
def test_a_test_ends_on_any_machine(
    monkeypatch: pytest.MonkeyPatch, slowness: float, limit: float
) -> None:
    monkeypatch.setattr(pace, "slowness", lambda: slowness)
    assert pace.limit_test(600) == limit
    assert pace.limit_test(2_000) >= 2_000
