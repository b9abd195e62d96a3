"""What a replicator does for its copies beside windows: compaction, and what it removes."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pyarrow as pa
import pytest
from fixtures.changing_schemas import watchable_ddl, write_everywhere
from fixtures.named_rows import KEY, content, load_rows, make_rows
from fixtures.replicas import assert_equal, list_commits, make_replicator, open_table
from fixtures.server import CreateDatabase
from fixtures.singers import address_of
from prometheus_client import generate_latest

from watcher.model.errors import ConfigurationError, ReplicaError
from watcher.replica.copies import MERGE_ON_READ, CopyState
from watcher.replica.cuts.cut import Cut, TableCut
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.delta.copy import DeltaCopy
from watcher.replica.parquet import FILES, ParquetVersion, VersionStore
from watcher.replica.replica_window import CutReport
from watcher.replica.upkeep import Compacted, Upkeep
from watcher.replica.writing.compaction import CompactionPolicy
from watcher.settings.watcher import parse_watch_config

TABLE = "Singers"
KEEP_SECONDS = 7 * 86_400.0
DAY = 86_400_000_000


def test_a_replicator_compacts_what_has_changed(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    """After the cut of the window; the next cut names the version that it has made."""
    database = create_database(*watchable_ddl("A"))
    settings = {"to": f"delta:{tmp_path}", "compaction_small_files": 1}
    reports: list[CutReport] = []
    replicator = make_replicator(database, tmp_path, reports.append, replica=settings)
    for number in range(3):
        write_everywhere(database, ("A",), number)
        replicator.run_once()
        assert_equal(database, tmp_path)
    operations = [each["operation"] for each in list_commits(tmp_path, "A")]
    assert operations.count("OPTIMIZE") == 2
    assert len(open_table(tmp_path, "A").file_uris()) == 1
    replicator.run_once()
    assert reports[-1].cut.tables["A"].version == open_table(tmp_path, "A").version()
    assert_equal(database, tmp_path)
    counted = generate_latest(replicator.metrics.registry).decode()
    labels = 'consumer="copier",table="A"'
    assert 'compactions_total{consumer="copier",outcome="committed",table="A"} 2.0' in counted
    assert f"spanner_watcher_copy_files{{{labels}}} 1.0" in counted


def test_compaction_may_be_switched_off(create_database: CreateDatabase, tmp_path: Path) -> None:
    database = create_database(*watchable_ddl("A"))
    settings = {"to": f"delta:{tmp_path}", "compaction_small_files": 1, "compaction": "off"}
    for number in range(3):
        write_everywhere(database, ("A",), number)
        make_replicator(database, tmp_path, replica=settings).run_once()
    operations = [each["operation"] for each in list_commits(tmp_path, "A")]
    assert "OPTIMIZE" not in operations


def test_parquet_is_compacted_by_merges_alone(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    replica = {"to": f"parquet:{tmp_path}", "engine": "spark", "compaction_small_files": 1}
    address = address_of(create_database(*watchable_ddl("A")))
    with pytest.raises(ConfigurationError, match="compaction_small_files"):
        parse_watch_config({"database": str(address), "tables": ["A"], "replica": replica})


def compact_once(copies: list[str], fail: bool) -> Compacted:
    copies.append(TABLE)
    if fail:
        raise ReplicaError("the disk is full")
    return Compacted(7, more=len(copies) < 3)


def test_a_compaction_that_fails_holds_no_window_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One that is not finished goes on, also when nothing has changed."""
    called: list[str] = []
    copy = DeltaCopy(str(tmp_path / TABLE), "c", MERGE_ON_READ)
    load_rows(copy, 3)
    state = copy.read_state()
    assert state is not None
    states = {TABLE: state}
    upkeep: Upkeep[DeltaCopy] = Upkeep(
        Manifest(str(tmp_path)), KEEP_SECONDS, lambda *_: compact_once(called, len(called) == 0)
    )
    for changed in ([TABLE], [TABLE], [], []):
        upkeep.compact(changed, {TABLE: KEY}, lambda _: copy, states)
    assert called == [TABLE] * 3
    assert "the disk is full" in caplog.text
    assert states[TABLE] == CopyState(7, state.end, state.schema)


# What is removed.


class Replica:
    """A copy with a window a day up to now, and a cut of each; compacted after each."""

    def __init__(self, folder: Path, days: int) -> None:
        self.folder = folder
        self.manifest = Manifest(str(folder))
        policy = CompactionPolicy(1, 2, 1, deleted_rows=1)
        self.copy = DeltaCopy(str(folder / TABLE), "c", MERGE_ON_READ, policy)
        self.reader = DeltaCopy(str(folder / TABLE), "c")
        load_rows(self.copy, 100)
        self.now = int(time.time()) * 1_000_000
        self.cuts: list[Cut] = []
        for window in range(days):
            rows = make_rows(dict.fromkeys(range(window * 5)) | {200 + window: "x"}, window + 1)
            end = self.now - (days - window) * DAY
            state = self.copy.merge(rows, KEY, end)
            self.write_cut(end, state.version)
            self.copy.compact(KEY, whole=True)
            age_new_files(folder / TABLE, days - window)

    def write_cut(self, end: int, version: int) -> None:
        cut = Cut("d", "c", end, {TABLE: TableCut(version, KEY)})
        self.manifest.write(cut)
        self.cuts.append(cut)

    def prune(self, keep_seconds: float) -> None:
        Upkeep(self.manifest, keep_seconds, None).prune(self.cuts[-1], {TABLE: self.copy})

    def list_readable(self) -> list[int]:
        """Which cuts can be read."""
        readable = []
        for number, cut in enumerate(self.cuts):
            try:
                rows = list(self.reader.scan(cut.tables[TABLE].version))
            except ReplicaError:
                continue
            keys = {row["Id"] for batch in rows for row in batch.to_pylist()}
            assert keys == {*range(number * 5, 100), *range(200, 201 + number)}
            readable.append(number)
        return readable


def age_new_files(folder: Path, days: int) -> None:
    """Gives what was written just now the time that it has in the story."""
    for path in folder.rglob("*"):
        if path.is_file() and time.time() - path.stat().st_mtime < 86_400 / 2:
            moment = time.time() - days * 86_400
            if path.suffix == ".json" and "_delta_log" in path.parts:
                stamp = f'"timestamp":{int(moment * 1_000)}'
                path.write_text(re.sub(r'"timestamp":\d+', stamp, path.read_text(), count=1))
            os.utime(path, (moment, moment))


def test_what_a_cut_names_stays_and_what_none_names_goes(tmp_path: Path) -> None:
    replica = Replica(tmp_path, 12)
    files = len(list((tmp_path / TABLE).glob("*.parquet")))
    assert replica.list_readable() == list(range(12))
    replica.prune(5 * 86_400.0)
    kept = [cut for cut in replica.cuts if cut.end >= replica.cuts[-1].end - 5 * DAY]
    readable = replica.list_readable()
    assert set(readable) >= {replica.cuts.index(cut) for cut in kept}
    assert 0 not in readable
    assert len(list((tmp_path / TABLE).glob("*.parquet"))) < files
    assert content(tmp_path / TABLE).keys() == {*range(55, 100), *range(200, 212)}


def test_a_cut_of_long_ago_that_is_the_last_exact_one_stays_readable(tmp_path: Path) -> None:
    """Its version is older than all that time alone would keep."""
    replica = Replica(tmp_path, 12)
    for cut in replica.cuts[3:]:
        (tmp_path / "_cuts" / f"{cut.end:020d}.json").unlink()
    replica.manifest = Manifest(str(tmp_path))
    replica.prune(0.0)
    assert 2 in replica.list_readable()


def test_a_version_that_was_left_long_ago_stays_while_a_cut_names_it(tmp_path: Path) -> None:
    """Cuts of a table that others had written name the version before that, whatever their age."""
    replica = Replica(tmp_path, 12)
    replica.write_cut(replica.now, replica.cuts[1].tables[TABLE].version)
    for cut in replica.cuts[:-1]:
        (tmp_path / "_cuts" / f"{cut.end:020d}.json").unlink()
    replica.manifest = Manifest(str(tmp_path))
    replica.prune(0.0)
    replica.cuts.pop()
    assert 1 in replica.list_readable()


def test_of_a_copy_that_the_oldest_cut_does_not_have_nothing_goes(tmp_path: Path) -> None:
    replica = Replica(tmp_path, 12)
    replica.manifest.write(Cut("d", "c", replica.cuts[0].end - 1, {}))
    replica.manifest = Manifest(str(tmp_path))
    replica.prune(30 * 86_400.0)
    assert replica.list_readable() == list(range(12))


def test_cuts_go_in_a_process_that_runs_once(tmp_path: Path) -> None:
    """Not when there is nothing that is an hour too old."""
    replica = Replica(tmp_path, 3)
    replica.prune(2 * 86_400.0)
    assert len(list((tmp_path / "_cuts").iterdir())) == 3
    replica.prune(86_400.0 / 2)
    assert len(list((tmp_path / "_cuts").iterdir())) == 1


def test_folders_of_others_among_the_files_of_parquet_stay(tmp_path: Path) -> None:
    store, rows = VersionStore(str(tmp_path)), pa.table({"K": [1]})
    for end in (100, 200):
        files = store.write_files(f"{FILES}/{end}-x", [rows])
        store.write(ParquetVersion("c", end, "load", rows.schema, files))
    (tmp_path / FILES / ".snapshots").mkdir()
    store.remove_before(300)
    assert sorted(each.name for each in (tmp_path / FILES).iterdir()) == [".snapshots", "200-x"]
