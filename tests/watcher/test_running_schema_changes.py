"""A replicator that runs while tables are renamed, swapped, and columns get other types: each cut
that says that it is exact is, and a table is loaded again only where its rows may be others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from fixtures.changing_schemas import change_schema, watchable_ddl, write_everywhere
from fixtures.changing_schemas import write as write_table
from fixtures.replicas import (
    assert_equal,
    make_replicator,
    open_table,
    read_delta,
    replicate,
    verify_folder,
)
from fixtures.server import CreateDatabase
from google.cloud.spanner_v1.database import Database

from watcher.replica import replaced_copies
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.replica_window import CutReport

STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'NEW_ROW')"
CAPTURES: Mapping[str, dict[str, Any]] = {
    "polled": {"tables": ["*"]},
    "streamed": {"tables": ["*"], "capture": "change-stream", "stream": {"name": "S"}},
}
CUTS_MAX = 60


def follow(
    database: Database, folder: Path, capture: str, act: Callable[[], object], last: str
) -> list[CutReport]:
    """The cuts of one process from the first one on, after which it acts, up to the first exact one
    whose table ``last`` has a row that was written then."""
    seen: list[CutReport] = []

    def look(report: CutReport) -> None:
        seen.append(report)
        if report.cut.exact:
            assert_equal(database, folder, report.cut)
        if len(seen) == 1:
            act()
        if len(seen) > CUTS_MAX or (len(seen) > 1 and has_marker(report)):
            following.stop()

    def has_marker(report: CutReport) -> bool:
        described = report.cut.tables.get(last)
        if described is None or not report.cut.exact:
            return False
        rows = read_delta(open_table(folder, last))
        return MARKER in rows.column("Id").to_pylist()

    following = make_replicator(database, folder, look, **CAPTURES[capture], refresh="50ms")
    following.run()
    assert len(seen) <= CUTS_MAX
    assert seen[-1].cut.exact
    return seen


MARKER = 999


def loaded(cuts: list[CutReport]) -> set[str]:
    """The tables that were loaded after the first cut."""
    return {name for report in cuts[1:] for name in report.loaded}


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize(
    ("statement", "again"),
    [
        ("ALTER TABLE A ALTER COLUMN Name STRING(MAX)", set()),
        ("ALTER TABLE A ALTER COLUMN Name STRING(10) NOT NULL", set()),
        ("ALTER TABLE A ALTER COLUMN Name SET DEFAULT ('x')", set()),
        ("ALTER TABLE A ALTER COLUMN Name BYTES(MAX)", {"A"}),
    ],
)
def test_columns_of_other_types_through_a_running_replica(
    create_database: CreateDatabase, tmp_path: Path, capture: str, statement: str, again: set[str]
) -> None:
    database = create_database(
        *watchable_ddl("A"), "ALTER TABLE A ADD COLUMN Name STRING(10)", STREAM
    )
    write_table(database, *range(6), table="A", Name="short")

    def act() -> None:
        change_schema(database, statement)
        longer = b"bGF0ZXI=" if "BYTES" in statement else "later"
        write_table(database, 2, MARKER, table="A", Name=longer)

    cuts = follow(database, tmp_path, capture, act, "A")
    assert loaded(cuts) == again


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_table_is_renamed_while_it_is_replicated(
    create_database: CreateDatabase, tmp_path: Path, capture: str
) -> None:
    database = create_database(*watchable_ddl("A"), *watchable_ddl("B"), STREAM)
    write_everywhere(database, ["A", "B"], 1)

    def act() -> None:
        change_schema(database, "ALTER TABLE A RENAME TO C")
        write_table(database, 2, MARKER, table="C", Version=2)

    cuts = follow(database, tmp_path, capture, act, "C")
    assert loaded(cuts) == {"C"}
    assert sorted(cuts[-1].cut.tables) == ["B", "C"]
    assert open_table(tmp_path, "A").version() >= 1, "the folder of the old name stays"


REPLACEMENTS = {
    "swapped": ["RENAME TABLE A TO X, B TO A, X TO B"],
    "made again": ["DROP INDEX AByTime", "DROP TABLE A", *watchable_ddl("A")],
}


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("what", REPLACEMENTS)
def test_another_table_has_the_name_while_it_is_replicated(
    create_database: CreateDatabase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capture: str,
    what: str,
) -> None:
    """With the same columns: nothing in the schema says it, and no change."""
    monkeypatch.setattr(replaced_copies, "LOOK_SECONDS", 0.0)
    database = create_database(*watchable_ddl("A"), *watchable_ddl("B"), STREAM)
    write_table(database, *range(6), table="A", Version=1)
    write_table(database, *range(20, 30), table="B", Version=2)

    def act() -> None:
        change_schema(database, *REPLACEMENTS[what])
        write_table(database, MARKER, table="A", Version=3)

    cuts = follow(database, tmp_path, capture, act, "A")
    assert "A" in loaded(cuts)


def test_cuts_that_were_written_before_it_was_seen_are_not_exact(
    create_database: CreateDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked every minute: what was said meanwhile is taken back."""
    database = create_database(*watchable_ddl("A"), *watchable_ddl("B"), STREAM)
    write_table(database, *range(6), table="A", Version=1)
    write_table(database, *range(20, 30), table="B", Version=2)
    seen: list[CutReport] = []

    def look(report: CutReport) -> None:
        seen.append(report)
        if len(seen) == 1:
            change_schema(database, *REPLACEMENTS["swapped"])
            write_table(database, MARKER, table="A", Version=3)
        elif report.loaded or len(seen) > CUTS_MAX:
            following.stop()
        elif "A" in report.merged:
            monkeypatch.setattr(replaced_copies, "LOOK_SECONDS", 0.0)

    following = make_replicator(database, tmp_path, look, **CAPTURES["streamed"], refresh="50ms")
    following.run()
    assert set(seen[-1].loaded) == {"A", "B"}
    lies = [report.cut for report in seen[1:-1] if report.cut.exact]
    assert lies, "until it was seen"
    exact = {cut.end for cut in Manifest(str(tmp_path)).iterate_exact()}
    assert exact == {seen[0].cut.end, seen[-1].cut.end}
    assert_equal(database, tmp_path)


def test_a_replicator_that_ended_before_it_looked_is_followed_by_one_that_sees_it(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    database = create_database(*watchable_ddl("A"), *watchable_ddl("B"), STREAM)
    write_table(database, *range(6), table="A", Version=1)
    seen: list[CutReport] = []

    def look(report: CutReport) -> None:
        seen.append(report)
        if len(seen) == 1:
            change_schema(database, *REPLACEMENTS["swapped"])
            write_table(database, MARKER, table="A", Version=3)
        elif "A" in report.merged or len(seen) > CUTS_MAX:
            following.stop()

    following = make_replicator(database, tmp_path, look, **CAPTURES["streamed"], refresh="50ms")
    following.run()
    assert not verify_folder(database, tmp_path).equal, "its last cut is wrong"
    planned = make_replicator(database, tmp_path, **CAPTURES["streamed"]).plan()
    assert {plan.table for plan in planned if plan.action == "load"} == {"A", "B"}
    (report,) = replicate(database, tmp_path, **CAPTURES["streamed"])
    assert set(report.loaded) == {"A", "B"}
    assert_equal(database, tmp_path)
    assert [cut.end for cut in Manifest(str(tmp_path)).iterate_exact()] == [
        report.cut.end,
        seen[0].cut.end,
    ]
