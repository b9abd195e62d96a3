"""A window that was handed over and not saved comes again, and never as a shorter one: it would
bring older versions behind newer ones."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fixtures.changing_schemas import watchable_ddl
from fixtures.server import CreateDatabase
from fixtures.singers import address_of
from google.cloud.spanner_v1.database import Database

from watcher import Change, Watcher
from watcher.consumers.positions import SpannerPositions
from watcher.model.errors import DeliveryError

TABLES = ("T0", "T1")
OTHER = "CREATE TABLE Other (Id INT64, Version INT64) PRIMARY KEY (Id)"
GAP = 6
"""The two versions are so much further apart than a run takes."""


class Reader:
    """A consumer. Each run is an instance of its own."""

    def __init__(self, database: Database, positions: dict[str, str]) -> None:
        self._database = database
        self._positions = positions
        self.versions: dict[tuple[str, object], list[object]] = defaultdict(list)

    def run_once(self, *, fails: bool = False) -> None:
        """Delivers what is there; one that ``fails`` does so with what is newest."""

        def take(change: Change) -> None:
            assert change.new_values is not None
            version = change.new_values["Version"]
            self.versions[change.table, change.key["Id"]].append(version)
            if fails and version == 1:
                raise ValueError("the sink fails")

        watcher = Watcher(
            database=str(address_of(self._database)),
            tables=("T*",),
            consumer="reader",
            start="earliest",
            max_rows=2,
            positions=self._positions,
            delivery={"retries": 0},
        )
        watcher.on_change(take)
        with pytest.raises(DeliveryError) if fails else contextlib.nullcontext():
            watcher.run_once()


def write(database: Database, *rows: tuple[str, int, int]) -> None:
    with database.batch() as batch:
        for table, key, version in rows:
            batch.insert_or_update(table, ("Id", "Version"), [(key, version)])


@pytest.mark.parametrize("keep", ["table", "file"])
def test_a_window_that_was_not_saved_does_not_come_again_as_a_shorter_one(
    keep: str,
    create_database: Callable[..., Database],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first window holds two rows, as many as it may. When it comes again a third row is there:
    the window is cut, and where it is, an older version of one of the two was the newest."""
    monkeypatch.setattr(SpannerPositions, "unplanned_micros", 0)
    database = create_database(*(text for name in TABLES for text in watchable_ddl(name)), OTHER)
    kept = {"keep": "file", "path": str(tmp_path / "positions.json")} if keep == "file" else {}
    reader = Reader(database, kept)
    write(database, ("T0", 9, 0))
    began = time.monotonic()
    reader.run_once()
    seconds = time.monotonic() - began
    write(database, ("T0", 1, 0), ("T1", 1, 0))
    began = time.monotonic()
    while time.monotonic() - began < seconds * GAP:
        write(database, ("Other", 1, 0))
    write(database, ("T1", 1, 1))
    reader.run_once(fails=True)
    write(database, ("T1", 2, 0))
    reader.run_once()
    assert reader.versions["T1", 1][:2] == [1, 1]
    assert {row: versions[-1] for row, versions in reader.versions.items()} == {
        ("T0", 9): 0,
        ("T0", 1): 0,
        ("T1", 1): 1,
        ("T1", 2): 0,
    }


LIMITS: list[dict[str, Any]] = [{"max_rows": 1}, {"max_bytes": 1}, {"max_span": "0.001ms"}]


@pytest.mark.parametrize("limit", LIMITS, ids=str)
def test_each_limit_cuts_windows_but_no_commit(
    create_database: CreateDatabase, limit: dict[str, Any]
) -> None:
    database = create_database(*watchable_ddl("T0"))
    for version in range(4):
        write(database, ("T0", version, version), ("T0", 10 + version, version))
    changes: list[Change] = []
    address = str(address_of(database))
    watcher = Watcher(database=address, tables=("T0",), start="earliest", **limit)
    watcher.on_change(changes.append)
    watcher.run_once()
    versions = defaultdict(list)
    for change in changes:
        assert change.new_values is not None
        versions[change.window].append(change.new_values["Version"])
    assert sorted(versions.values()) == [[version] * 2 for version in range(4)]
