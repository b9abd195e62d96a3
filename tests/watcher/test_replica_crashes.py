"""A replicator that is killed anywhere: the next one makes the replica equal, and no cut lies."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fixtures.changing_schemas import STREAM_DDL, change_schema, watchable_ddl, write_everywhere
from fixtures.consumers import expire_lease
from fixtures.replicas import (
    CONSUMER,
    FORMAT,
    assert_equal,
    last_cut,
    list_commits,
    list_summaries,
    read_rows,
)
from fixtures.server import CreateDatabase
from fixtures.singers import address_of
from fixtures.warm_python import WARM_PYTHON
from google.cloud.spanner_v1.database import Database

from watcher.process.failpoints import VARIABLE
from watcher.replica.cuts.cut import DELTA, KIND
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.cuts.modes import HISTORY, KEEP_DELETED, LATEST, Mode
from watcher.replica.formats import ICEBERG
from watcher.replica.reading import as_of

TABLES = ("A", "B", "C")
PLACES = ("after-replica-table", "after-replica-tables", "after-delivery-before-position")
MERGE_PLACES = ("after-replica-rows", "after-replica-files", "after-replica-commit")
REWRITE_PLACES = ("after-rewrite", "after-rewrite-files", "after-rewrite-commit")
"""Those that a load does not pass."""


@pytest.fixture
def database(create_database: CreateDatabase) -> Database:
    """Three tables that can be polled, and a change stream of them."""
    return create_database(*(ddl for name in TABLES for ddl in watchable_ddl(name)), STREAM_DDL)


def run_replicate(
    database: Database,
    folder: str,
    place: str | None = None,
    stream: str | None = None,
    load_rows: int | None = None,
    format_: str = FORMAT,
    mode: Mode = LATEST,
) -> int:
    """The exit code of a run up to now, killed at a place."""
    target = f"{format_}:{folder}"
    arguments = ["replicate", "--once", "-d", str(address_of(database)), "--to", target]
    arguments += [flag for name in TABLES for flag in ("-t", name)] + ["--consumer", CONSUMER]
    arguments += ["--stream", stream] if stream else []
    arguments += ["--mode", mode] if mode != LATEST else []
    arguments += ["--load-rows", str(load_rows)] if load_rows else []
    arguments += ["--compaction-small-files", "1"] if place in REWRITE_PLACES else []
    done = subprocess.run(
        [*WARM_PYTHON, "-c", "from watcher.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | ({VARIABLE: place} if place else {}),
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    if done.returncode:
        expire_lease(database, CONSUMER)
    return done.returncode


def versions_of(folder: str, table: str) -> dict[int, int]:
    return {row["Id"]: row["Version"] for row in read_rows(folder, table)}


@pytest.mark.parametrize(
    ("place", "stream", "mode"),
    [
        *((p, None, LATEST) for p in PLACES + MERGE_PLACES + REWRITE_PLACES),
        (PLACES[0], "S", LATEST),
        *((p, "S", HISTORY) for p in PLACES + MERGE_PLACES + REWRITE_PLACES),
        *((p, None, KEEP_DELETED) for p in (PLACES[0], *MERGE_PLACES)),
    ],
)
def test_a_replica_is_exact_after_a_crash_at_any_place(
    database: Database, lake: str, place: str, stream: str | None, mode: Mode
) -> None:
    crash_and_go_on(database, lake, place, stream, DELTA, mode)


@pytest.mark.parametrize(
    ("place", "stream"),
    [*((p, None) for p in PLACES[:2] + MERGE_PLACES + REWRITE_PLACES), (MERGE_PLACES[2], "S")],
)
def test_a_replica_in_iceberg_is_exact_after_a_crash_at_any_place(
    database: Database, tmp_path: Path, place: str, stream: str | None
) -> None:
    """In a folder: the catalog is a file."""
    crash_and_go_on(database, str(tmp_path / "lake"), place, stream, ICEBERG, LATEST)


@pytest.mark.parametrize("place", PLACES[:2] + MERGE_PLACES + REWRITE_PLACES)
def test_a_replica_in_a_catalog_is_exact_after_a_crash_at_any_place(
    database: Database, catalog_place: str, place: str
) -> None:
    """In SQLite, in PostgreSQL, over REST, and with the tables in each object store."""
    crash_and_go_on(database, catalog_place, place, "S", ICEBERG, LATEST)


@pytest.mark.essential
def test_a_replica_in_iceberg_is_exact_after_a_crash_behind_a_commit(
    database: Database, tmp_path: Path
) -> None:
    crash_and_go_on(database, str(tmp_path / "lake"), MERGE_PLACES[2], "S", ICEBERG, LATEST)


def crash_and_go_on(
    database: Database, lake: str, place: str, stream: str | None, format_: str, mode: Mode
) -> None:
    write_everywhere(database, TABLES, 1)
    killed = run_replicate(database, lake, place, stream, format_=format_, mode=mode)
    # A load is a commit of the same code, and passes its places.
    later = place in (MERGE_PLACES[0], *REWRITE_PLACES)
    assert killed == (0 if later else -signal.SIGKILL), "during the initial load"
    assert run_replicate(database, lake, None, stream, format_=format_, mode=mode) == 0
    assert_equal(database, lake)
    before, rows = last_cut(lake), versions_of(lake, "A")
    write_everywhere(database, TABLES, 2)
    killed = run_replicate(database, lake, place, stream, format_=format_, mode=mode)
    assert killed == -signal.SIGKILL, "during the changes"
    assert_equal(database, lake)
    if place not in ("after-delivery-before-position", *REWRITE_PLACES):
        assert last_cut(lake) == before
        assert {name: versions_of(lake, name) for name in TABLES} == dict.fromkeys(TABLES, rows)
    write_everywhere(database, TABLES, 3)
    assert run_replicate(database, lake, None, stream, format_=format_, mode=mode) == 0
    assert_equal(database, lake)
    assert versions_of(lake, "A") == versions_of(lake, "C") != rows
    if mode == HISTORY:
        assert_versions(lake, "A")


def assert_versions(folder: str, table: str) -> None:
    """Each of the three writes is one version of its keys."""
    versions: dict[int, list[dict[str, Any]]] = {}
    for row in as_of(folder).read(table, all_rows=True).to_pylist():
        versions.setdefault(row["Id"], []).append(row)
    written: dict[int, list[int]] = {}
    for number in (1, 2, 3):
        for key in range(number % 3, 12, 2):
            written.setdefault(key, []).append(number)
    for rows in versions.values():
        rows.sort(key=lambda row: row["_valid_from"])
        ends = [row["_valid_to"] for row in rows]
        assert ends == [*(row["_valid_from"] for row in rows[1:]), None]
    found = {key: [row["Version"] for row in rows] for key, rows in versions.items()}
    assert found == written


@pytest.mark.parametrize(
    ("place", "stream"),
    [("after-load-progress", None), *((p, None) for p in PLACES), (PLACES[0], "S")],
)
def test_a_load_goes_on_after_a_kill_anywhere(
    database: Database, lake: str, place: str, stream: str | None
) -> None:
    """Each run is killed in a window of the load, between which rows come and change."""
    write_everywhere(database, TABLES, 1)
    for number in range(2, 4):
        killed = run_replicate(database, lake, place, stream, load_rows=2)
        assert killed == -signal.SIGKILL
        assert not list(Manifest(lake).iterate_exact())
        write_everywhere(database, TABLES, number)
    assert run_replicate(database, lake, None, stream, load_rows=2) == 0
    assert_equal(database, lake)
    modes = [each["operationParameters"].get("mode") for each in list_commits(lake, "A")]
    assert modes.count("Overwrite") == 1, "the load went on"


@pytest.mark.parametrize("place", ["after-replica-files", "after-replica-columns", *PLACES[:2]])
@pytest.mark.parametrize("column", ["DEFAULT ('x')", "AS (CAST(Version AS STRING)) STORED"])
def test_new_columns_with_values_after_a_kill(
    database: Database, lake: str, place: str, column: str
) -> None:
    """Nothing is loaded again, whatever was committed."""
    write_everywhere(database, TABLES, 1)
    assert run_replicate(database, lake) == 0
    change_schema(database, f"ALTER TABLE A ADD COLUMN Added STRING(MAX) {column}")
    write_everywhere(database, TABLES, 2)
    before = last_cut(lake)
    assert run_replicate(database, lake, place) == -signal.SIGKILL
    assert last_cut(lake).end == before.end
    assert_equal(database, lake)
    write_everywhere(database, TABLES, 3)
    assert run_replicate(database, lake) == 0
    assert_equal(database, lake)
    assert [each["operation"] for each in list_commits(lake, "A")].count("WRITE") == 1
    assert all(row["Added"] for row in read_rows(lake, "A"))


@pytest.mark.parametrize("with_rows", [True, False])
@pytest.mark.parametrize("place", [*MERGE_PLACES[1:], "after-replica-columns", *PLACES[:2]])
def test_a_new_column_in_iceberg_after_a_kill(
    database: Database, tmp_path: Path, place: str, with_rows: bool
) -> None:
    lake = str(tmp_path / "lake")
    write_everywhere(database, TABLES, 1)
    assert run_replicate(database, lake, format_=ICEBERG) == 0
    before = last_cut(lake)
    change_schema(database, "ALTER TABLE A ADD COLUMN Added STRING(MAX)")
    if with_rows:
        write_everywhere(database, TABLES, 2)
    killed = run_replicate(database, lake, place, format_=ICEBERG)
    assert killed == (0 if (place, with_rows) in NO_MERGE else -signal.SIGKILL)
    assert_equal(database, lake)
    assert (last_cut(lake).end == before.end) == bool(killed)
    write_everywhere(database, TABLES[:1], 3)
    assert run_replicate(database, lake, format_=ICEBERG) == 0
    assert_equal(database, lake)
    kinds = [each[KIND] for each in list_summaries(lake, "A")]
    assert kinds.count("load") == 1
    assert {row["Added"] for row in read_rows(lake, "A")} == {None}


NO_MERGE = {("after-replica-files", False), ("after-replica-table", False)}
"""Places that a window without rows does not pass."""


def test_crashes_one_after_another_with_changes_of_the_schema(
    database: Database, lake: str
) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    chooser = random.Random(seed)
    for number in range(4):
        write_everywhere(database, TABLES, number)
        if number % 2:
            column = f"ALTER TABLE B ADD COLUMN More{number} STRING(MAX) DEFAULT ('{number}')"
            change_schema(database, column)
        run_replicate(database, lake, chooser.choice(PLACES + MERGE_PLACES + REWRITE_PLACES))
    assert run_replicate(database, lake) == 0
    assert_equal(database, lake)
