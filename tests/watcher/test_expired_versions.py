"""A replica that was away for longer than Spanner keeps versions goes on, where its change stream
does not have every column: the truth is what the tests have written."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from fixtures.changing_schemas import change_schema
from fixtures.replicas import (
    assert_equal,
    last_cut,
    list_commits,
    make_replicator,
    read_rows,
    replicate,
)
from fixtures.server import CreateDatabase
from fixtures.singers import await_expiry
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from watcher.replica.cuts.cut import Cause
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.replica_window import CutReport
from watcher.spanner.timestamps import to_micros

TABLE = (
    "CREATE TABLE T (Id INT64, A INT64, B STRING(MAX), Twice INT64 AS (A * 2) STORED)"
    " PRIMARY KEY (Id)"
)
OPTIONS = {"capture": "change-stream", "tables": ["T"]}
Rows = dict[int, tuple[int, str]]


class History:
    """Random transactions, and what they make of the table."""

    def __init__(self, database: Database, seed: int) -> None:
        self._database = database
        self._chosen = random.Random(seed)
        self.rows: Rows = {}

    def write(self) -> int:
        """A transaction: rows that come, change in one column, or go. Its commit timestamp."""
        with self._database.batch() as batch:
            for key in self._chosen.sample(range(12), 4):
                value = self._chosen.randrange(100)
                if key not in self.rows:
                    self.rows[key] = value, f"new {value}"
                    batch.insert("T", ("Id", "A", "B"), [(key, *self.rows[key])])
                elif self._chosen.random() < 0.4:
                    del self.rows[key]
                    batch.delete("T", KeySet(keys=[[key]]))
                else:
                    self.rows[key] = self.rows[key][0], f"then {value}"
                    batch.update("T", ("Id", "B"), [(key, self.rows[key][1])])
        return to_micros(batch.committed)


def read_copy(folder: Path) -> Rows:
    rows = read_rows(folder, "T")
    assert all(row["Twice"] == 2 * row["A"] for row in rows)
    return {row["Id"]: (row["A"], row["B"]) for row in rows}


@pytest.mark.essential
@pytest.mark.parametrize("captured", ["NEW_ROW", "OLD_AND_NEW_VALUES"])
@pytest.mark.parametrize("max_rows", [3, 10_000])
def test_a_replica_that_was_away_for_long_is_exact_again(
    create_database: CreateDatabase,
    tmp_path: Path,
    faults: Callable[..., None],
    captured: str,
    max_rows: int,
) -> None:
    """It says `read-late` until a window catches up, and is not loaded again."""
    stream = f"CREATE CHANGE STREAM S FOR T OPTIONS (value_capture_type = '{captured}')"
    database = create_database(TABLE, stream)
    seed = random.randrange(2**32)
    print("seed", seed)
    history = History(database, seed)
    history.write()
    replicate(database, tmp_path, **OPTIONS)
    for _ in range(6):
        at = history.write()
    reports: list[CutReport] = []

    def expire_first(report: CutReport) -> None:
        reports.append(report)
        faults()
        history.write()

    faults(versions_kept_seconds=0.5)
    await_expiry(database, "T", at)
    make_replicator(database, tmp_path, expire_first, max_rows=max_rows, **OPTIONS).run_once()
    replicate(database, tmp_path, **OPTIONS)
    operations = [each["operation"] for each in list_commits(tmp_path, "T")]
    assert operations.count("WRITE") == 1, "it was loaded again"
    causes = {r.cause for each in reports for r in each.cut.reasons}
    assert causes <= {Cause.READ_LATE}
    assert read_copy(tmp_path) == history.rows
    assert_equal(database, tmp_path)


def test_columns_that_came_meanwhile(
    create_database: CreateDatabase, tmp_path: Path, faults: Callable[..., None]
) -> None:
    """The schema of the commit timestamps is gone, too."""
    stream = "CREATE CHANGE STREAM S FOR T OPTIONS (value_capture_type = 'NEW_ROW')"
    database = create_database(TABLE, stream)
    history = History(database, 1)
    history.write()
    replicate(database, tmp_path, **OPTIONS)
    history.write()
    change_schema(database, "ALTER TABLE T ADD COLUMN More INT64 NOT NULL DEFAULT (7)")
    at = history.write()
    faults(versions_kept_seconds=0.5)
    await_expiry(database, "T", at)
    replicate(database, tmp_path, **OPTIONS)
    faults()
    replicate(database, tmp_path, **OPTIONS)
    assert {row["More"] for row in read_rows(tmp_path, "T")} == {7}
    assert read_copy(tmp_path) == history.rows
    assert_equal(database, tmp_path, last_cut(tmp_path))
    assert Manifest(str(tmp_path)).find_exact().exact
