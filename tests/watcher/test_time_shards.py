"""Shards that applications write as the day, hour or minute: every row of a window is delivered,
whatever interval it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from fixtures.singers import address_of, take_over
from google.cloud.spanner_v1 import COMMIT_TIMESTAMP
from google.cloud.spanner_v1.database import Database

from watcher import Watcher
from watcher.captures.balance import plan_balanced
from watcher.captures.poll import PollCapture
from watcher.captures.poll_tables import PolledTables
from watcher.model.window import Window
from watcher.planning.limits import WindowLimit
from watcher.spanner.queries import QueryClient
from watcher.spanner.timestamps import to_datetime, to_micros
from watcher.tables.discovery import discover_table
from watcher.tables.values import TableSpec

EVENTS = (
    "CREATE TABLE Events (Id INT64, `At` TIMESTAMP OPTIONS (allow_commit_timestamp=true),"
    " `Interval` STRING(20), Text STRING(MAX)) PRIMARY KEY (Id)"
)
BY_TIME = "CREATE NULL_FILTERED INDEX EventsByTime ON Events(`Interval`, `At`)"
FORMATS = {"day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H", "minute": "%Y-%m-%dT%H:%M"}
DAY = 86_400_000_000
LATE = 90_000_000
"""A commit so many microseconds after its interval was written is two minutes late, or one."""

with_events = pytest.mark.ddl(EVENTS, BY_TIME)


def spec_of(interval: str) -> dict[str, Any]:
    return {"shard": "time", "shard_column": "Interval", "shard_interval": interval}


def write(database: Database, rows: Mapping[int, str | None]) -> int:
    """Rows with these intervals in one commit; its timestamp."""
    with database.batch() as batch:
        values = [(key, interval, COMMIT_TIMESTAMP) for key, interval in rows.items()]
        batch.insert_or_update("Events", ("Id", "Interval", "At"), values)
    assert batch.committed is not None
    return to_micros(batch.committed)


def update(database: Database, key: int) -> None:
    """Changes a row and leaves its interval as it is."""
    with database.batch() as batch:
        batch.update("Events", ("Id", "Text", "At"), [(key, "changed", COMMIT_TIMESTAMP)])


def deliver_keys(database: Database, interval: str, **more: Any) -> list[object]:
    """The keys that a watcher delivers in one run, in order."""
    seen: list[object] = []
    watcher = Watcher(
        database=str(address_of(database)),
        tables=["Events"],
        consumer="events",
        table={"Events": spec_of(interval)},
        **more,
    )
    watcher.on_change(lambda change: seen.append(change.key["Id"]))
    watcher.run_once()
    return sorted(seen, key=str)


def capture_of(database: Database, interval: str) -> PollCapture:
    table = discover_table(database, "Events", TableSpec(**spec_of(interval)))
    return PollCapture(QueryClient(address_of(database)), table, ())


def moment_text(interval: str, micros: int) -> str:
    return to_datetime(micros).strftime(FORMATS[interval])


@with_events
@pytest.mark.parametrize("interval", FORMATS)
def test_every_row_of_a_window_comes_whatever_its_interval(
    database: Database, interval: str
) -> None:
    assert deliver_keys(database, interval, start="latest") == []
    now = capture_of(database, interval).look(0)[0].end
    times = {1: now, 2: now - 365 * DAY, 3: now - LATE, 4: now + LATE, 5: now + 2 * DAY}
    write(database, {key: moment_text(interval, at) for key, at in times.items()} | {6: "other"})
    assert deliver_keys(database, interval) == [1, 2, 3, 4, 5, 6]
    update(database, 2)
    update(database, 5)
    assert deliver_keys(database, interval) == [2, 5]
    assert deliver_keys(database, interval) == []


@with_events
def test_a_row_outside_of_the_index_is_not_delivered(database: Database) -> None:
    assert deliver_keys(database, "hour", start="latest") == []
    write(database, {1: None, 2: "1999-01-01T00"})
    assert deliver_keys(database, "hour") == [2]


@with_events
def test_a_row_that_keeps_its_interval_is_delivered_before_it_is_cleared(
    database: Database,
) -> None:
    cleared = {"clearing": {"every": "1h"}}
    take_over(database, "Events", "At", shard="time", shard_column="Interval")
    write(database, {1: "2001-01-01T00"})
    assert deliver_keys(database, "hour", start="earliest", **cleared) == [1]
    update(database, 1)
    assert deliver_keys(database, "hour", **cleared) == [1]


@with_events
def test_looking_counting_cutting_and_reading_agree(database: Database) -> None:
    capture = capture_of(database, "minute")
    commits = [write(database, {n: text}) for n, text in enumerate(("1999", "x", "2999-01-01"))]
    window, changed = capture.look(0)
    assert changed
    assert capture.count(window) == 3
    assert [capture.find_cut(window, n) for n in (1, 2, 3)] == commits
    tables = PolledTables([capture])
    assert tables.look({"Events": commits[-2]}).changed == {"Events"}
    assert tables.cut({"Events": window}, WindowLimit(rows=2)) == commits[1]
    slices = plan_balanced([capture], {"Events": window}, slices_max=3, rows_per_slice=1)
    read = [key for part in slices for batch in capture.read(part) for key in ids(batch)]
    assert sorted(read) == [0, 1, 2]
    late = Window(commits[-2], window.end)
    assert [key for part in capture.plan(late) for b in capture.read(part) for key in ids(b)] == [2]


def ids(rows) -> list[int]:  # type: ignore[no-untyped-def]
    keys: list[int] = rows.batch.column("Id").to_pylist()
    return keys
