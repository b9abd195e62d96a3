"""A query that is killed anywhere: the next one makes the replica equal, and no cut lies."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from fixtures.changing_schemas import (
    STREAM_DDL,
    change_schema,
    watchable_ddl,
    write_everywhere,
)
from fixtures.consumers import expire_lease
from fixtures.pace import allow
from fixtures.replicas import (
    CONSUMER,
    assert_equal,
    last_cut,
    list_kinds,
    open_table,
    read_rows,
)
from fixtures.server import CreateDatabase
from fixtures.singers import await_expiry, fetch_now
from fixtures.spark_formats import require_format
from fixtures.spark_replica_process import (
    SECONDS_MAX,
    read_log,
    run_replicate,
    start_replicate,
    write_config,
)
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from watcher.replica.cuts.cut import DELTA
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.delta.log import DeltaLog
from watcher.replica.formats import ICEBERG, PARQUET

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

TABLES = ("A", "B")
TABLE, LAST_TABLE, CUT = "after-replica-table", "after-replica-tables", "after-replica-cut"
CHUNK, PROGRESS = "after-spark-chunk", "after-load-progress"
FILES = "after-replica-files"
"""In Parquet its files are there, and the version that lists them is not. Where columns change, the
table has the new ones, and rows have no values in them."""
COLUMNS = "after-replica-columns"
CRASHES = [
    *((DELTA, place, None) for place in (TABLE, LAST_TABLE, CUT)),
    (DELTA, TABLE, "S"),
    *((ICEBERG, place, None) for place in (TABLE, LAST_TABLE, CUT)),
    *((PARQUET, place, None) for place in (FILES, TABLE, LAST_TABLE, CUT)),
    (PARQUET, FILES, "S"),
]


@pytest.fixture
def database(create_database: CreateDatabase) -> Database:
    """Two tables that can be polled, and a change stream of them."""
    return create_database(*(ddl for name in TABLES for ddl in watchable_ddl(name)), STREAM_DDL)


def versions_of(folder: Path, table: str) -> dict[int, int]:
    return {row["Id"]: row["Version"] for row in read_rows(folder, table)}


@pytest.mark.parametrize(("format_", "place", "stream"), CRASHES)
def test_a_replica_is_exact_after_a_kill_at_any_place(
    request: pytest.FixtureRequest,
    database: Database,
    tmp_path: Path,
    format_: str,
    place: str,
    stream: str | None,
) -> None:
    session = require_format(request, format_)
    config, lake = write_config(tmp_path / "job.toml", session, format_), tmp_path / "lake"
    flags = ("--stream", stream) if stream else ()
    write_everywhere(database, TABLES, 1)
    killed = run_replicate(database, config, TABLES, *flags, place=place)
    assert killed == -signal.SIGKILL, "during the initial load"
    assert run_replicate(database, config, TABLES, *flags) == 0
    assert_equal(database, lake)
    assert list_kinds(lake, "A").count("load") == 1, "loaded twice"
    before, rows = last_cut(lake), versions_of(lake, "A")
    write_everywhere(database, TABLES, 2)
    killed = run_replicate(database, config, TABLES, *flags, place=place)
    assert killed == -signal.SIGKILL, "during the changes"
    assert_equal(database, lake)
    if place != CUT:
        assert last_cut(lake) == before
        assert {name: versions_of(lake, name) for name in TABLES} == dict.fromkeys(TABLES, rows)
    assert run_replicate(database, config, TABLES, *flags) == 0
    assert_equal(database, lake)
    assert versions_of(lake, "A") == versions_of(lake, "B") != rows
    for name in TABLES:
        assert list_kinds(lake, name) == ["merge", "load"]


@pytest.mark.parametrize(("format_", "dropped"), [(DELTA, "keep"), (ICEBERG, "drop")])
def test_columns_change_after_kills(
    request: pytest.FixtureRequest, database: Database, tmp_path: Path, format_: str, dropped: str
) -> None:
    """Before new columns have values, and before the rows of the window are merged; no run loads
    the table, and cuts of before stay as they are."""
    session = require_format(request, format_)
    config, lake = write_config(tmp_path / "job.toml", session, format_), tmp_path / "lake"
    flags = ("--dropped-columns", dropped)
    change_schema(database, "ALTER TABLE A ADD COLUMN Name STRING(MAX) DEFAULT ('old')")
    write_everywhere(database, TABLES, 1)
    assert run_replicate(database, config, ["A"], *flags) == 0
    before, rows = last_cut(lake), versions_of(lake, "A")
    change_schema(
        database,
        "ALTER TABLE A DROP COLUMN Name",
        "ALTER TABLE A ADD COLUMN Five INT64 DEFAULT (5)",
        "ALTER TABLE A ADD COLUMN Twice INT64 AS (Version * 2) STORED",
    )
    write_everywhere(database, TABLES, 2)
    for place in (FILES, COLUMNS):
        killed = run_replicate(database, config, ["A"], *flags, place=place)
        assert killed == -signal.SIGKILL, place
        assert last_cut(lake).end == before.end
        assert_equal(database, lake, before)
        assert versions_of(lake, "A") == rows
    assert run_replicate(database, config, ["A"], *flags) == 0
    assert_equal(database, lake)
    assert {(row["Five"], row["Twice"] == 2 * row["Version"]) for row in read_rows(lake, "A")} == {
        (5, True)
    }
    assert ("Name" in read_rows(lake, "A")[0]) == (dropped == "keep")
    kinds = list_marks(lake) if format_ == DELTA else list_kinds(lake, "A")
    assert kinds.count("load") == 1, kinds


@pytest.mark.parametrize("format_", [DELTA, ICEBERG])
def test_a_load_in_chunks_goes_on_after_kills(
    request: pytest.FixtureRequest, database: Database, tmp_path: Path, format_: str
) -> None:
    """Before a chunk is committed, and after it; rows come, change and go on both sides of the last
    key that is loaded, and no cut of a part is exact."""
    session = require_format(request, format_)
    config, lake = write_config(tmp_path / "job.toml", session, format_), tmp_path / "lake"
    flags = ("--load-rows", "4", "--stream", "S")
    for number in (1, 2, 3):
        write_everywhere(database, TABLES, number)
    for number, place in enumerate((CHUNK, PROGRESS), 4):
        killed = run_replicate(database, config, ["A"], *flags, place=place)
        assert killed == -signal.SIGKILL, place
        assert not list(Manifest(str(lake)).iterate_exact())
        write_everywhere(database, TABLES, number)
        with database.batch() as batch:
            batch.delete("A", KeySet(keys=[[number - 3], [number + 5]]))
    assert run_replicate(database, config, ["A"], *flags) == 0
    assert_equal(database, lake)
    kinds = list_kinds(lake, "A") if format_ == ICEBERG else list_marks(lake)
    assert kinds.count("load") == 1, kinds
    assert kinds.count("chunk") >= 2, kinds


def list_marks(lake: Path) -> list[str]:
    """What the commits of a copy in Delta say of themselves."""
    log = DeltaLog(str(lake / "A"), CONSUMER)
    return [(log.find_mark(n) or {})["kind"] for n in range(open_table(lake, "A").version() + 1)]


@pytest.mark.parametrize("rows", [4, 100], ids=["in chunks", "whole"])
def test_a_run_up_to_now_ends_with_an_exact_cut_after_a_kill(
    request: pytest.FixtureRequest,
    database: Database,
    tmp_path: Path,
    faults: Callable[..., None],
    rows: int,
) -> None:
    """Spanner keeps nothing of the window of the killed run any more: what is loaded in its place
    is ahead of the windows of that query, and the next one reaches it."""
    session = require_format(request, DELTA)
    config, lake = write_config(tmp_path / "job.toml", session), tmp_path / "lake"
    flags = ("--load-rows", str(rows), "--stream", "S")
    write_everywhere(database, TABLES, 1)
    killed = run_replicate(database, config, ["A"], *flags, place=PROGRESS)
    assert killed == -signal.SIGKILL
    at = fetch_now(database)
    faults(versions_kept_seconds=0.001)
    await_expiry(database, "A", at)
    faults()
    write_everywhere(database, TABLES, 2)
    assert run_replicate(database, config, ["A"], *flags) == 0
    last = Manifest(str(lake)).read_last()
    assert last is not None
    assert last.exact, last.explain()
    assert_equal(database, lake)


def test_a_run_up_to_now_that_is_stopped_during_a_load_is_not_started_again(
    request: pytest.FixtureRequest, database: Database, tmp_path: Path
) -> None:
    """Neither after a signal nor where an earlier query has left a part."""
    session = require_format(request, DELTA)
    config, lake = write_config(tmp_path / "job.toml", session), tmp_path / "lake"
    with database.batch() as batch:
        batch.insert("A", ("Id",), [(number,) for number in range(200)])
    manifest, flags = Manifest(str(lake)), ("--load-rows", "1")
    for more in (("--load-seconds", "1ms"), ("--once",)):
        before = count_versions(lake)
        running = start_replicate(database, config, ["A"], *flags, *more)
        while count_versions(lake) < before + 2 or manifest.read_last() is None:
            assert running.poll() is None, read_log(config)[-5000:]
        running.terminate()
        assert running.wait(allow(SECONDS_MAX)) == 0
        expire_lease(database, CONSUMER)
        last = manifest.read_last()
        assert last is not None
        assert last.tables["A"].loading
    assert run_replicate(database, config, ["A"], "--once") == 0
    assert_equal(database, lake)


def count_versions(folder: Path) -> int:
    return len(list((folder / "A" / "_delta_log").glob("*.json")))
