"""The formula of calls, beside calls that were counted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from fixtures.consumers import ALBUMS
from fixtures.listings import DOCS
from fixtures.pace import allow
from fixtures.sent_requests import SentRequests
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, make_watchable
from fixtures.watcher_threads import run_in_thread
from google.cloud.spanner_v1.database import Database
from typer.testing import CliRunner

from benchmarks.call_costs import HOUR, CallCosts, CaptureKind, Consumption, count_calls
from benchmarks.cli import app
from watcher import Watcher

STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'NEW_ROW')"
PARTITIONS = 3
"""Those of a new change stream of the embedded server."""
CAPTURES: tuple[CaptureKind, ...] = ("poll", "change-stream", "push")
INTERVAL, REFRESH, LEASE = 0.2, 1.0, 4.0


@pytest.fixture
def database(create_database: CreateDatabase) -> Database:
    database = create_database(SINGERS, ALBUMS, STREAM)
    make_watchable(database, "Singers", "Albums", shards=4)
    return database


def is_look(method: str, request: Any) -> bool:
    """Whether a call begins a look: the query for what changed, or the read timestamp."""
    text = str(getattr(request, "sql", ""))
    return method == "ExecuteSql" and (text.startswith("SELECT 0 FROM") or text == "SELECT 1")


def is_saved(method: str, request: Any) -> bool:
    """Whether a call reads the positions that are saved."""
    return "LEFT JOIN `SpannerWatcherPositions`" in str(getattr(request, "sql", ""))


def count_until(
    sent: SentRequests, marks: Callable[[str, Any], bool], first: int, more: int
) -> int:
    """The calls from the first mark, one of ``first``, up to the one that is ``more`` behind it."""
    ends_at = time.monotonic() + allow(60)
    while True:
        calls = list(sent)
        places = [number for number, each in enumerate(calls) if marks(*each)]
        if len(places) > first + more:
            return places[first + more] - places[first]
        assert time.monotonic() < ends_at, len(places)
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("capture", "marks", "first", "more"),
    [
        ("poll", is_look, 5, 20),
        ("change-stream", is_look, 6, 5),
        ("push", is_saved, 1, 3),
    ],
)
def test_an_idle_consumer_makes_the_calls_of_the_formula(
    database: Database,
    sent_requests: SentRequests,
    capture: CaptureKind,
    marks: Callable[[str, Any], bool],
    first: int,
    more: int,
) -> None:
    streams: dict[str, Any] = {
        "poll": {},
        "change-stream": {"capture": "change-stream"},
        "push": {"capture": "change-stream", "stream": {"push": True}},
    }
    watcher = Watcher(
        database=str(address_of(database)),
        tables=["*"],
        consumer="me",
        interval=INTERVAL,
        refresh=REFRESH,
        lease=LEASE,
        **streams[capture],
    )
    watcher.on_change(lambda _: None)
    with run_in_thread(watcher):
        calls = count_until(sent_requests, marks, first, more)
    of = Consumption(
        capture=capture,
        tables=2,
        partitions=PARTITIONS,
        interval=INTERVAL,
        refresh=REFRESH,
        lease=LEASE,
    )
    step = of.idle_saves if capture == "push" else of.pause
    expected = count_calls(of).calls * more * step / HOUR
    assert calls == pytest.approx(expected, rel=0.3, abs=6)


def test_a_window_costs_what_round_trips_count() -> None:
    """The formula beside the table of docs/networks.md, which is counted."""
    polls, streams = (
        count_calls(Consumption(capture, tables=2, partitions=PARTITIONS, changing=2))
        for capture in (CAPTURES[0], CAPTURES[1])
    )
    page = (DOCS / "networks.md").read_text()
    for name, per_window in (
        ("poll", (polls.calls - polls.leases) / HOUR),
        ("change stream", (streams.looks + streams.positions) / HOUR),
    ):
        assert f"| {name}: a window of two tables | {per_window:.0f} |" in page


def test_the_page_of_costs_has_the_formula() -> None:
    page = (DOCS / "cost.md").read_text()
    quiet: dict[str, Any] = {"tables": 2, "partitions": PARTITIONS}
    slower = quiet | {"idle_interval": 30.0}
    slowest = slower | {"refresh": 60.0, "lease": 120.0}
    for label, given in (
        ("as it comes", quiet),
        ('`idle_interval = "30s"`', slower),
        ('the same, `refresh = "60s"`, `lease = "120s"`', slowest),
    ):
        kinds = [
            Consumption(CAPTURES[0], **given),
            Consumption(CAPTURES[1], **given),
            Consumption(CAPTURES[1], listens=False, **given),
            Consumption(CAPTURES[2], **given),
        ]
        cells = " | ".join(f"{count_calls(each).calls / 60:.0f}" for each in kinds)
        assert f"| {label} | {cells} |" in page


def test_more_is_never_less() -> None:
    """What is asked more often, or of more, costs more."""
    base = Consumption(tables=60, changing=3, partitions=2)
    for capture in CAPTURES[:2]:
        of = Consumption(capture=capture, tables=60)
        busy = Consumption(capture=capture, tables=60, changing=3)
        assert count_calls(of).calls < count_calls(busy).calls
    assert count_calls(base).looks == 2 * HOUR  # two queries of fifty tables
    slow = Consumption(tables=60, idle_interval=30.0, refresh=60.0, lease=120.0)
    assert count_calls(slow).calls < count_calls(Consumption(tables=60)).calls / 5
    deaf = Consumption(capture="change-stream", partitions=3, listens=False)
    heard = Consumption(capture="change-stream", partitions=3)
    assert count_calls(heard).calls < count_calls(deaf).calls / 3


def test_the_command_shows_them() -> None:
    options = ["model", "--tables", "2", "--capture", "change-stream", "--partitions", "3"]
    shown = CliRunner().invoke(app, [*options, "--json"])
    calls = json.loads(shown.stdout)["calls_an_hour"]
    idle = count_calls(Consumption("change-stream", tables=2, partitions=3))
    assert calls["idle"]["all"] == round(idle.calls)
    assert set(calls["busy"]) == {*CallCosts.__dataclass_fields__, "all"}
