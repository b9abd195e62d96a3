"""Tables delivered whole before their changes: every row once, without gap or overlap."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, make_watchable, write_singers
from fixtures.warm_python import WARM_PYTHON
from google.cloud.spanner_v1.database import Database

from watcher import Change, Operation, Watcher
from watcher.model.errors import ConfigurationError
from watcher.process.failpoints import VARIABLE

ROWS = 25


@pytest.fixture
def old(create_database: CreateDatabase) -> Database:
    """A table with rows that were there before it was made watchable."""
    database: Database = create_database(SINGERS)
    write_singers(database, range(ROWS), "old")
    make_watchable(database)
    return database


def options(database: Database, **more: object) -> dict[str, Any]:
    common = {"tables": ["Singers"], "backfill": ["*"], "backfill_rows": 7, "consumer": "filler"}
    return {"database": str(address_of(database))} | common | more


def deliver(database: Database, **more: object) -> list[Change]:
    seen: list[Change] = []
    watcher = Watcher(**options(database, **more))
    watcher.on_change(seen.append)
    watcher.run_once()
    return seen


def test_every_row_comes_once_and_then_its_changes(old: Database) -> None:
    first = deliver(old)
    assert [change.key["SingerId"] for change in first] == list(range(ROWS))
    assert {change.operation for change in first} == {Operation.READ}
    assert {(change.new_values or {})["LastName"] for change in first} == {"old"}
    write_singers(old, range(3, 5), "new")
    second = deliver(old)
    assert [(c.key["SingerId"], c.operation) for c in second] == [
        (3, Operation.UPSERT),
        (4, Operation.UPSERT),
    ]
    ends = {change.window.end for change in first}
    assert len(ends) == 1
    assert all(change.commit_timestamp > min(ends) for change in second)


def test_changes_during_the_backfill_come_after_it(old: Database) -> None:
    seen: list[Change] = []
    watcher = Watcher(**options(old))

    def change_while_filling(change: Change) -> None:
        if not seen:
            write_singers(old, range(20, 22), "new")
        seen.append(change)

    watcher.on_change(change_while_filling)
    watcher.run_once()
    by_key: dict[object, list[object]] = {}
    for change in seen:
        by_key.setdefault(change.key["SingerId"], []).append((change.new_values or {})["LastName"])
    assert by_key == {k: ["old", "new"] if k in (20, 21) else ["old"] for k in range(ROWS)}


def test_a_range_of_keys_can_be_backfilled(old: Database) -> None:
    bounds = {"Singers": {"backfill_from": [5], "backfill_to": [16]}}
    assert [change.key["SingerId"] for change in deliver(old, table=bounds)] == list(range(5, 16))


def test_a_killed_backfill_goes_on_with_the_same_snapshot(old: Database, tmp_path: Path) -> None:
    config = tmp_path / "watch.toml"
    config.write_text(
        f"""
        database = "{address_of(old)}"
        tables = ["Singers"]
        consumer = "killed"
        backfill = ["Singers"]
        backfill_rows = 10
        lease = "1s"
        """
    )
    command = [*WARM_PYTHON, "-c", "from watcher.cli import main; main()"]
    command += ["watch", "--config", str(config), "--once"]
    killed = subprocess.run(
        command,
        env=os.environ | {VARIABLE: "after-backfill-page-before-progress"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == -9
    before = [json.loads(line) for line in killed.stdout.splitlines()]
    assert [change["key"]["SingerId"] for change in before] == list(range(10))
    write_singers(old, range(12, 13), "changed since")
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    after = [json.loads(line) for line in result.stdout.splitlines()]
    assert [change["key"]["SingerId"] for change in after] == [*range(ROWS), 12]
    assert {change["id"] for change in before} < {change["id"] for change in after}
    assert len({change["id"] for change in after}) == ROWS + 1


def test_a_table_that_is_made_watchable_later_is_backfilled_too(
    create_database: Callable[..., Database],
) -> None:
    database = create_database(SINGERS, "CREATE TABLE Later (Id INT64) PRIMARY KEY (Id)")
    make_watchable(database)
    with database.batch() as batch:
        batch.insert("Later", ("Id",), [(key,) for key in range(3)])
    enough = threading.Event()
    seen: list[Change] = []

    def collect(change: Change) -> None:
        seen.append(change)
        if sum(each.table == "Later" for each in seen) == 3:
            enough.set()

    write_singers(database, range(1), "first")
    everything = {"tables": ["*"], "refresh": 0, "interval": "20ms"}
    watcher = Watcher(**options(database, **everything))
    watcher.on_change(collect)
    thread = threading.Thread(target=watcher.run)
    thread.start()
    make_watchable(database, "Later")
    assert enough.wait(60)
    watcher.stop()
    thread.join(60)
    later = [change for change in seen if change.table == "Later"]
    assert [(c.key["Id"], c.operation) for c in later] == [(n, Operation.READ) for n in range(3)]


def test_a_backfill_and_another_start_are_refused(old: Database) -> None:
    with pytest.raises(ConfigurationError, match="backfill"):
        Watcher(**options(old, start="earliest"))
