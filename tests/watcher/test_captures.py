"""The contract of captures: one process plans, any other reads, as often as it likes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, capture_of, fetch_now, make_watchable
from google.cloud.spanner_v1.database import Database

from watcher.captures import Capture
from watcher.captures.change_stream import ChangeStreamCapture, find_stream
from watcher.captures.key_ranges import KeyRangeCapture
from watcher.captures.snapshot import SnapshotCapture
from watcher.captures.strong_reads import TWICE, read_or_strongly, stream_or_strongly
from watcher.model.errors import VersionExpiredError
from watcher.model.window import Window
from watcher.spanner.keys import KeyRange
from watcher.spanner.queries import QueryClient
from watcher.tables.discovery import read_schema

pytestmark = pytest.mark.both_dialects

ROWS = 20


@pytest.fixture
def singers(create_database: CreateDatabase) -> Database:
    database = create_database(SINGERS, "CREATE CHANGE STREAM Changes FOR ALL")
    make_watchable(database)
    return database


def write(database: Database) -> Window:
    """The window that has the rows."""
    start = fetch_now(database)
    with database.batch() as batch:
        rows = [(key, "name") for key in range(ROWS)]
        batch.insert("Singers", ("SingerId", "LastName"), rows)
    return Window(start, fetch_now(database))


def stream_capture_of(database: Database) -> ChangeStreamCapture:
    stream = find_stream(read_schema(database), "Changes", (), database.name)
    return ChangeStreamCapture(QueryClient(address_of(database)), stream)


CAPTURES: dict[str, Callable[[Database], Capture[Any]]] = {
    "poll": capture_of,
    "key range": lambda database: KeyRangeCapture(capture_of(database)),
    "snapshot": lambda database: SnapshotCapture(capture_of(database)),
    "change stream": stream_capture_of,
}


@pytest.mark.parametrize("name", CAPTURES)
def test_slices_hold_every_row_once_whoever_reads_them(singers: Database, name: str) -> None:
    capture, window = CAPTURES[name](singers), write(singers)
    slices = capture.plan(window)
    assert {part.window for part in slices} == {window}
    for _ in range(2):
        reader, parts = pickle.loads(pickle.dumps((capture, slices)))
        batches = [rows for part in parts for rows in reader.read(part)]
        assert sum(rows.counts["Singers"] for rows in batches) == ROWS
        assert {rows.window for rows in batches} == {window}


def test_pages_of_a_bounded_range_are_cut_within_its_bounds(singers: Database) -> None:
    keys = KeyRange(("3",), ("12",), start_inside=True, end_inside=False)
    capture = KeyRangeCapture(capture_of(singers), keys)
    end = write(singers).end
    sizes, after, done = [], None, False
    while not done:
        page = capture.plan_page(end, after, None, limit=4, rows_per_slice=3)
        sizes += [sum(rows.batch.num_rows for rows in capture.read(part)) for part in page.slices]
        after, done = page.last, page.last is None
    assert sizes == [3, 1, 3, 1, 1]


def test_a_stream_is_read_strongly_only_while_nothing_was_handed_out() -> None:
    def read(at: int | None) -> Iterator[str]:
        if at is None:
            yield "now"
            return
        if at == 1:
            yield "then"
        raise VersionExpiredError("too old")

    assert list(stream_or_strongly(read, 0, TWICE)) == ["now"]
    results = stream_or_strongly(read, 1, TWICE)
    assert next(results) == "then"
    with pytest.raises(VersionExpiredError):
        next(results)
    assert read_or_strongly(lambda at: list(read(at)), 1, TWICE) == ["now"]
