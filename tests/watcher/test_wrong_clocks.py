"""Ages are by Spanner's time: the clock of the machine may be minutes off."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from fixtures.commands import run_command
from fixtures.consumers import options, write
from fixtures.shifted_clock import ShiftedClock
from fixtures.singers import address_of
from google.cloud.spanner_v1.database import Database

from watcher import Watcher
from watcher.consumers.clearing import Clearing, one_table
from watcher.consumers.positions import SpannerPositions
from watcher.tables.discovery import discover_table

OFF_SECONDS = 600


def deliver(database: Database) -> Watcher:
    """A watcher that has delivered everything."""
    write(database, 1)
    watcher = Watcher(**options(database, consumer="one", metrics={"port": 0}))
    watcher.on_change(lambda _: None)
    assert watcher.run_once() == 1
    return watcher


@pytest.fixture(params=[-OFF_SECONDS, OFF_SECONDS])
def set_clock(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Callable[[], None]:
    """Sets the clock of this process."""
    real, seconds = time.time, request.param
    return lambda: monkeypatch.setattr(time, "time", lambda: real() + seconds)


def test_the_lag_in_metrics_is_by_spanners_time(
    singers: Database, set_clock: Callable[[], None]
) -> None:
    watcher = deliver(singers)
    set_clock()
    sample = watcher.metrics.registry.get_sample_value
    lag = sample("spanner_watcher_lag_seconds", {"consumer": "one"})
    assert lag is not None
    assert 0 < lag < OFF_SECONDS / 2


def test_the_lag_in_status_is_by_spanners_time(
    singers: Database, shifted_clock: ShiftedClock
) -> None:
    SpannerPositions(singers).create()
    deliver(singers)
    with singers.batch() as batch:
        batch.update("SpannerWatcherConsumers", ("Consumer", "State"), [("one", "RUNNING")])
    shifted_clock.set(-OFF_SECONDS)
    command = ["status", "-d", str(address_of(singers)), "--json"]
    done = run_command(*command, **(os.environ | shifted_clock.environment))
    (row,) = json.loads(done.stdout)["consumers"]
    assert 0 < row["lag_seconds"] < OFF_SECONDS / 2


def list_messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Those of clearing: threads of other tests may log, too."""
    return [each.getMessage() for each in caplog.records if each.name == "watcher.clearing"]


def test_nobody_is_said_to_be_behind_because_a_clock_is_wrong(
    singers: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    deliver(singers)
    clearing = Clearing(singers, discover_table(singers, "Singers"), SpannerPositions(singers))
    # Not for the whole process: gRPC takes its deadlines from this clock.
    clock = SimpleNamespace(time=lambda: time.time() + OFF_SECONDS)
    monkeypatch.setattr(one_table, "time", clock)
    with caplog.at_level(logging.WARNING, "watcher.clearing"):
        clearing.clear(report_seconds=OFF_SECONDS / 2)
        assert not list_messages(caplog)
        clearing.clear(report_seconds=0.0)
    (said,) = list_messages(caplog)
    assert "waits for consumer 'one'" in said
