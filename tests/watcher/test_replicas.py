"""Replicas equal Spanner at every exact cut: loads, changes, schemas, clearing, cuts, restarts."""

from __future__ import annotations

import json
import shutil
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fixtures.changing_schemas import change_schema, watchable_ddl
from fixtures.changing_schemas import write as write_table
from fixtures.consumers import clear
from fixtures.replicas import (
    CONSUMER,
    assert_equal,
    last_cut,
    list_commits,
    make_replicator,
    read_rows,
    replicate,
    verify_folder,
)
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, capture_of, fetch_now, make_watchable, write_singers
from fixtures.watcher_threads import SECONDS_MAX
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.strategies import Strategy
from watcher.captures import TableRows
from watcher.model.errors import ConfigurationError, ReplicaError
from watcher.model.window import Window
from watcher.replica.copies import TableCopy
from watcher.replica.cuts.cut import DELTA, Cause, Cut, Reason, TableCut, describe_table
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.delta.copy import open_delta_copies
from watcher.replica.reading import as_of
from watcher.replica.replica_window import CutReport
from watcher.replica.sink import ReplicaSink
from watcher.replica.target import ReplicaTarget

HOUR = 3_600_000_000
STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'OLD_AND_NEW_VALUES')"


def names_of(folder: Path, table: str = "Singers") -> dict[Any, Any]:
    return {row["SingerId"]: row["LastName"] for row in read_rows(folder, table)}


@pytest.mark.usefixtures("own_format")
def test_rows_from_before_watching_are_loaded_and_then_followed(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    database = create_database(SINGERS)
    write_singers(database, range(5), "old")
    make_watchable(database)
    (first,) = replicate(database, tmp_path)
    assert (first.loaded, first.merged) == ({"Singers": 5}, {})
    assert {row["_spanner_commit_timestamp"] for row in read_rows(tmp_path, "Singers")} == {None}
    write_singers(database, range(3, 7), "new")
    (second,) = replicate(database, tmp_path)
    assert (second.loaded, second.merged) == ({}, {"Singers": 4})
    expected = dict.fromkeys(range(3), "old") | dict.fromkeys(range(3, 7), "new")
    assert names_of(tmp_path) == expected
    assert_equal(database, tmp_path)
    assert_equal(database, tmp_path, first.cut)


def test_a_run_without_changes_commits_nothing_and_advances_the_cut(
    singers: Database, tmp_path: Path
) -> None:
    write_singers(singers, range(5), "name")
    (first,) = replicate(singers, tmp_path)
    commits = list_commits(tmp_path, "Singers")
    (second,) = replicate(singers, tmp_path)
    assert second.cut.end > first.cut.end
    assert second.cut.tables == first.cut.tables
    assert list_commits(tmp_path, "Singers") == commits


@pytest.mark.usefixtures("own_format")
def test_a_window_that_comes_again_commits_nothing(singers: Database, tmp_path: Path) -> None:
    write_singers(singers, range(5), "name")
    (first,) = replicate(singers, tmp_path)
    write_singers(singers, range(2), "other")
    replicate(singers, tmp_path)
    commits = len(list_commits(tmp_path, "Singers"))
    move_position_back(singers, first.cut.end)
    (again,) = replicate(singers, tmp_path)
    assert again.cut.exact
    assert len(list_commits(tmp_path, "Singers")) == commits
    assert_equal(singers, tmp_path)


def move_position_back(database: Database, end: int) -> None:
    """As if the replicator had been killed before it saved its position."""
    with database.batch() as batch:
        columns = ("Consumer", "WatchedTable", "Position")
        moment = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=end)
        batch.update("SpannerWatcherPositions", columns, [(CONSUMER, "Singers", moment)])


@pytest.mark.usefixtures("own_format")
def test_a_folder_that_was_lost_is_loaded_again(singers: Database, tmp_path: Path) -> None:
    write_singers(singers, range(5), "name")
    replicate(singers, tmp_path)
    shutil.rmtree(tmp_path / "Singers")
    write_singers(singers, [1], "other")
    (report,) = replicate(singers, tmp_path)
    assert report.loaded == {"Singers": 5}
    assert_equal(singers, tmp_path)


def test_cuts_from_before_a_copy_was_lost_are_refused(singers: Database, tmp_path: Path) -> None:
    """Delta counts the versions of the new copy from the beginning."""
    write_singers(singers, range(5), "name")
    (first,) = replicate(singers, tmp_path)
    shutil.rmtree(tmp_path / "Singers")
    write_singers(singers, [1], "other")
    (second,) = replicate(singers, tmp_path)
    assert first.cut.tables["Singers"].version == second.cut.tables["Singers"].version
    moment = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=first.cut.end)
    with pytest.raises(ReplicaError, match=r"removed and loaded again.*use a later cut"):
        as_of(str(tmp_path), moment).read("Singers")
    with pytest.raises(ReplicaError, match="removed and loaded again"):
        verify_folder(singers, tmp_path, first.cut)


@pytest.mark.usefixtures("own_format")
def test_a_restored_backup_is_loaded_again(singers: Database, tmp_path: Path) -> None:
    lake, backup = tmp_path / "lake", tmp_path / "backup"
    write_singers(singers, range(5), "name")
    replicate(singers, lake)
    shutil.copytree(lake, backup)
    write_singers(singers, range(3), "missing in the backup")
    replicate(singers, lake)
    shutil.rmtree(lake)
    shutil.copytree(backup, lake)
    (report,) = replicate(singers, lake)
    assert report.loaded == {"Singers": 5}
    assert_equal(singers, lake)


def test_a_folder_of_another_consumer_or_database_is_refused(
    singers: Database, tmp_path: Path
) -> None:
    replicate(singers, tmp_path)
    with pytest.raises(ConfigurationError, match=rf"{singers.name} by.*'other'.*--take-over"):
        replicate(singers, tmp_path, consumer="other")


@pytest.mark.parametrize("strategy", [Strategy.AUTOMATIC, Strategy.PROCESSED])
@pytest.mark.usefixtures("own_format")
def test_rows_whose_timestamp_was_cleared_stay_equal(
    create_database: CreateDatabase, tmp_path: Path, strategy: Strategy
) -> None:
    database = create_database(SINGERS)
    make_watchable(database, strategy=strategy)
    write_singers(database, range(6), "first")
    replicate(database, tmp_path)
    write_singers(database, range(3), "second")
    replicate(database, tmp_path)
    clear(database)
    replicate(database, tmp_path)
    assert_equal(database, tmp_path)
    (table,) = verify_folder(database, tmp_path).tables
    assert table.uncompared
    shutil.rmtree(tmp_path / "Singers")  # the next load sees cleared timestamps
    replicate(database, tmp_path)
    with database.batch() as batch:
        processed = [("Processed", False)] if strategy is Strategy.PROCESSED else []
        columns = ["SingerId", "LastName", *(name for name, _ in processed)]
        rows = [[key, "third", *(value for _, value in processed)] for key in range(2)]
        batch.update("Singers", columns, rows)
    replicate(database, tmp_path)
    assert names_of(tmp_path)[0] == "third"
    assert_equal(database, tmp_path)


def test_soft_deleted_rows_leave_the_copy(create_database: CreateDatabase, tmp_path: Path) -> None:
    database = create_database(
        "CREATE TABLE Singers (SingerId INT64, LastName STRING(MAX), Gone BOOL)"
        " PRIMARY KEY (SingerId)"
    )
    make_watchable(database)
    more = {"table": {"Singers": {"deleted": "Gone"}}}
    with database.batch() as batch:
        rows = [(1, "a", None), (2, "b", True), (3, "c", False)]
        batch.insert("Singers", ("SingerId", "LastName", "Gone"), rows)
    replicate(database, tmp_path, **more)
    assert names_of(tmp_path) == {1: "a", 3: "c"}
    with database.batch() as batch:
        batch.update("Singers", ("SingerId", "Gone"), [(1, True), (2, False)])
    replicate(database, tmp_path, **more)
    assert names_of(tmp_path) == {2: "b", 3: "c"}
    assert_equal(database, tmp_path)


def test_a_deleted_row_that_polling_does_not_see_is_found(
    singers: Database, tmp_path: Path
) -> None:
    write_singers(singers, range(20), "name")
    replicate(singers, tmp_path)
    with singers.batch() as batch:
        batch.delete("Singers", KeySet(keys=[[7]]))
    replicate(singers, tmp_path)
    (table,) = verify_folder(singers, tmp_path).tables
    assert [(each.kind.value, each.key) for each in table.differences] == [
        ("extra", {"SingerId": 7})
    ]


@pytest.mark.usefixtures("own_format")
def test_deletes_of_a_change_stream_are_replicated(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    database = create_database(SINGERS, STREAM)
    more = {"capture": "change-stream", "tables": ["Singers"]}
    write_singers(database, range(10), "loaded")
    replicate(database, tmp_path, **more)
    for number in range(3):
        write_singers(database, range(5, 12), f"version {number}")
        with database.batch() as batch:
            batch.delete("Singers", KeySet(keys=[[3], [6], [8]]))
        write_singers(database, [8], "back")
        with database.batch() as batch:
            batch.insert_or_update(
                "Singers", ("SingerId", "FirstName", "Picture"), [(9, "x", b"AA==")]
            )
    (report,) = replicate(database, tmp_path, **more)
    assert report.loaded == {}
    assert_equal(database, tmp_path)
    assert sorted(names_of(tmp_path)) == [0, 1, 2, 4, 5, 7, 8, 9, 10, 11]


@pytest.mark.usefixtures("own_format")
def test_columns_that_change_in_the_middle(create_database: CreateDatabase, tmp_path: Path) -> None:
    database = create_database(*watchable_ddl("T"))
    change_schema(database, "ALTER TABLE T ADD COLUMN Name STRING(10)")
    write_table(database, *range(6), Name="short")
    replicate(database, tmp_path, tables=["T"])
    steps = [
        "ALTER TABLE T ADD COLUMN Added STRING(MAX)",
        "ALTER TABLE T ADD COLUMN Filled STRING(MAX) DEFAULT ('default')",
        "ALTER TABLE T ADD COLUMN Made INT64 AS (Id * 2) STORED",
        "ALTER TABLE T ALTER COLUMN Name STRING(MAX)",
        "ALTER TABLE T ALTER COLUMN Name BYTES(MAX)",
        "ALTER TABLE T DROP COLUMN Added",
        "ALTER TABLE T DROP COLUMN Name",
        "ALTER TABLE T ADD COLUMN Name STRING(MAX)",
    ]
    for number, step in enumerate(steps):
        write_table(database, 1, Version=number)
        change_schema(database, step)
        replicate(database, tmp_path, tables=["T"])
        assert_equal(database, tmp_path)
        write_table(database, 2, 100 + number, Version=number)
        replicate(database, tmp_path, tables=["T"])
        assert_equal(database, tmp_path)
    (row,) = [row for row in read_rows(tmp_path, "T") if row["Id"] == 1]
    assert (row["Filled"], row["Made"], row["Name"]) == ("default", 2, None)


def test_columns_that_change_while_it_runs(create_database: CreateDatabase, tmp_path: Path) -> None:
    """A backlog over changes of the schema: each window has the columns of its end."""
    database = create_database(*watchable_ddl("T"))
    write_table(database, *range(4), Version=0)
    replicate(database, tmp_path, tables=["T"])
    write_table(database, 1, Version=1)
    change_schema(database, "ALTER TABLE T ADD COLUMN Filled STRING(MAX) DEFAULT ('default')")
    write_table(database, 2, 3, Version=2)
    change_schema(
        database, "ALTER TABLE T DROP COLUMN Filled", "ALTER TABLE T ADD COLUMN More INT64"
    )
    write_table(database, 3, Version=3, More=3)
    for report in replicate(database, tmp_path, tables=["T"], max_rows=1):
        assert report.cut.exact
        assert_equal(database, tmp_path, report.cut)


@pytest.mark.usefixtures("own_format")
def test_a_table_that_is_dropped_and_made_again(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    database = create_database(*watchable_ddl("T"), *watchable_ddl("U"))
    write_table(database, 1, 2, Version=1)
    write_table(database, 1, table="U", Version=1)
    replicate(database, tmp_path)
    change_schema(database, "DROP INDEX TByTime", "DROP TABLE T")
    write_table(database, 2, table="U", Version=1)
    replicate(database, tmp_path)
    assert set(last_cut(tmp_path).tables) == {"U"}
    assert_equal(database, tmp_path)
    change_schema(database, *watchable_ddl("T"))
    write_table(database, 7, Version=7)
    replicate(database, tmp_path)
    assert [row["Id"] for row in read_rows(tmp_path, "T")] == [7]
    assert_equal(database, tmp_path)


def test_a_table_that_is_made_again_while_nothing_runs_is_loaded_again(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    database = create_database(*watchable_ddl("T"), *watchable_ddl("U"))
    write_table(database, 1, 2, Version=1)
    replicate(database, tmp_path)
    change_schema(database, "DROP INDEX TByTime", "DROP TABLE T", *watchable_ddl("T"))
    write_table(database, 7, Version=7)
    replicate(database, tmp_path)
    assert [row["Id"] for row in read_rows(tmp_path, "T")] == [7]
    assert_equal(database, tmp_path)
    (report,) = replicate(database, tmp_path)
    assert report.loaded == {}


def test_a_table_of_a_change_stream_that_is_made_again_is_loaded_again(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    database = create_database(SINGERS, "CREATE CHANGE STREAM Changes FOR ALL")
    more = {"capture": "change-stream", "tables": ["Singers"], "stream": {"name": "Changes"}}
    write_singers(database, range(3), "before")
    replicate(database, tmp_path, **more)
    change_schema(database, "DROP TABLE Singers", SINGERS)
    write_singers(database, [7], "after")
    replicate(database, tmp_path, **more)
    assert sorted(names_of(tmp_path)) == [7]
    assert_equal(database, tmp_path)


def test_a_table_that_is_made_again_while_it_is_left_out_is_loaded_again(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    """The last cut does not list the copy, which is at the table's position."""
    ddl = *watchable_ddl("T"), *watchable_ddl("U")
    database = create_database(*ddl, "CREATE CHANGE STREAM S FOR ALL")
    more = {"capture": "change-stream", "stream": {"name": "S"}}
    for version in range(2):
        write_table(database, 1, 2, Version=version)
        replicate(database, tmp_path, tables=["T", "U"], **more)
    write_table(database, 1, table="U", Version=1)
    replicate(database, tmp_path, tables=["U"], **more)
    change_schema(database, "DROP INDEX TByTime", "DROP TABLE T", *watchable_ddl("T"))
    write_table(database, 7, Version=7)
    (report,) = replicate(database, tmp_path, tables=["T", "U"], **more)
    assert report.loaded == {"T": 1}
    assert_equal(database, tmp_path)


def test_a_table_that_joins_with_a_backlog_does_not_disturb_the_others(
    music: Database, tmp_path: Path
) -> None:
    write_singers(music, range(5), "name")
    replicate(music, tmp_path, tables=["Singers"])
    old = datetime.now(UTC) - timedelta(hours=3)
    with music.batch() as batch:
        rows = [(key, old + timedelta(seconds=key)) for key in range(12)]
        batch.insert("Albums", ("AlbumId", "LastModified"), rows)
    replicate(music, tmp_path, tables=["Singers", "Albums"], start="latest", max_rows=5)
    write_singers(music, range(2), "other")
    replicate(music, tmp_path, tables=["Singers", "Albums"], max_rows=5)
    assert set(last_cut(tmp_path).tables) == {"Singers", "Albums"}
    assert_equal(music, tmp_path)
    loads = [each for each in list_commits(tmp_path, "Singers") if each["operation"] == "WRITE"]
    assert len(loads) == 1


def make_sink(database: Database, folder: Path, reports: list[CutReport]) -> ReplicaSink:
    target = ReplicaTarget(
        open_delta_copies(str(folder), CONSUMER), Manifest(str(folder)), HOUR, DELTA
    )
    return ReplicaSink(database.name, CONSUMER, target, lambda: None, reports.append)


def test_a_window_that_was_read_strongly_makes_no_exact_cut(
    singers: Database, tmp_path: Path
) -> None:
    """The replicator was away for longer than version_retention_period."""
    capture = capture_of(singers)
    copy: TableCopy = open_delta_copies(str(tmp_path), CONSUMER)("Singers")
    reports: list[CutReport] = []
    sink = make_sink(singers, tmp_path, reports)
    now = fetch_now(singers)
    start, end = now - 3 * HOUR, now - 2 * HOUR
    state = copy.load(make_schema(capture), [], start)
    cut = Cut(
        singers.name,
        CONSUMER,
        start,
        {"Singers": describe_table(capture.table, state.version)},
    )
    Manifest(str(tmp_path)).write(cut)
    write_singers(singers, range(3), "too new for the window")
    sink.begin_window(end, {"Singers": start}, {"Singers": capture})
    sink.flush()
    assert [report.cut.exact for report in reports] == [False]
    stored = Manifest(str(tmp_path)).read_last()
    assert stored is not None
    assert stored.exact_from >= now
    later = fetch_now(singers)
    restarted = make_sink(singers, tmp_path, reports)
    restarted.begin_window(later, {"Singers": end}, {"Singers": capture})
    for part in capture.plan(Window(end, later)):
        for rows in capture.read(part):
            restarted.write(rows)
    restarted.flush()
    assert reports[-1].cut.exact
    assert_equal(singers, tmp_path)


def make_schema(capture: Any) -> Any:
    schema = capture.schema
    return schema.remove(schema.get_field_index("_shard_id"))


def test_a_table_that_is_too_old_to_load_is_ahead_until_windows_reach_it(
    singers: Database, tmp_path: Path
) -> None:
    write_singers(singers, range(3), "name")
    capture = capture_of(singers)
    reports: list[CutReport] = []
    sink = make_sink(singers, tmp_path, reports)
    start = fetch_now(singers) - 3 * HOUR
    sink.begin_window(start + HOUR, {"Singers": start}, {"Singers": capture})
    sink.flush()
    assert (reports[-1].cut.exact, reports[-1].loaded) == (False, {"Singers": 3})
    sink.begin_window(fetch_now(singers), {"Singers": start + HOUR}, {"Singers": capture})
    sink.flush()
    assert (reports[-1].cut.exact, reports[-1].loaded) == (True, {})
    assert_equal(singers, tmp_path)


def test_copies_that_are_ahead_make_a_cut_inexact(singers: Database, tmp_path: Path) -> None:
    """After a crash between a merge and its cut, a restart may choose an earlier end."""
    capture = capture_of(singers)
    reports: list[CutReport] = []
    sink = make_sink(singers, tmp_path, reports)
    ends = [fetch_now(singers)]
    sink.begin_window(ends[0], {"Singers": ends[0] - 1}, {"Singers": capture})
    sink.flush()
    for number in range(2):
        write_singers(singers, range(number + 1), f"version {number}")
        ends.append(fetch_now(singers))
    hand_over(sink, capture, Window(ends[0], ends[2]))
    (tmp_path / "_cuts" / f"{ends[2]:020d}.json").unlink()  # killed before the cut
    restarted = make_sink(singers, tmp_path, reports)
    hand_over(restarted, capture, Window(ends[0], ends[1]))
    assert [report.cut.exact for report in reports] == [True, True, False]
    hand_over(restarted, capture, Window(ends[1], ends[2]))
    assert reports[-1].cut.exact
    assert_equal(singers, tmp_path)


def hand_over(sink: ReplicaSink, capture: Any, window: Window) -> None:
    sink.begin_window(window.end, {"Singers": window.start}, {"Singers": capture})
    for part in capture.plan(window):
        for rows in capture.read(part):
            assert isinstance(rows, TableRows)
            sink.write(replace(rows))
    sink.flush()


@pytest.mark.usefixtures("own_format")
def test_readers_ask_for_a_time_and_get_the_cut_before_it(
    singers: Database, tmp_path: Path
) -> None:
    with pytest.raises(ReplicaError, match="no exact cut yet"):
        as_of(f"delta:{tmp_path}")
    write_singers(singers, [1], "first")
    (first,) = replicate(singers, tmp_path)
    between = fetch_now(singers)
    write_singers(singers, [1], "second")
    replicate(singers, tmp_path)
    moment = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=between)
    old = as_of(f"delta:{tmp_path}", moment)
    assert old.cut == first.cut
    assert old.read("Singers", ["LastName"]).to_pylist() == [{"LastName": "first"}]
    assert as_of(f"delta:{tmp_path}").read("Singers").to_pylist()[0]["LastName"] == "second"
    with pytest.raises(ReplicaError, match="no exact cut at or before 2001"):
        as_of(f"delta:{tmp_path}", "2001-01-01T00:00:00Z")
    with pytest.raises(ReplicaError, match="it has: Singers"):
        old.read("Albums")


def test_old_cuts_are_removed_but_the_last_exact_one(tmp_path: Path) -> None:
    manifest = Manifest(str(tmp_path))
    ahead = Reason(Cause.AHEAD, "the copy is at 40 already")
    for end in (10, 20, 30):
        manifest.write(Cut("d", "c", end, reasons=(ahead,) if end == 30 else ()))
    manifest.remove_before(25)
    assert [name.name for name in sorted((tmp_path / "_cuts").iterdir())] == [
        f"{end:020d}.json" for end in (20, 30)
    ]


def test_a_cut_says_why_it_is_not_exact_also_one_of_another_release() -> None:
    reason = Reason(Cause.OUTSIDE_WRITE, "version 8 is an UPDATE by somebody else", 8)
    marked = Cut("d", "c", 10, {"T": TableCut(8, ("Id",), reasons=(reason,))})
    assert not marked.exact
    assert marked.explain() == "T: version 8 is an UPDATE by somebody else"
    assert Cut.from_text(marked.to_text(), "there") == marked
    newer = Cut.from_text(marked.to_text().replace('"outside-write"', '"moon"'), "there")
    assert newer.tables["T"].reasons == (replace(reason, cause=Cause.NOT_STATED),)
    exact = Cut("d", "c", 10, {"T": TableCut(8, ("Id",))})
    assert Cut.from_text(exact.to_text(), "there") == exact
    stored = json.loads(exact.to_text()) | {"exact": False}
    del stored["reasons"], stored["tables"]["T"]["reasons"]
    older = Cut.from_text(json.dumps(stored), "there")
    assert not older.exact
    assert "stored no reasons" in older.explain()


def test_a_transaction_over_three_tables_is_never_torn(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    names = ("A", "B", "C")
    database = create_database(*(ddl for name in names for ddl in watchable_ddl(name)))
    reports: list[CutReport] = []
    done = threading.Event()
    arrived = threading.Condition()

    def note(report: CutReport) -> None:
        with arrived:
            reports.append(report)
            arrived.notify_all()

    def write_transactions() -> None:
        number = 0
        while not done.is_set():
            number += 1
            with database.batch() as batch:
                for name in names:
                    rows = [(key, number) for key in range(3)]
                    batch.insert_or_update(name, ("Id", "Version"), rows)

    writer = threading.Thread(target=write_transactions)
    replicator = make_replicator(database, tmp_path, note, max_rows=20)
    runner = threading.Thread(target=replicator.run)
    writer.start()
    runner.start()
    try:
        with arrived:
            assert arrived.wait_for(
                lambda: sum(len(each.merged) == len(names) for each in reports) >= 8, SECONDS_MAX
            ), reports
    finally:
        done.set()
        replicator.stop()
        writer.join(SECONDS_MAX)
        runner.join(SECONDS_MAX)
    cuts = [report.cut for report in reports if report.cut.exact]
    assert len(cuts) >= 8
    for cut in cuts:
        replica = as_of(
            f"delta:{tmp_path}", datetime.fromtimestamp(0, UTC) + timedelta(microseconds=cut.end)
        )
        versions = {row["Version"] for name in names for row in replica.read(name).to_pylist()}
        assert len(versions) <= 1, "all rows of all tables are of one transaction"
    assert_equal(database, tmp_path, cuts[-1])
