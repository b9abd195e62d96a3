"""How many calls, and round trips one after another, each step of a consumer takes: the table of
docs/networks.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fixtures.consumers import ALBUMS, write, write_both
from fixtures.listings import DOCS
from fixtures.replicas import make_replicator, replicate
from fixtures.sent_requests import RoundTrips
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, make_watchable
from google.cloud.spanner_v1.database import Database

from watcher import Watcher
from watcher.consumers.clearing import Clearing
from watcher.consumers.clearing.methods import Method
from watcher.consumers.positions import SpannerPositions
from watcher.runners.watcher_run.run import WatcherRun
from watcher.runners.watcher_run.startup import open_run
from watcher.spanner.database import connect
from watcher.tables.discovery import discover_table

STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'NEW_ROW')"
ROW = re.compile(r"\| (?P<what>[^|]+) \| (?P<calls>\d+) \| (?P<trips>\d+) \|")
Table = dict[str, tuple[int, int]]
DOCUMENTED: Table = {
    match["what"]: (int(match["calls"]), int(match["trips"]))
    for match in ROW.finditer((DOCS / "networks.md").read_text())
}


@pytest.fixture
def database(create_database: CreateDatabase, round_trips: RoundTrips) -> Database:
    """Two watchable tables, which a change stream of three partitions watches, too."""
    database = create_database(SINGERS, ALBUMS, STREAM)
    make_watchable(database, "Singers", "Albums", shards=4)
    return database


class Measured:
    """What each step took."""

    def __init__(self, trips: RoundTrips) -> None:
        self.table: Table = {}
        self._trips = trips

    def step(self, what: str, work: Callable[[], object]) -> None:
        """Does something and counts it."""
        self._trips.reset()
        work()
        self.table[what] = self._trips.calls, self._trips.deepest


@contextmanager
def run(watcher: Watcher) -> Iterator[WatcherRun]:
    """A run that has delivered what there was."""
    with open_run(watcher._make_settings(), once=False) as opened:
        opened._deliver(None)
        opened._deliver(None)
        yield opened


def make_due(opened: WatcherRun) -> None:
    """It is time to look at the schema, and to save the positions of idle tables."""
    opened._windows._followed_at = opened._windows._saved_at = -1e9


def measure_capture(database: Database, measured: Measured, name: str, **more: Any) -> None:
    """A consumer's steps with one capture."""
    watcher = Watcher(
        database=str(address_of(database)), tables=["*"], consumer=name.replace(" ", "-"), **more
    )
    watcher.on_change(lambda _: None)
    with run(watcher) as opened:

        def deliver() -> None:
            opened._deliver(None)

        write_both(database, 1)
        deliver()
        measured.step(f"{name}: a look that finds nothing", deliver)
        make_due(opened)
        measured.step(f"{name}: the same, each `refresh`", deliver)
        write(database, 2)
        measured.step(f"{name}: a window of one table", deliver)
        write_both(database, 3)
        measured.step(f"{name}: a window of two tables", deliver)
        if name == "poll":
            measured.step("a lease is renewed", opened._lease.keep)


def measure_clearing(database: Database, measured: Measured) -> None:
    client = connect(address_of(database))
    positions, table = SpannerPositions(client), discover_table(client, "Singers")

    def clear(method: Method) -> None:
        Clearing(client, table, positions, 0.0, method).clear()

    clear(Method.INDEX)
    measured.step("a clearing that finds nothing", lambda: clear(Method.INDEX))
    for what, method in (
        ("a clearing by key, of two shards", Method.INDEX),
        ("a clearing by partitioned DML", Method.PARTITIONED),
    ):
        write(database, 4)
        watcher = Watcher(database=str(address_of(database)), tables=["*"], consumer="poll")
        watcher.on_change(lambda _: None)
        watcher.run_once()
        measured.step(what, lambda method=method: clear(method))  # type: ignore[misc]


def measure_replica(database: Database, measured: Measured, folder: Path) -> None:
    replicate(database, folder)
    with run(make_replicator(database, folder)._watcher) as opened:
        write_both(database, 5)
        measured.step("replica: a window is merged", lambda: opened._deliver(None))


def test_calls_and_round_trips_are_as_documented(
    database: Database, round_trips: RoundTrips, tmp_path: Path
) -> None:
    measured = Measured(round_trips)
    measure_capture(database, measured, "poll", start="earliest")
    stream = {"capture": "change-stream"}
    measure_capture(database, measured, "change stream", **stream)
    measure_clearing(database, measured)
    measure_replica(database, measured, tmp_path)
    assert measured.table == DOCUMENTED
