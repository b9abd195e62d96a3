"""Copies in Delta that are compacted between windows: by anybody's reader they hold the same rows,
whatever happens meanwhile."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable
from fixtures.named_rows import KEY, content, load_rows, make_rows
from fixtures.replicas import read_delta

from watcher.model.errors import CopyConflictError, ReplicaError
from watcher.process.failpoints import NAMES
from watcher.replica.copies import COPY_ON_WRITE, MERGE_ON_READ, CompactionRun, Merging, Needed
from watcher.replica.delta import merge_on_read
from watcher.replica.delta.copy import DeltaCopy
from watcher.replica.delta.files import TableFiles
from watcher.replica.delta.log import parse_entry
from watcher.replica.delta.snapshot import SnapshotReader
from watcher.replica.layout import Layout
from watcher.replica.stores import stored_files
from watcher.replica.stores.stored_files import create_new
from watcher.replica.writing import compactor, file_rewrites, new_files
from watcher.replica.writing.compaction import CompactionPolicy
from watcher.replica.writing.key_index import KeyIndex
from watcher.replica.writing.live_rows import LiveRows
from watcher.replica.writing.statistics import FileStatistics

EAGER = CompactionPolicy(deleted_percent=5, small_files=1, megabytes=1e-6, deleted_rows=1)
"""So little a run that it writes one group of rows."""
DAY = 86_400_000_000


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewrites go on over several windows, and make several files."""
    monkeypatch.setattr(new_files, "GROUP_ROWS", 16)
    monkeypatch.setattr(stored_files, "BATCH_ROWS", 8)
    monkeypatch.setattr(Layout, "file_bytes", 3_000)
    monkeypatch.setattr(compactor, "SMALL_SHARE", 1e-4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "Singers"


def open_copy(
    folder: Path, policy: CompactionPolicy = EAGER, merging: Merging = MERGE_ON_READ
) -> DeltaCopy:
    copy = DeltaCopy(str(folder), "c", merging, policy)
    copy.read_state()
    return copy


def read_by_others(folder: Path) -> list[dict[int, str]]:
    """The names by key, as delta-rs and polars read them."""
    tables = [read_delta(DeltaTable(str(folder))), pl.read_delta(str(folder)).to_arrow()]
    rows = [table.to_pylist() for table in tables]
    assert all(len({row["Id"] for row in each}) == len(each) for each in rows)
    return [{row["Id"]: row["Name"] for row in each} for each in rows]


def assert_read_by_all(folder: Path, expected: Mapping[int, str | None]) -> None:
    assert content(folder) == expected
    assert read_by_others(folder) == [expected] * 2


def list_operations(folder: Path) -> list[str]:
    return [each["operation"] for each in DeltaTable(str(folder)).history()]


class Story:
    """Windows, runs of compaction, and what others do, in a random order."""

    def __init__(self, folder: Path, chooser: random.Random, merging: Merging) -> None:
        self.folder, self.chooser, self.merging = folder, chooser, merging
        self.copy = open_copy(folder, merging=merging)
        self.names = load_rows(self.copy, 120)
        self.window = 0
        self.runs: list[CompactionRun] = []
        self.at: dict[int, dict[int, str]] = {}

    def merge(self) -> None:
        """Some rows, anywhere, or all of a part of the keys."""
        self.window += 1
        start = self.chooser.randrange(130)
        keys = (
            range(start, start + self.chooser.randrange(1, 40))
            if self.chooser.random() < 0.3
            else sorted(self.chooser.sample(range(140), self.chooser.randrange(1, 15)))
        )
        changes = {k: None if self.chooser.random() < 0.3 else f"w{self.window}" for k in keys}
        self.copy.merge(make_rows(changes, self.window), KEY, 100 + self.window)
        for key, name in changes.items():
            if name is None:
                self.names.pop(key, None)
            else:
                self.names[key] = name

    def run(self) -> None:
        self.runs.append(self.copy.compact(KEY))

    def restart(self) -> None:
        self.copy = open_copy(self.folder, merging=self.merging)

    def lose_index(self) -> None:
        shutil.rmtree(self.folder / "_keys", ignore_errors=True)
        self.restart()

    def optimize(self) -> None:
        DeltaTable(str(self.folder)).optimize.compact()

    def restore(self) -> None:
        version = self.chooser.choice(list(self.at))
        if version < DeltaTable(str(self.folder)).version():
            DeltaTable(str(self.folder)).restore(version)
            self.names = dict(self.at[version])

    def tell(self, steps: int) -> None:
        acts = [self.merge] * 6 + [self.run] * 10 + [self.restart, self.lose_index]
        acts += [self.optimize, self.restore]
        for _ in range(steps):
            self.at[DeltaTable(str(self.folder)).version()] = dict(self.names)
            self.chooser.choice(acts)()
            assert content(self.folder) == self.names
        assert_read_by_all(self.folder, self.names)


@pytest.mark.parametrize("merging", [MERGE_ON_READ, COPY_ON_WRITE])
def test_rows_stay_the_same_whatever_happens_while_files_are_written_anew(
    small_groups: None, tmp_path: Path, merging: Merging
) -> None:
    seed = int(os.environ.get("COMPACTION_SEED", random.randrange(2**32)))
    print("COMPACTION_SEED", seed)
    chooser = random.Random(seed)
    runs: list[CompactionRun] = []
    for number in range(int(os.environ.get("COMPACTION_STORIES", "1"))):
        story = Story(tmp_path / str(number), chooser, merging)
        story.tell(30)
        runs += story.runs
    assert merging == COPY_ON_WRITE or any(run.read for run in runs)


# Which files.


@pytest.mark.parametrize("merging", [MERGE_ON_READ, COPY_ON_WRITE])
def test_small_files_become_one(folder: Path, merging: Merging) -> None:
    copy = open_copy(folder, CompactionPolicy(100, 8, 1, deleted_rows=1), merging)
    names: dict[int, str | None] = dict(load_rows(copy, 10))
    files = []
    for window in range(1, 30):
        added = {1_000 * window: f"w{window}"}
        copy.merge(make_rows(added, window), KEY, 100 + window)
        names |= added
        files.append(copy.compact(KEY).files)
    assert max(files) <= 8
    assert max(files) == 8 or merging == COPY_ON_WRITE
    assert content(folder) == names


def test_a_file_that_has_lost_many_rows_is_written_anew(folder: Path) -> None:
    """By delta-rs it never is, when it is the only one."""
    copy = open_copy(folder, CompactionPolicy(20, 32, 1, deleted_rows=1))
    names = load_rows(copy, 100)
    for window, lost in enumerate((range(20), range(20, 21)), 1):
        copy.merge(make_rows(dict.fromkeys(lost), window), KEY, 100 + window)
        names = {key: name for key, name in names.items() if key not in lost}
        DeltaTable(str(folder)).optimize.compact()
        assert count_deleted(folder) == 100 - len(names)
        run = copy.compact(KEY)
        assert (run.replaced, run.files) == ((0, 1) if window == 1 else (1, 1))
    assert count_deleted(folder) == 0
    assert_read_by_all(folder, names)


def test_few_rows_are_not_worth_a_commit(folder: Path) -> None:
    copy = open_copy(folder, CompactionPolicy(5, 8, 1))
    load_rows(copy, 100)
    copy.merge(make_rows(dict.fromkeys(range(90)), 1), KEY, 101)
    assert copy.compact(KEY).files == 1
    assert list_operations(folder)[0] == "MERGE"


def count_deleted(folder: Path) -> int:
    """The rows that vectors remove, as the log has it."""
    snapshot = SnapshotReader(str(folder)).read()
    vectors = [file.vector for file in snapshot.files.values()]
    return sum(vector.rows for vector in vectors if vector is not None)


def test_a_run_writes_as_much_as_it_may(small_groups: None, folder: Path) -> None:
    """And goes on in the next one; ``whole`` ends it."""
    copy = open_copy(folder)
    load_rows(copy, 120)
    copy.merge(make_rows(dict.fromkeys(range(40)), 1), KEY, 101)
    runs = [copy.compact(KEY) for _ in range(6)]
    assert [run.more for run in runs] == [True] * 5 + [False]
    assert [run.replaced for run in runs] == [0] * 5 + [1]
    copy.merge(make_rows(dict.fromkeys(range(40, 60)), 2), KEY, 102)
    assert copy.compact(KEY, whole=True).replaced
    assert len(content(folder)) == 60


def test_who_compacts_himself_is_left_alone(folder: Path) -> None:
    copy = DeltaCopy(str(folder), "c", MERGE_ON_READ)
    load_rows(copy, 100)
    copy.merge(make_rows(dict.fromkeys(range(90)), 1), KEY, 101)
    assert copy.compact(KEY) == CompactionRun(files=1, deleted=90)
    assert list_operations(folder)[0] == "MERGE"


def test_after_a_load_the_index_is_there_before_the_first_merge(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where this product does not compact: the first window does not wait for it."""
    copy = DeltaCopy(str(folder), "c", MERGE_ON_READ)
    load_rows(copy, 100)
    copy.compact(KEY)
    monkeypatch.delattr(LiveRows, "_read_keys")
    copy.merge(make_rows({5: "new"}, 1), KEY, 101)
    assert content(folder)[5] == "new"


def test_a_table_that_asks_for_more_is_not_compacted(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copy = open_copy(folder, merging=COPY_ON_WRITE)
    load_rows(copy, 10)
    DeltaTable(str(folder)).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    version = DeltaTable(str(folder)).version()
    assert [copy.compact(KEY), copy.compact(KEY)] == [CompactionRun(files=1)] * 2
    assert DeltaTable(str(folder)).version() == version
    assert caplog.text.count("delta.enableChangeDataFeed = true") == 1


# The index of keys.


def test_the_index_follows_a_compaction_without_reading_the_copy(
    small_groups: None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = open_copy(folder)
    names: dict[int, str | None] = dict(load_rows(copy, 120))
    copy.merge(make_rows(dict.fromkeys(range(40)), 1), KEY, 101)
    read: list[str] = []
    read_keys = LiveRows._read_keys

    def note(*arguments: Any) -> Any:
        read.append(arguments[2].path)
        return read_keys(*arguments)

    monkeypatch.setattr(LiveRows, "_read_keys", note)
    while copy.compact(KEY).more:
        pass
    changes = {50: "new", 60: None, 500: "more"}
    copy.merge(make_rows(changes, 2), KEY, 102)
    assert read == []
    expected = {k: n for k, n in (names | changes).items() if n is not None and k >= 40}
    assert content(folder) == expected
    restarted = open_copy(folder)
    restarted.merge(make_rows({51: "newer"}, 3), KEY, 103)
    assert read == []
    assert content(folder) == expected | {51: "newer"}


def test_keys_that_the_index_could_not_store_are_read(
    small_groups: None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = open_copy(folder)
    names: dict[int, str | None] = dict(load_rows(copy, 120))
    copy.merge(make_rows(dict.fromkeys(range(40)), 1), KEY, 101)

    def fail(*_: object) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(KeyIndex, "stage", fail)
        assert copy.compact(KEY, whole=True).replaced
    copy.merge(make_rows({50: "new"}, 2), KEY, 102)
    assert content(folder) == {k: n for k, n in names.items() if k >= 40} | {50: "new"}


# Crashes and others.


class CrashError(Exception):
    """Where a process would have ended."""


@pytest.mark.parametrize("place", [name for name in NAMES if name.startswith("after-rewrite")])
def test_a_crash_leaves_the_rows_as_they_were(
    folder: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    copy = open_copy(folder)
    names: dict[int, str | None] = dict(load_rows(copy, 120))
    copy.merge(make_rows(dict.fromkeys(range(40)), 1), KEY, 101)
    expected = {k: n for k, n in names.items() if k >= 40}

    def crash(name: str) -> None:
        if name == place:
            raise CrashError

    for module in (compactor, merge_on_read):
        monkeypatch.setattr(module, "failpoint", crash)
    monkeypatch.setattr(compactor.Compactor, "abandon", lambda self: None)
    with pytest.raises(CrashError):
        copy.compact(KEY, whole=True)
    monkeypatch.undo()
    assert_read_by_all(folder, expected)
    restarted = open_copy(folder)
    restarted.merge(make_rows({50: "new", 60: None}, 2), KEY, 102)
    restarted.compact(KEY, whole=True)
    del expected[60]
    assert_read_by_all(folder, expected | {50: "new"})


@pytest.mark.parametrize("cleans", [True, False])
def test_a_disk_that_is_full_in_the_middle_replaces_nothing(
    small_groups: None, folder: Path, monkeypatch: pytest.MonkeyPatch, cleans: bool
) -> None:
    """Also where what was written cannot even be removed."""
    copy = open_copy(folder)
    names = load_rows(copy, 120)
    copy.merge(make_rows(dict.fromkeys(range(40)), 1), KEY, 101)
    assert copy.compact(KEY).more

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(TableFiles, "finish", fail)
        if not cleans:
            patch.setattr(file_rewrites.FileRewrite, "abandon", fail)
        with pytest.raises(ReplicaError, match="no space"):
            copy.compact(KEY, whole=True)
    assert list_operations(folder)[0] == "MERGE"
    assert copy.compact(KEY, whole=True).replaced == 1
    assert_read_by_all(folder, {k: n for k, n in names.items() if k >= 40})


def test_steps_that_were_broken_off_are_not_committed(
    small_groups: None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Ctrl-C, say, in a process that goes on."""
    copy = open_copy(folder)
    names = load_rows(copy, 120)
    copy.merge(make_rows(dict.fromkeys(range(40)), 1), KEY, 101)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FileStatistics, "add", interrupt)
        with pytest.raises(KeyboardInterrupt):
            copy.compact(KEY)
    with pytest.raises(ReplicaError, match="0 rows, and not the 80"):
        copy.compact(KEY)
    assert copy.compact(KEY, whole=True).replaced == 1
    assert_read_by_all(folder, {k: n for k, n in names.items() if k >= 40})


def test_of_a_compaction_and_another_commit_at_once_the_compaction_gives_way(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And leaves no files behind."""
    copy = open_copy(folder)
    load_rows(copy, 120)
    copy.merge(make_rows(dict.fromkeys(range(40)), 1), KEY, 101)
    before = {path.name for path in folder.glob("*.parquet")}

    def create(path: str, name: str, text: bytes) -> bool:
        monkeypatch.undo()
        DeltaTable(path).delete('"Id" = 100')
        return create_new(path, name, text)

    monkeypatch.setattr(merge_on_read, "create_new", create)
    assert copy.compact(KEY, whole=True).abandoned
    kept = {Path(uri).name for uri in DeltaTable(str(folder)).file_uris()}
    assert {path.name for path in folder.glob("*.parquet")} <= before | kept
    assert len(content(folder)) == 79


def test_a_merge_that_meets_a_compaction_is_made_again_on_the_new_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, other = open_copy(folder), open_copy(folder)
    names: dict[int, str | None] = dict(load_rows(copy, 120))
    copy.merge(make_rows(dict.fromkeys(range(40)), 1), KEY, 101)
    other.read_state()

    def create(path: str, name: str, text: bytes) -> bool:
        monkeypatch.undo()
        assert other.compact(KEY, whole=True).replaced
        return create_new(path, name, text)

    monkeypatch.setattr(merge_on_read, "create_new", create)
    copy.merge(make_rows({50: "new"}, 2), KEY, 102)
    assert list_operations(folder)[:2] == ["MERGE", "OPTIMIZE"]
    assert_read_by_all(folder, {k: n for k, n in names.items() if k >= 40} | {50: "new"})


def test_an_instance_that_was_taken_over_does_not_compact(folder: Path) -> None:
    copy, successor = open_copy(folder), open_copy(folder)
    load_rows(copy, 120)
    successor.read_state()
    successor.merge(make_rows(dict.fromkeys(range(40)), 1), KEY, 101)
    with pytest.raises(CopyConflictError):
        copy.compact(KEY)
    assert list_operations(folder)[0] == "MERGE"


def test_a_compaction_is_no_outside_write(folder: Path) -> None:
    copy = open_copy(folder)
    load_rows(copy, 120)
    state = copy.merge(make_rows(dict.fromkeys(range(40)), 1), KEY, 101)
    run = copy.compact(KEY, whole=True)
    assert run.version == state.version + 1
    assert copy.list_outside(state.version, run.version) == ()
    assert copy.find_end(run.version) == 101
    assert {row["Id"] for batch in copy.scan(state.version) for row in batch.to_pylist()} == {
        *range(40, 120)
    }


# What is removed.


def age(folder: Path, days: int) -> None:
    """Makes all files so much older."""
    for path in folder.rglob("*"):
        if path.is_file():
            moment = path.stat().st_mtime - days * 86_400
            os.utime(path, (moment, moment))


def backdate_commits(folder: Path, days: int) -> None:
    """Makes all commits so much older, by their own clocks."""
    for path in (folder / "_delta_log").glob("*.json"):
        actions = parse_entry(path.read_text())
        info = dict(actions[0]["commitInfo"])
        info["timestamp"] -= days * DAY // 1_000
        lines = [json.dumps(each) for each in [{"commitInfo": info}, *actions[1:]]]
        path.write_text("".join(f"{line}\n" for line in lines))


def read_version(folder: Path, version: int) -> set[int]:
    copy = DeltaCopy(str(folder), "c")
    return {row["Id"] for batch in copy.scan(version) for row in batch.to_pylist()}


@pytest.mark.parametrize("merging", [MERGE_ON_READ, COPY_ON_WRITE])
def test_files_of_versions_that_a_cut_names_stay_whatever_their_age(
    folder: Path, merging: Merging
) -> None:
    """Those of others go, with their entries of the log, once a checkpoint is there."""
    copy = open_copy(folder, CompactionPolicy(1, 2, 1, deleted_rows=1), merging)
    load_rows(copy, 100)
    versions = {}
    for window in range(1, 7):
        gone = range(window * 10)
        copy.merge(make_rows(dict.fromkeys(gone), window), KEY, 100 + window)
        versions[DeltaTable(str(folder)).version()] = set(range(window * 10, 100))
        copy.compact(KEY, whole=True)
        if window == 3:
            DeltaTable(str(folder)).create_checkpoint()
    backdate_commits(folder, 400)
    age(folder, 400)
    named = list(versions)[3]
    orphan = folder / "part-of-a-crash.parquet"
    orphan.write_bytes(b"x")
    now = int(time.time()) * 1_000_000
    open_copy(folder, CompactionPolicy(1, 2, 1, deleted_rows=1), merging).remove_before(
        Needed(now, named)
    )
    assert orphan.exists(), "a young file may be one that is about to be committed"
    for version, rows in list(versions.items())[3:]:
        assert read_version(folder, version) == rows
    for version in list(versions)[:3]:
        with pytest.raises(ReplicaError):
            read_version(folder, version)
    assert not (folder / "_delta_log" / f"{1:020d}.json").exists()
    assert content(folder).keys() == set(range(60, 100))
    last = DeltaTable(str(folder)).version()
    os.utime(orphan, (0, 0))
    copy = open_copy(folder, CompactionPolicy(1, 2, 1, deleted_rows=1), merging)
    copy.remove_before(Needed(now, last))
    assert not orphan.exists()
    assert len(list(folder.glob("*.parquet"))) == len(DeltaTable(str(folder)).file_uris())
    assert content(folder).keys() == set(range(60, 100))
    copy.merge(make_rows({1: "back"}, 9), KEY, 109)
    assert content(folder).keys() == {1, *range(60, 100)}


def test_a_rewrite_keeps_its_files_however_long_it_takes(
    request: pytest.FixtureRequest, folder: Path
) -> None:
    copy = open_copy(folder)
    load_rows(copy, 400)
    request.getfixturevalue("small_groups")
    version = copy.merge(make_rows(dict.fromkeys(range(0, 400, 3)), 1), KEY, 101).version
    runs = [copy.compact(KEY)]
    while not runs[-1].replaced:
        age(folder, 2)
        copy.remove_before(Needed(int(time.time()) * 1_000_000, version))
        runs.append(copy.compact(KEY))
    assert len(runs) > 3
    assert_read_by_all(folder, {n: f"n{n}" for n in range(400) if n % 3})


def test_versions_stay_while_they_were_in_effect_at_a_cut_that_is_kept(folder: Path) -> None:
    copy = open_copy(folder, CompactionPolicy(1, 2, 1, deleted_rows=1))
    load_rows(copy, 100)
    version = copy.merge(make_rows(dict.fromkeys(range(10)), 1), KEY, 101).version
    copy.compact(KEY, whole=True)
    age(folder, 400)
    now = int(time.time()) * 1_000_000
    copy.remove_before(Needed(now, version + 1))
    assert read_version(folder, version) == set(range(10, 100)), "it was left a moment ago"


def test_data_files_are_the_owners_without_compaction(folder: Path) -> None:
    copy = DeltaCopy(str(folder), "c", COPY_ON_WRITE)
    load_rows(copy, 100)
    copy.merge(make_rows(dict.fromkeys(range(10)), 1), KEY, 101)
    backdate_commits(folder, 400)
    age(folder, 400)
    files = sorted(folder.glob("*.parquet"))
    copy.remove_before(Needed(int(time.time()) * 1_000_000, 2))
    assert sorted(folder.glob("*.parquet")) == files
