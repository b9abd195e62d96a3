"""Replicas that keep deleted rows, or every version, against what the tests have written."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fixtures import iceberg_histories, replicas
from fixtures.changing_schemas import change_schema
from fixtures.listings import ALL
from fixtures.replicas import (
    CONSUMER,
    CrashError,
    assert_equal,
    crash,
    last_cut,
    open_table,
    read_rows,
    replicate,
)
from fixtures.server import CreateDatabase
from fixtures.singers import address_of, await_expiry, make_watchable
from fixtures.versions import TABLES, Writes, list_versions, rows_at, truth_since
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from watcher.model.errors import ConfigurationError, ReplicaError
from watcher.replica.copies import KeepingCopy
from watcher.replica.cut_writer import CutWriter
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.cuts.modes import COLUMNS, ENDS, HISTORY, KEEP_DELETED, MODES, Mode
from watcher.replica.cuts.stored import FORMAT_OF_MODES
from watcher.replica.formats import ICEBERG, open_copies
from watcher.replica.reading import as_of
from watcher.replica.verification.repairs import RepairOptions
from watcher.runners.repair import LeasePlace, repair_replica
from watcher.settings.watcher import parse_watch_config
from watcher.spanner.queries import QueryClient
from watcher.spanner.timestamps import format_timestamp, to_micros

STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'NEW_ROW')"
STREAMED = {"capture": "change-stream", "stream": {"name": "S"}, "tables": ["T", "U"]}
NAMES = ("Id", "Version", "Text")


def to_copy(folder: Path | str, mode: Mode, **more: object) -> dict[str, Any]:
    return {"replica": {"to": f"{replicas.FORMAT}:{folder}", "mode": mode} | more}


def copy_first(database: Database, folder: Path, count: int, options: Mapping[str, Any]) -> None:
    """Some rows, and a copy of them."""
    with database.batch() as batch:
        batch.insert("T", NAMES, [(n, n, "a") for n in range(count)])
    replicate(database, folder, **options)


@pytest.fixture
def database(create_database: CreateDatabase) -> Database:
    return create_database(*TABLES, STREAM)


def test_a_history_has_every_version_and_reads_as_of_any_time(
    database: Database, tmp_path: Path, own_format: str
) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    writes = Writes(database, seed)
    writes.write(5)
    replicate(database, tmp_path, **STREAMED, **to_copy(tmp_path, HISTORY))
    since = last_cut(tmp_path).end
    for _ in range(3):
        writes.write(15)
        replicate(database, tmp_path, **STREAMED, **to_copy(tmp_path, HISTORY))
        assert_equal(database, tmp_path)
    assert list_versions(f"{own_format}:{tmp_path}", since) == truth_since(writes, since)
    end = last_cut(tmp_path).end
    moments = {v.at + d for listed in writes.truth.values() for v in listed for d in (-1, 0)}
    for at in random.Random(seed).sample(sorted(m for m in moments if since <= m <= end), 20):
        replica = as_of(f"{own_format}:{tmp_path}", format_timestamp(at))
        for name in ("T", "U"):
            rows = replica.read(name).to_pylist()
            assert sorted((row["Id"], row["Version"]) for row in rows) == sorted(
                rows_at(writes, name, at)
            )
    with pytest.raises(ReplicaError, match="the history of T begins at"):
        as_of(f"{own_format}:{tmp_path}", format_timestamp(since - 1)).read("T")


@pytest.mark.parametrize("mode", [KEEP_DELETED, HISTORY])
def test_changes_from_before_a_new_column_are_kept_with_those_after_it(
    database: Database, tmp_path: Path, mode: Mode, own_format: str
) -> None:
    """In one window; a load would have none of the rows that only the copy has."""
    more = STREAMED | to_copy(tmp_path, mode)
    copy_first(database, tmp_path, 6, more)
    with database.batch() as batch:
        batch.update("T", ["Id", "Version"], [(2, 20), (4, 40)])
        batch.insert("T", NAMES, [(7, 70, "b"), (8, 80, "b")])
        batch.delete("T", KeySet(keys=[[0]]))
    change_schema(database, "ALTER TABLE T ADD COLUMN More INT64")
    with database.batch() as batch:
        batch.update("T", ["Id", "Version", "More"], [(4, 400, 1)])
        batch.delete("T", KeySet(keys=[[8]]))
    change_schema(database, "ALTER TABLE T ADD COLUMN Again INT64")
    with database.batch() as batch:
        batch.update("T", ["Id", "Version", "Again"], [(7, 700, 2)])
    (report,) = replicate(database, tmp_path, **more)
    assert (report.loaded, report.cut.exact) == ({}, True)
    assert_equal(database, tmp_path)
    rows = as_of(f"{own_format}:{tmp_path}").read("T", all_rows=True).to_pylist()
    kept = {(row["Id"], row["Version"], row["More"], row["Again"]) for row in rows}
    assert kept >= {(2, 20, None, None), (4, 400, 1, None), (7, 700, None, 2)}
    if mode == HISTORY:
        assert kept >= {(4, 40, None, None), (7, 70, None, None), (8, 80, None, None)}
    assert {0, 8} <= {row["Id"] for row in rows}, "deleted ones"


@pytest.mark.parametrize("mode", [KEEP_DELETED, HISTORY])
def test_a_column_that_comes_after_a_crash(
    database: Database, tmp_path: Path, mode: Mode, monkeypatch: pytest.MonkeyPatch, own_format: str
) -> None:
    """The copy has the rows of a window whose cut and position were not written."""
    more = STREAMED | to_copy(tmp_path, mode)
    copy_first(database, tmp_path, 4, more)
    with database.batch() as batch:
        batch.update("T", ["Id", "Version"], [(1, 10), (2, 20)])
    with monkeypatch.context() as patch:
        patch.setattr(CutWriter, "write", crash)
        with pytest.raises(CrashError):
            replicate(database, tmp_path, **more)
    change_schema(database, "ALTER TABLE T ADD COLUMN More INT64")
    with database.batch() as batch:
        batch.update("T", ["Id", "Version", "More"], [(2, 200, 5)])
    (report,) = replicate(database, tmp_path, **more)
    assert (report.loaded, report.cut.exact) == ({}, True)
    assert_equal(database, tmp_path)
    rows = as_of(f"{own_format}:{tmp_path}").read("T", all_rows=True).to_pylist()
    versions = sorted((row["Id"], row["Version"], row["More"]) for row in rows)
    kept = [(2, 2, None), (2, 20, None)] if mode == HISTORY else []
    old = [(1, 1, None)] if mode == HISTORY else []
    assert versions == sorted([(0, 0, None), *old, (1, 10, None), *kept, (2, 200, 5), (3, 3, None)])


def test_deleted_rows_stay_with_what_they_were(
    database: Database, tmp_path: Path, own_format: str
) -> None:
    more = STREAMED | to_copy(tmp_path, KEEP_DELETED)
    copy_first(database, tmp_path, 3, more)
    with database.batch() as batch:
        batch.delete("T", KeySet(keys=[[1]]))
    deleted = batch.committed
    with database.batch() as batch:
        batch.insert("T", NAMES, [(8, 8, "short")])
    with database.batch() as batch:
        batch.delete("T", KeySet(keys=[[8]]))
    gone = batch.committed
    replicate(database, tmp_path, **more)
    assert_equal(database, tmp_path)
    assert json.loads(last_cut(tmp_path).to_text())["format"] == FORMAT_OF_MODES
    assert sorted(row["Id"] for row in read_rows(tmp_path, "T")) == [0, 2]
    assert list(read_rows(tmp_path, "T")[0]) == [*NAMES, "_spanner_commit_timestamp"]
    marks = read_marks(tmp_path)
    assert marks[1] == ("a", deleted)
    assert marks[8] == ("short", gone), "it came and went in one window"
    assert marks[0] == ("a", None)
    change_schema(database, "ALTER TABLE T ADD COLUMN More INT64")
    with database.batch() as batch:
        batch.insert("T", (*NAMES, "More"), [(1, 11, "again", 5)])
    replicate(database, tmp_path, **more)
    assert_equal(database, tmp_path)
    marks = read_marks(tmp_path)
    assert marks[1] == ("again", None), "it is there again"
    assert marks[8] == ("short", gone), "new columns leave the marks"


@pytest.mark.parametrize("mode", [KEEP_DELETED, HISTORY])
def test_columns_come_and_stay_without_a_load(
    database: Database, tmp_path: Path, mode: Mode, own_format: str
) -> None:
    """With rows of their window and without; one with values in old rows is refused."""
    more = STREAMED | to_copy(tmp_path, mode)
    copy_first(database, tmp_path, 4, more)
    with database.batch() as batch:
        batch.delete("T", KeySet(keys=[[0]]))
    replicate(database, tmp_path, **more)
    change_schema(database, "ALTER TABLE T ADD COLUMN More INT64")
    with database.batch() as batch:
        batch.update("T", ("Id", "More"), [(1, 5)])
        batch.delete("T", KeySet(keys=[[2]]))
    step(database, tmp_path, more)
    change_schema(database, "ALTER TABLE T DROP COLUMN Text")
    with database.batch() as batch:
        batch.insert("T", ("Id", "Version", "More"), [(8, 8, 8)])
    step(database, tmp_path, more)
    change_schema(database, "ALTER TABLE T ADD COLUMN Last INT64")
    step(database, tmp_path, more)
    with database.batch() as batch:
        batch.insert("T", ("Id", "Version", "Last"), [(9, 9, 9)])
    step(database, tmp_path, more)
    rows = list_ended(tmp_path, mode)
    loaded: set[tuple[Any, ...]] = {(1, "a", 5, None, False), (3, "a", None, None, False)}
    written = {(8, None, 8, None, False), (9, None, None, 9, False)}
    ended: set[tuple[Any, ...]] = {(n, "a", None, None, True) for n in (0, 2)}
    if mode == HISTORY:
        ended |= {(1, "a", None, None, True), *((n, None, None, None, True) for n in (0, 2))}
    assert sorted(rows, key=repr) == sorted(loaded | written | ended, key=repr)
    before = last_cut(tmp_path)
    change_schema(database, "ALTER TABLE T ADD COLUMN Kind STRING(MAX) DEFAULT ('k')")
    with pytest.raises(ReplicaError, match="rename the folder of the copy"):
        replicate(database, tmp_path, **more)
    assert last_cut(tmp_path) == before
    assert list_ended(tmp_path, mode) == rows


def read_all(folder: Path) -> pa.Table:
    """All rows of the copy of T, with all columns."""
    return as_of(f"{replicas.FORMAT}:{folder}").read("T", all_rows=True)


def step(database: Database, folder: Path, options: Mapping[str, Any]) -> None:
    """Replicates up to now without a load, and compares."""
    (report,) = replicate(database, folder, **options)
    assert not report.loaded
    assert_equal(database, folder)


def list_ended(folder: Path, mode: Mode) -> list[tuple[Any, ...]]:
    """All rows of T: some of their columns, and whether they have ended."""
    rows = read_all(folder).to_pylist()
    names = ("Id", "Text", "More", "Last")
    return [(*(row[name] for name in names), row[ENDS[mode]] is not None) for row in rows]


def read_marks(folder: Path) -> dict[int, tuple[str, Any]]:
    rows = read_all(folder).to_pylist()
    assert len({row["Id"] for row in rows}) == len(rows)
    return {row["Id"]: (row["Text"], row["_deleted_at"]) for row in rows}


@pytest.mark.parametrize("mode", [KEEP_DELETED, HISTORY])
def test_marks_and_compared_keys_delete_polled_rows(
    create_database: CreateDatabase, tmp_path: Path, mode: Mode, own_format: str
) -> None:
    database = create_database(
        "CREATE TABLE Singers (SingerId INT64, LastName STRING(MAX), Gone BOOL)"
        " PRIMARY KEY (SingerId)"
    )
    make_watchable(database)
    more = {"table": {"Singers": {"deleted": "Gone"}}}
    more |= to_copy(tmp_path, mode, deletes="compare")
    with database.batch() as batch:
        rows = [(n, f"n{n}", False) for n in range(4)]
        batch.insert("Singers", ("SingerId", "LastName", "Gone"), rows)
    replicate(database, tmp_path, **more)
    with database.batch() as batch:
        batch.update("Singers", ("SingerId", "Gone"), [(1, True)])
        batch.delete("Singers", KeySet(keys=[[2]]))
    reports = replicate(database, tmp_path, **more)
    assert_equal(database, tmp_path)
    assert sorted(row["SingerId"] for row in read_rows(tmp_path, "Singers")) == [0, 3]
    rows = as_of(f"{own_format}:{tmp_path}").read("Singers", all_rows=True).to_pylist()
    end = "_deleted_at" if mode == KEEP_DELETED else "_valid_to"
    ended = {row["SingerId"]: row[end] for row in rows if row[end] is not None}
    assert ended.keys() == {1, 2}
    assert ended[1] == batch.committed
    assert batch.committed < ended[2], "when it was found"
    caveats = " ".join(reports[-1].cut.tables["Singers"].caveats)
    assert ("not in its history" in caveats) == (mode == HISTORY)


@pytest.mark.parametrize("mode", [KEEP_DELETED, HISTORY])
def test_a_load_that_would_lose_rows_is_refused(
    database: Database, tmp_path: Path, mode: Mode, own_format: str
) -> None:
    writes = Writes(database, 7)
    writes.write(10)
    more = STREAMED | to_copy(tmp_path, mode)
    replicate(database, tmp_path, **more)
    before = last_cut(tmp_path)
    change_schema(database, "ALTER TABLE T DROP COLUMN Text")
    change_schema(database, "ALTER TABLE T ADD COLUMN Text INT64")
    with pytest.raises(ReplicaError, match="rename the folder of the copy"):
        replicate(database, tmp_path, **more)
    assert last_cut(tmp_path) == before
    (tmp_path / "T").rename(tmp_path / "T-old")
    replicate(database, tmp_path, **more)
    assert_equal(database, tmp_path)


@pytest.mark.parametrize("mode", [KEEP_DELETED, HISTORY])
def test_a_table_that_was_left_out_for_a_while_does_not_lose_rows(
    database: Database, tmp_path: Path, mode: Mode, own_format: str
) -> None:
    """Cuts of meanwhile do not list its copy, and changes may have been missed."""
    more = STREAMED | to_copy(tmp_path, mode)
    copy_first(database, tmp_path, 3, more)
    with database.batch() as batch:
        batch.delete("T", KeySet(keys=[[0]]))
    replicate(database, tmp_path, **more)
    for tables in (["T", "U"], ["U"]):
        with database.batch() as batch:
            batch.insert("U", NAMES, [(str(tables), 1, "a")])
        replicate(database, tmp_path, **more | {"tables": tables})
    with pytest.raises(ReplicaError, match="rename the folder of the copy"):
        replicate(database, tmp_path, **more)
    copy = open_copies(own_format, str(tmp_path), CONSUMER)("T")
    state = copy.read_state()
    assert state is not None
    assert isinstance(copy, KeepingCopy)
    rows = pa.Table.from_batches(copy.scan_all(state.version))
    assert 0 in rows.column("Id").to_pylist(), "only the copy has it"


def test_another_mode_of_a_copy_is_refused(
    database: Database, tmp_path: Path, own_format: str
) -> None:
    for made in MODES:
        folder = tmp_path / made
        replicate(database, folder, **STREAMED, **to_copy(folder, made), create_folders=True)
        before = last_cut(folder)
        for other in MODES:
            if other != made:
                with pytest.raises(ConfigurationError, match=f"use --mode {made}, or another"):
                    replicate(database, folder, **STREAMED, **to_copy(folder, other))
        assert last_cut(folder) == before
        assert set(read_all(folder).column_names).issuperset(COLUMNS[made])


@pytest.mark.parametrize(
    ("replica", "advice"),
    [
        ({"to": "parquet:/x", "engine": "spark", "mode": "history"}, "in Delta or Iceberg"),
        ({"to": "parquet:/x", "mode": "history"}, "this process does not write parquet"),
        ({"to": "delta:/x", "mode": "history", "merge": "copy-on-write"}, "merged on read"),
        ({"to": "delta:/x", "mode": "history", "dropped_columns": "load"}, "keeps columns"),
        ({"to": "delta:/x", "mode": "all"}, "'latest', 'keep-deleted' or 'history'"),
    ],
)
def test_what_has_no_modes_refuses_them(replica: Mapping[str, str], advice: str) -> None:
    with pytest.raises(ConfigurationError, match=advice):
        parse_watch_config({"database": "projects/p/instances/i/databases/d", "replica": replica})


@pytest.mark.parametrize("mode", [KEEP_DELETED, HISTORY])
def test_repairs_keep_what_was(
    database: Database, tmp_path: Path, mode: Mode, own_format: str
) -> None:
    """Others have removed a row from the copy, and changed one; the replicator builds on that."""
    more = STREAMED | to_copy(tmp_path, mode)
    copy_first(database, tmp_path, 4, more)
    with database.batch() as batch:
        batch.delete("T", KeySet(keys=[[0]]))
    replicate(database, tmp_path, **more)
    (spoil_iceberg if own_format == ICEBERG else spoil_delta)(tmp_path)
    with database.batch() as batch:
        batch.insert("T", NAMES, [(9, 9, "a")])
    (report,) = replicate(database, tmp_path, **more)
    assert not report.cut.exact
    copies = open_copies(own_format, str(tmp_path), CONSUMER)
    lease = LeasePlace(address_of(database), "SpannerWatcherPositions")
    queries = QueryClient(address_of(database))
    repair_replica(queries, copies, Manifest(str(tmp_path)), RepairOptions(("T",)), lease)
    assert_equal(database, tmp_path)
    assert sorted(row["Version"] for row in read_rows(tmp_path, "T")) == [1, 2, 3, 9]
    rows = read_all(tmp_path).to_pylist()
    assert {row["Id"] for row in rows} == {0, 1, 2, 3, 9}, "the deleted one is there"
    if mode == HISTORY:
        wrong = next(row for row in rows if row["Version"] == 77)
        assert to_micros(wrong["_valid_to"]) == last_cut(tmp_path).end


def spoil_delta(folder: Path) -> None:
    table = open_table(folder, "T")
    table.delete("Id = 1")
    table.update({"Version": "77"}, predicate="Id = 2")


def spoil_iceberg(folder: Path) -> None:
    table = iceberg_histories.open_table(folder, "T")
    rows = table.scan(row_filter="Id == 2").to_arrow()
    table.delete("Id == 1 or Id == 2")
    place = rows.column_names.index("Version")
    table.append(rows.set_column(place, rows.field(place), [[77]]))


def test_the_listing_of_histories_reads_one(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    database = create_database("CREATE TABLE Singers (Id INT64) PRIMARY KEY (Id)", STREAM)
    more = STREAMED | {"tables": ["Singers"]} | to_copy(tmp_path, HISTORY)
    replicate(database, tmp_path, **more)
    with database.batch() as batch:
        batch.insert("Singers", ("Id",), [(1,)])
    there = batch.committed
    with database.batch() as batch:
        batch.delete("Singers", KeySet(keys=[[1]]))
    replicate(database, tmp_path, **more)
    (listing,) = [
        each for each in ALL if each.mark.endswith("test_the_listing_of_histories_reads_one")
    ]
    names: dict[str, Any] = {}
    text = listing.text.replace("/lake/music-history", str(tmp_path))
    exec(text.replace("2026-01-31T12:00:00Z", there.isoformat()), names)
    assert names["music"].timestamp == there
    assert names["music"].read("Singers").column("Id").to_pylist() == [1]
    everything = names["music"].read("Singers", all_rows=True)
    assert sorted(everything.column("_operation").to_pylist()) == ["DELETE", "INSERT"]


@pytest.mark.parametrize("mode", [KEEP_DELETED, HISTORY])
def test_a_history_takes_no_later_row_for_an_earlier_version(
    create_database: CreateDatabase, tmp_path: Path, faults: Callable[..., None], mode: Mode
) -> None:
    """Where Spanner keeps the version no more. A copy of what is there now needs it not."""
    stream = "CREATE CHANGE STREAM S FOR T OPTIONS (value_capture_type = 'OLD_AND_NEW_VALUES')"
    database = create_database(*TABLES, stream)
    more = STREAMED | {"tables": ["T"]} | to_copy(tmp_path, mode)
    copy_first(database, tmp_path, 3, more)
    for column, value in (("Version", 10), ("Text", "late")):
        with database.batch() as batch:
            batch.update("T", ("Id", column), [(1, value)])
    faults(versions_kept_seconds=0.5)
    await_expiry(database, "T", to_micros(batch.committed))
    if mode == HISTORY:
        before = last_cut(tmp_path).end
        with pytest.raises(ReplicaError, match="rename the folder of the copy"):
            replicate(database, tmp_path, **more)
        assert last_cut(tmp_path).end == before
        (tmp_path / "T").rename(tmp_path / "T-old")
    else:
        replicate(database, tmp_path, **more)
    faults()
    replicate(database, tmp_path, **more)
    assert_equal(database, tmp_path)
