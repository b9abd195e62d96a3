"""Merges by deletion vectors: what is read afterwards, by whom, whatever has happened between."""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, TableFeatures
from fixtures.copied_tables import read_delta_files
from fixtures.copy_histories import live_through
from fixtures.named_rows import KEY, content, load_rows, make_rows, measure_merges
from fixtures.replicas import read_delta
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from watcher.model.errors import CopyConflictError, ReplicaError
from watcher.replica.copies import COPY_ON_WRITE, MERGE_ON_READ, Needed
from watcher.replica.delta import merge_on_read
from watcher.replica.delta.copy import DeltaCopy
from watcher.replica.stores.stored_files import create_new

EXAMPLES = int(os.environ.get("COPY_EXAMPLES", "12"))
ROWS = 1_000
Act = Callable[[DeltaTable], object]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "Singers"


@pytest.fixture
def copy(folder: Path) -> DeltaCopy:
    """A thousand rows, loaded at 100."""
    copy = DeltaCopy(str(folder), "c", MERGE_ON_READ)
    load_rows(copy, ROWS)
    return copy


def reopen(folder: Path) -> DeltaCopy:
    """The copy as a restart finds it."""
    copy = DeltaCopy(str(folder), "c", MERGE_ON_READ)
    copy.read_state()
    return copy


# What is read afterwards.


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_random_histories_are_read_by_everyone(small_groups: None, data: st.DataObject) -> None:
    """Plain Python, delta-rs by two ways, polars, and the product."""
    with tempfile.TemporaryDirectory() as folder:
        history = live_through(data, f"{folder}/t", ("nothing", "vacuum"))
        history.check()
        history.expected.assert_equals(read_delta_files(Path(history.place)))


def test_readers_that_skip_files_by_statistics_find_every_row(
    copy: DeltaCopy, folder: Path
) -> None:
    copy.merge(make_rows({5: "five", 2_000: "x" * 40, 7: None}, 1), KEY, 101)
    wanted = {5: "five", 2_000: "x" * 40, 7: None, 8: "n8"}
    for key, name in wanted.items():
        sql = f'SELECT "Name" FROM t WHERE "Id" = {key}'
        by_key = QueryBuilder().register("t", DeltaTable(str(folder))).execute(sql).read_all()
        assert pa.table(by_key).column(0).to_pylist() == ([name] if name else [])
        rows = pl.scan_delta(str(folder)).filter(pl.col("Id") == key).collect()
        assert rows["Name"].to_list() == ([name] if name else [])


def test_a_merge_costs_the_rows_that_change(tmp_path: Path) -> None:
    """However many rows the copy has."""
    written = measure_merges(tmp_path, lambda folder: DeltaCopy(str(folder), "c", MERGE_ON_READ))
    assert written[40_000] < 1.5 * written[2_000]
    assert written[40_000] < 16_384


def test_a_file_without_rows_leaves_the_copy(copy: DeltaCopy, folder: Path) -> None:
    copy.merge(make_rows(dict.fromkeys(range(ROWS)), 1), KEY, 101)
    assert content(folder) == {}
    assert DeltaTable(str(folder)).file_uris() == []
    copy.merge(make_rows({3: "back"}, 2), KEY, 102)
    assert content(folder) == {3: "back"}


# Crashes and conflicts.


class CrashError(Exception):
    """Where a process would have ended."""


@pytest.mark.parametrize(
    "place", ["after-replica-rows", "after-replica-files", "after-replica-commit"]
)
def test_a_crash_leaves_the_copy_as_it_was(
    copy: DeltaCopy, folder: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    copy.merge(make_rows({1: "one"}, 1), KEY, 101)
    before = content(folder)

    def crash(name: str) -> None:
        if name == place:
            raise CrashError

    rows = make_rows({1: "uno", 2: None, ROWS: "new"}, 2)
    monkeypatch.setattr(merge_on_read, "failpoint", crash)
    with pytest.raises(CrashError):
        copy.merge(rows, KEY, 102)
    monkeypatch.undo()
    after = {**before, 1: "uno", ROWS: "new"}
    del after[2]
    committed = place == "after-replica-commit"
    assert content(folder) == (after if committed else before)
    restarted = reopen(folder)
    restarted.merge(rows, KEY, 103)
    assert content(folder) == after
    state = restarted.read_state()
    assert state is not None
    assert state.end == (102 if committed else 103)


def compact_first(monkeypatch: pytest.MonkeyPatch, acts: Iterator[Callable[[], object]]) -> None:
    """Before each entry of the log is created, somebody else does the next thing."""

    def create(folder: str, name: str, text: bytes) -> bool:
        next(acts, lambda: None)()
        return create_new(folder, name, text)

    monkeypatch.setattr(merge_on_read, "create_new", create)


def test_a_commit_meanwhile_is_merged_again(
    copy: DeltaCopy, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy.merge(make_rows({1: "one"}, 1), KEY, 101)
    table = DeltaTable(str(folder))
    compact_first(monkeypatch, iter([table.optimize.compact]))
    copy.merge(make_rows({1: "uno", 2: None}, 2), KEY, 102)
    expected = {number: f"n{number}" for number in range(ROWS)} | {1: "uno"}
    del expected[2]
    assert content(folder) == expected
    operations = [each["operation"] for each in DeltaTable(str(folder)).history(2)]
    assert operations == ["MERGE", "OPTIMIZE"]


def test_a_successor_that_was_faster_is_a_conflict(
    copy: DeltaCopy, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also between what a merge has read and its commit."""
    successor = reopen(folder)
    after = {number: f"n{number}" for number in range(ROWS)} | {1: "later"}
    compact_first(
        monkeypatch, iter([lambda: successor.merge(make_rows({1: "later"}, 2), KEY, 102)])
    )
    with pytest.raises(CopyConflictError, match="one instance of consumer 'c'"):
        copy.merge(make_rows({1: "old", 9: None}, 1), KEY, 101)
    assert content(folder) == after


def test_a_writer_that_is_always_late_gives_up(
    copy: DeltaCopy, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def touch() -> None:
        DeltaTable(str(folder)).alter.set_table_properties({"delta.logRetentionDuration": "x"})

    compact_first(monkeypatch, iter(lambda: touch, None))
    with pytest.raises(CopyConflictError):
        copy.merge(make_rows({1: "one"}, 1), KEY, 101)
    assert content(folder)[1] == "n1"


def test_a_store_whose_answer_was_lost_is_asked_what_is_there(
    copy: DeltaCopy, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create(folder: str, name: str, text: bytes) -> bool:
        assert create_new(folder, name, text)
        return create_new(folder, name, text)

    monkeypatch.setattr(merge_on_read, "create_new", create)
    state = copy.merge(make_rows({1: "one"}, 1), KEY, 101)
    assert content(folder)[1] == "one"
    assert DeltaTable(str(folder)).version() == state.version == 2


def test_of_writers_that_create_one_file_one_does(tmp_path: Path) -> None:
    """On this machine, and through the client of object stores."""
    for place in (str(tmp_path / "a"), (tmp_path / "b").as_uri()):
        done: list[bool] = []
        start = threading.Barrier(8)

        def create(place: str = place, start: threading.Barrier = start) -> None:
            start.wait()
            done.append(create_new(place, "log/1.json", b"x"))  # noqa: B023 (joined below)

        (tmp_path / "b").mkdir(exist_ok=True)
        threads = [threading.Thread(target=create) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(done) == [False] * 7 + [True]


def test_a_table_that_was_made_again_is_read_again(copy: DeltaCopy, folder: Path) -> None:
    copy.merge(make_rows({1: "one"}, 1), KEY, 101)
    copy.merge(make_rows({1: "uno"}, 2), KEY, 102)
    shutil.rmtree(folder)
    with pytest.raises(ReplicaError, match="not a Delta table any more"):
        copy.merge(make_rows({1: "x"}, 3), KEY, 103)
    assert not folder.exists()
    other = DeltaCopy(str(folder), "c", MERGE_ON_READ)
    load_rows(other, 3)
    other.merge(make_rows({2: "two"}, 1), KEY, 102)
    copy.merge(make_rows({1: "again"}, 3), KEY, 103)
    assert content(folder) == {0: "n0", 1: "again", 2: "two"}


# The index.


def tear_run(index: Path) -> None:
    for path in index.glob("*.run"):
        path.write_bytes(path.read_bytes()[:-8])


def flip_run(index: Path) -> None:
    for path in index.glob("*.run"):
        path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])


def tear_list(index: Path) -> None:
    (index / "index.json").write_text('{"format": 1, "key"')


def date_list(index: Path) -> None:
    stored = json.loads((index / "index.json").read_text())
    (index / "index.json").write_text(json.dumps(stored | {"format": 99}))


@pytest.mark.parametrize("damage", [shutil.rmtree, tear_run, flip_run, tear_list, date_list])
def test_an_index_that_is_torn_is_read_again(
    copy: DeltaCopy, folder: Path, damage: Callable[[Path], None]
) -> None:
    expected = {number: f"n{number}" for number in range(ROWS)} | {1: "uno"}
    copy.merge(make_rows({1: "one"}, 1), KEY, 101)
    damage(folder / "_keys")
    reopen(folder).merge(make_rows({1: "uno"}, 2), KEY, 102)
    assert content(folder) == expected
    assert len(list((folder / "_keys").glob("*.json"))) == 1


def test_an_index_that_cannot_be_stored_holds_nothing_back(
    copy: DeltaCopy, folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit is done by then."""
    copy.merge(make_rows({1: "one"}, 1), KEY, 101)

    def fail(path: Path, text: bytes) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr("watcher.replica.writing.key_index.replace_file", fail)
        copy.merge(make_rows({1: "uno"}, 2), KEY, 102)
    assert "the index of the keys" in caplog.text
    copy.merge(make_rows({1: "un"}, 3), KEY, 103)
    assert content(folder)[1] == "un"


def test_the_index_has_as_many_runs_as_it_needs(copy: DeltaCopy, folder: Path) -> None:
    for window in range(1, 40):
        copy.merge(make_rows({window: "x", ROWS + window: "y"}, window), KEY, 100 + window)
    assert len(list((folder / "_keys").glob("*.run"))) < 20
    reopen(folder).merge(make_rows({3: "z", ROWS + 3: None}, 50), KEY, 150)
    after = content(folder)
    assert after[3] == "z"
    assert len(after) == ROWS + 38


# What tables ask for.


REFUSED: Mapping[str, tuple[Act, str]] = {
    "append only": (
        lambda table: table.alter.set_table_properties({"delta.appendOnly": "true"}),
        "delta.appendOnly = true",
    ),
    "constraint": (
        lambda table: table.alter.add_constraint({"small": '"Id" < 1000000'}),
        "the constraint small",
    ),
    "feature": (
        lambda table: table.alter.add_feature(TableFeatures.RowTracking, True),
        "the feature rowTracking",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_a_table_that_asks_for_more_is_refused_by_name(
    copy: DeltaCopy, folder: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    ask, text = REFUSED[name]
    ask(DeltaTable(str(folder)))
    before = DeltaTable(str(folder)).version()
    with pytest.raises(ReplicaError, match=text):
        copy.merge(make_rows({1: "one"}, 1), KEY, 101)
    assert DeltaTable(str(folder)).version() == before
    caplog.set_level(logging.WARNING)
    careless = DeltaCopy(str(folder), "c")
    try:
        careless.merge(make_rows({1: "one"}, 1), KEY, 101)
    except ReplicaError:
        assert name in ("append only", "feature"), "delta-rs refuses it, too"
    assert text in caplog.text


def test_existing_copies_stay_as_they_are_unless_they_are_asked(folder: Path) -> None:
    load_rows(DeltaCopy(str(folder), "c", COPY_ON_WRITE), 10)
    DeltaCopy(str(folder), "c").merge(make_rows({1: "one"}, 1), KEY, 101)
    assert DeltaTable(str(folder)).protocol().reader_features is None
    copy = DeltaCopy(str(folder), "c", MERGE_ON_READ)
    copy.merge(make_rows({2: "two"}, 2), KEY, 102)
    table = DeltaTable(str(folder))
    assert table.protocol().reader_features == ["deletionVectors"]
    operations = [each["operation"] for each in table.history(2)]
    assert operations == ["MERGE", "SET TBLPROPERTIES"]
    assert copy.list_outside(None, table.version()) == ()
    assert content(folder) == {n: f"n{n}" for n in range(10)} | {1: "one", 2: "two"}


def test_a_new_copy_asks_its_readers_for_vectors_alone(copy: DeltaCopy, folder: Path) -> None:
    protocol = DeltaTable(str(folder)).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    assert protocol.reader_features == protocol.writer_features == ["deletionVectors"]


def test_either_way_goes_on_from_the_other(copy: DeltaCopy, folder: Path) -> None:
    expected = {number: f"n{number}" for number in range(ROWS)}
    for window in range(1, 6):
        merging = COPY_ON_WRITE if window % 2 else MERGE_ON_READ
        writer = DeltaCopy(str(folder), "c", merging)
        names = {window: f"w{window}", 7: f"w{window}", ROWS + window: "new"}
        writer.merge(make_rows(names, window), KEY, 100 + window)
        expected |= names
        assert content(folder) == expected


# Maintenance by delta-rs.


def age(folder: Path) -> None:
    """Makes every file that is no log a month old."""
    for path in folder.rglob("*"):
        if path.is_file() and "_delta_log" not in path.parts:
            moment = path.stat().st_mtime - 30 * 86_400
            os.utime(path, (moment, moment))


def test_vacuum_leaves_the_vectors_that_are_used(copy: DeltaCopy, folder: Path) -> None:
    copy.merge(make_rows({1: "one", 2: None}, 1), KEY, 101)
    age(folder)
    before = content(folder)
    DeltaTable(str(folder)).vacuum(0, False, False, full=True)
    assert content(folder) == before
    assert len(read_delta(DeltaTable(str(folder)))) == len(before)


def test_vectors_that_no_cut_needs_are_removed(copy: DeltaCopy, folder: Path) -> None:
    """Those of versions from a timestamp on stay, also after a restart, and those that a compaction
    has removed since."""
    day = 86_400_000_000
    ends = [day * n for n in (10, 20, 30, 40)]
    versions = {end: copy.merge(make_rows({end // day: "x"}, end // day), KEY, end) for end in ends}
    rows = {end: read_version(folder, state.version) for end, state in versions.items()}
    backdate(folder)
    copy.remove_before(Needed(ends[2] + 2 * day, 99))
    assert len(list((folder / "_vectors").iterdir())) == 4, "commits are of today by their clock"
    backdate_log(folder, ends)
    for writer in (reopen(folder), reopen(folder)):
        writer.remove_before(Needed(ends[2] + 2 * day, 99))
        assert len(list((folder / "_vectors").iterdir())) == 2
        assert all(read_version(folder, versions[end].version) == rows[end] for end in ends[2:])
    DeltaTable(str(folder)).optimize.compact()
    copy.remove_before(Needed(ends[3] + 2 * day, 99))
    assert read_version(folder, versions[ends[3]].version) == rows[ends[3]]


def read_version(folder: Path, version: int) -> list[dict[str, Any]]:
    copy = DeltaCopy(str(folder), "c")
    return [row for batch in copy.scan(version) for row in batch.to_pylist()]


def backdate(folder: Path) -> None:
    """Makes the files of vectors as old as the first merge."""
    for path in (folder / "_vectors").iterdir():
        os.utime(path, (86_400, 86_400))


def backdate_log(folder: Path, ends: list[int]) -> None:
    """Gives the commits of merges the times of their windows."""
    for version, end in enumerate(ends, 2):
        path = folder / "_delta_log" / f"{version:020d}.json"
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        actions[0]["commitInfo"]["timestamp"] = end // 1_000
        path.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def test_a_checkpoint_has_the_vectors(copy: DeltaCopy, folder: Path) -> None:
    copy.merge(make_rows({1: "one", 2: None}, 1), KEY, 101)
    DeltaTable(str(folder)).create_checkpoint()
    for version in range(2):
        (folder / "_delta_log" / f"{version:020d}.json").unlink()
    before = content(folder)
    assert len(before) == ROWS - 1
    reopen(folder).merge(make_rows({3: "three"}, 2), KEY, 102)
    assert content(folder) == before | {3: "three"}


def test_a_vector_that_is_torn_is_not_read(copy: DeltaCopy, folder: Path) -> None:
    copy.merge(make_rows({1: "one", 2: None}, 1), KEY, 101)
    (path,) = (folder / "_vectors").iterdir()
    stored = bytearray(path.read_bytes())
    stored[20] ^= 1
    path.write_bytes(stored)
    with pytest.raises(ReplicaError, match="is damaged"):
        content(folder)
