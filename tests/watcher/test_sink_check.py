"""The check of sinks that others write: it passes one that keeps the promises, and finds each that
does not."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from fixtures.singers import address_of, write_singers
from google.cloud.spanner_v1.database import Database
from test_listings import execute, list_python

from watcher import Change, Watcher
from watcher.sinks.contract import ChangeSink
from watcher.sinks.sink_check import check_sink


class Log:
    """Keeps the promises, in a list that stands for a file."""

    def __init__(self, kept: list[str]) -> None:
        self.kept = kept
        self.taken: list[str] = []

    def write_change(self, change: Change) -> None:
        self.taken.append(change.id)

    def resolved(self, micros: int) -> None: ...

    def flush(self) -> None:
        self.kept += self.taken
        self.taken = []

    def discard(self) -> None:
        self.taken = []


class Forgetful(Log):
    """Says that it is flushed, and is not."""

    def flush(self) -> None: ...


class Reversed(Log):
    """Delivers a window from its end."""

    def flush(self) -> None:
        self.taken.reverse()
        super().flush()


class Deaf(Log):
    """Believes that what it has seen was delivered, also where it was discarded."""

    def __init__(self, kept: list[str]) -> None:
        super().__init__(kept)
        self.seen: set[str] = set()

    def write_change(self, change: Change) -> None:
        if change.id not in self.seen:
            self.seen.add(change.id)
            super().write_change(change)


class Stale(Log):
    """Delivers what was discarded behind what comes again."""

    def __init__(self, kept: list[str]) -> None:
        super().__init__(kept)
        self.late: list[str] = []

    def flush(self) -> None:
        super().flush()
        self.kept += self.late
        self.late = []

    def discard(self) -> None:
        self.late += self.taken
        self.taken = []


def test_a_sink_that_keeps_the_promises_passes() -> None:
    kept: list[str] = []
    check_sink(lambda: Log(kept), lambda: kept)


@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        (Forgetful, "after flush"),
        (Reversed, "after flush"),
        (Deaf, "discarded comes again"),
        (Stale, "discarded comes again"),
    ],
)
def test_each_broken_promise_is_found(broken: type[Log], promise: str) -> None:
    kept: list[str] = []
    with pytest.raises(AssertionError, match=promise):
        check_sink(lambda: broken(kept), lambda: kept)


def load_listed_sink() -> Any:
    (program,) = list_python("sinks.md", "class SqliteSink")
    return execute(program)["SqliteSink"]


def test_the_listed_sink_keeps_the_promises_and_takes_changes_of_a_watcher(
    singers: Database, tmp_path: Path
) -> None:
    kind = load_listed_sink()
    path = tmp_path / "rows.db"

    def read_ids() -> list[str]:
        with sqlite3.connect(path) as rows:
            return [each[0] for each in rows.execute("SELECT id FROM changes ORDER BY place")]

    def open_sink() -> ChangeSink:
        sink: ChangeSink = kind(path)
        return sink

    check_sink(open_sink, read_ids)
    write_singers(singers, range(3), "name")
    watcher = Watcher(database=str(address_of(singers)), tables=["Singers"], start="earliest")
    watcher.deliver_to(open_sink())
    assert watcher.run_once() == 3
    assert len(read_ids()) == 5 + 3
