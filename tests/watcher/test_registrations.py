"""Registration by its rules alone, and in each place where positions are kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fixtures.consumers import (
    ALBUMS,
    clear,
    clear_bounds,
    names_by_key,
    watcher_of,
    write,
)
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, make_watchable
from google.cloud.spanner_v1.database import Database
from hypothesis import given
from hypothesis import strategies as st

from watcher import Change
from watcher.captures.progress import BackfillProgress
from watcher.consumers.positions import (
    TABLE,
    BackfillMove,
    FilePositions,
    MemoryPositions,
    Position,
    Positions,
    Registration,
    SpannerPositions,
)
from watcher.consumers.positions.cleared import write_cleared
from watcher.consumers.positions.values import plan_registration
from watcher.model.window import BEGINNING
from watcher.spanner.dialects import GOOGLESQL

TABLES = tuple(f"T{number:02}" for number in range(25))
SOME = st.sampled_from(TABLES[:6])
PLACES = st.integers(BEGINNING, 8)


STORED = ("file", "spanner")


@pytest.fixture(params=["memory", *STORED])
def positions(
    request: pytest.FixtureRequest, tmp_path: Path, create_database: CreateDatabase
) -> Positions:
    if request.param == "memory":
        return MemoryPositions()
    if request.param == "file":
        return FilePositions(tmp_path / "positions")
    kept = SpannerPositions(create_database())
    kept.create()
    return kept


def test_a_registration_is_whole_in_every_place(positions: Positions) -> None:
    positions.save(Position("name", "T03", 7), None)
    filled = frozenset(TABLES[:5])
    starts = dict.fromkeys(TABLES, 5)
    registered = positions.register(Registration("name", starts, filled=filled))
    assert registered.positions == {**starts, "T03": 7} == positions.load_all("name")
    new = filled - {"T03"}
    assert positions.load_backfills("name") == dict.fromkeys(new, BackfillProgress(5, None))
    assert positions.load_all("other") == {}
    again = positions.register(Registration("name", dict.fromkeys(TABLES, 3), backwards=True))
    assert again.positions == dict.fromkeys(TABLES, 3) == positions.load_all("name")


@pytest.mark.parametrize("positions", STORED, indirect=True)
def test_a_registration_that_fails_leaves_nothing(
    positions: Positions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Storing one of the backfills fails, when the positions are written already."""
    real = BackfillProgress.to_text
    calls: list[BackfillProgress] = []

    def fail_late(progress: BackfillProgress) -> str:
        calls.append(progress)
        if len(calls) == len(TABLES):
            raise OSError("no space")
        return real(progress)

    monkeypatch.setattr(BackfillProgress, "to_text", fail_late)
    registration = Registration("name", dict.fromkeys(TABLES, 5), filled=frozenset(TABLES))
    with pytest.raises(OSError, match="no space"):
        positions.register(registration)
    assert (positions.load_all("name"), positions.load_backfills("name")) == ({}, {})
    assert positions.register(registration).moved == dict.fromkeys(TABLES, 5)


# The file of earlier releases.


def old_files(folder: Path) -> FilePositions:
    """A consumer with a backfill under way, as earlier releases kept it in two files."""
    file = folder / "positions"
    row = {"consumer": "name", "table": "Singers", "position": "1970-01-01T00:00:05Z"}
    file.write_text(json.dumps({"version": 1, "positions": [row]}))
    progress = BackfillProgress(5_000_000, ("3",)).to_text()
    (folder / "positions.backfills").write_text(json.dumps({"name": {"Singers": progress}}))
    return FilePositions(file)


UNDER_WAY = BackfillProgress(5_000_000, ("3",))


def test_two_files_of_an_earlier_release_are_read_and_become_one(tmp_path: Path) -> None:
    positions = old_files(tmp_path)
    assert positions.load_all("name") == {"Singers": 5_000_000}
    assert positions.load_backfills("name") == {"Singers": UNDER_WAY}
    positions.register(Registration("name", {"Albums": 9}, filled=frozenset({"Albums"})))
    assert not (tmp_path / "positions.backfills").exists()
    assert positions.load_all("name") == {"Singers": 5_000_000, "Albums": 9}
    expected = {"Singers": UNDER_WAY, "Albums": BackfillProgress(9, None)}
    assert FilePositions(tmp_path / "positions").load_backfills("name") == expected


def test_a_crash_before_the_old_file_goes_does_not_bring_a_backfill_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    positions = old_files(tmp_path)
    done = BackfillMove("Singers", None, UNDER_WAY)

    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", crash)
        with pytest.raises(KeyboardInterrupt):
            positions.save_all([], None, [done], "name")
    assert positions.load_backfills("name") == {}


# The rules.


@st.composite
def registrations(draw: st.DrawFn) -> Registration:
    starts = draw(st.dictionaries(SOME, PLACES, min_size=1))
    some = st.frozensets(st.sampled_from(sorted(starts)))
    cleared_with = draw(st.dictionaries(st.sampled_from(sorted(starts)), st.just("SETS")))
    return Registration("name", starts, draw(some), draw(some), draw(st.booleans()), cleared_with)


@given(
    registration=registrations(),
    kept=st.dictionaries(SOME, PLACES),
    cleared=st.dictionaries(SOME | st.just("SETS"), st.integers(0, 12)),
)
def test_the_rules_of_a_registration(
    registration: Registration, kept: dict[str, int], cleared: dict[str, int]
) -> None:
    plan = plan_registration(registration, kept, cleared)
    starts = registration.starts
    assert plan.positions.keys() == starts.keys()
    assert plan.moved.keys() <= starts.keys()
    for table, at in plan.positions.items():
        gone = registration.cleared_to(table, cleared)
        assert at == plan.moved.get(table, kept.get(table))
        if table in kept:
            assert at == kept[table] or (
                registration.backwards and starts[table] <= at < kept[table]
            )
            assert not registration.backwards or table in registration.now or at <= starts[table]
            assert table not in registration.now or at >= min(kept[table], gone)
        elif table in registration.now:
            assert at >= max(starts[table], gone)
        else:
            assert at == starts[table]
        below = table in plan.moved and BEGINNING < at < gone
        assert plan.cleared.get(table) == (gone if below else None)
    new = starts.keys() - kept.keys()
    assert len({plan.positions[table] for table in new & registration.now}) <= 1
    assert plan.backfills == {
        t: BackfillProgress(plan.positions[t], None) for t in new & registration.filled
    }
    again = plan_registration(registration, {**kept, **plan.positions}, cleared)
    assert (again.moved, again.backfills) == ({}, {})


# What was cleared.


def test_a_table_with_change_sets_begins_above_what_was_cleared_of_those(
    database: Database,
) -> None:
    positions = SpannerPositions(database)
    positions.create()
    database.run_in_transaction(lambda t: write_cleared(t, TABLE, ["SETS"], 50, GOOGLESQL))
    plain = positions.register(Registration("a", {"Songs": 10}, frozenset({"Songs"})))
    assert plain.positions == {"Songs": 10}
    with_sets = Registration(
        "b", {"Songs": 10}, frozenset({"Songs"}), cleared_with={"Songs": "SETS"}
    )
    assert positions.register(with_sets).positions == {"Songs": 50}
    early = Registration("c", {"Songs": 10}, cleared_with={"Songs": "SETS"})
    assert positions.register(early).cleared == {"Songs": 50}


def test_positions_in_another_database_are_registered_and_cleared_behind(
    music: Database, create_database: CreateDatabase
) -> None:
    elsewhere: Database = create_database()
    where = {"database": str(address_of(elsewhere))}
    seen: list[Change] = []
    more = {"consumer": "far", "positions": where, "backfill": ["*"], "start": "latest"}
    write(music, 1, 2)
    watcher_of(music, seen, **more).run_once()
    at = write(music, 2, name="changed")
    watcher_of(music, seen, **more).run_once()
    assert names_by_key(seen) == {1: ["name"], 2: ["name", "changed"]}
    clear(music, positions=elsewhere)
    assert clear_bounds(elsewhere) == {"Singers": at}
    late: list[Change] = []
    watcher_of(music, late, **(more | {"consumer": "late", "backfill": []})).run_once()
    assert SpannerPositions(elsewhere).load_all("late")["Singers"] >= at
    write(music, 3)
    watcher_of(music, late, **(more | {"consumer": "late", "backfill": []})).run_once()
    assert names_by_key(late) == {3: ["name"]}


def test_a_backlog_from_before_a_table_was_watchable_comes_in_bounded_windows(
    create_database: CreateDatabase,
) -> None:
    """The schema at the end of a cut is older than the one it starts with."""
    database: Database = create_database(SINGERS, ALBUMS)
    make_watchable(database, "Singers")
    more = {"consumer": "name", "tables": ["*"], "max_rows": 3}
    watcher_of(database, [], **more).run_once()
    for key in range(12):
        write(database, key)
    make_watchable(database, "Albums")
    seen: list[Change] = []
    watcher_of(database, seen, **more).run_once()
    assert sorted(int(str(change.key["SingerId"])) for change in seen) == list(range(12))
    assert len({change.window.end for change in seen}) >= 4
