"""Delta's change data feed on copies: what each merge says that it has changed, row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from fixtures.copied_tables import CopiedTable, comparable, copied_tables, load_and_merge
from fixtures.named_rows import KEY, load_rows, make_rows, measure_merges, read_content
from fixtures.replicas import assert_equal, replicate
from fixtures.singers import write_singers
from google.cloud.spanner_v1.database import Database
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError

from watcher.model.errors import ConfigurationError
from watcher.replica.copies import MERGE_ON_READ, Needed, Replacement, TableCopy
from watcher.replica.delta.change_feed import AFTER, BEFORE, DELETE, FOLDER, INSERT, KIND
from watcher.replica.delta.copy import DeltaCopy
from watcher.replica.writing.compaction import CompactionPolicy
from watcher.settings.watcher import parse_watch_config

COUNT = count()


def open_copy(folder: Path, feed: bool = True) -> DeltaCopy:
    policy = CompactionPolicy(0, 1, 32, deleted_rows=1)
    copy = DeltaCopy(str(folder), "c", MERGE_ON_READ, policy, feed=feed)
    copy.read_state()
    return copy


def read_feed(folder: Path, version: int) -> pa.Table:
    """What delta-rs reads of one version."""
    table = DeltaTable(str(folder))
    return pa.table(table.load_cdf(starting_version=version, ending_version=version).read_all())


def show(feed: pa.Table) -> list[tuple[Any, ...]]:
    """The changes of named rows, by key."""
    rows = [(row["Id"], row["Name"], row[KIND]) for row in feed.to_pylist()]
    return sorted(rows, key=lambda row: (row[0], row[2] != BEFORE))


def newest(folder: Path) -> int:
    return DeltaTable(str(folder)).version()


def test_a_merge_says_which_rows_it_has_changed(tmp_path: Path) -> None:
    copy = open_copy(tmp_path)
    load_rows(copy, 4)
    assert {row[2] for row in show(read_feed(tmp_path, newest(tmp_path)))} == {INSERT}
    state = copy.merge(make_rows({1: "one", 2: None, 9: "nine", 77: None}, 1), KEY, 101)
    assert show(read_feed(tmp_path, state.version)) == [
        (1, "n1", BEFORE),
        (1, "one", AFTER),
        (2, "n2", DELETE),
        (9, "nine", INSERT),
    ]
    assert read_content(copy) == {0: "n0", 1: "one", 3: "n3", 9: "nine"}


def test_a_window_that_changes_nothing_has_no_changes(tmp_path: Path) -> None:
    copy = open_copy(tmp_path)
    load_rows(copy, 4)
    rows = make_rows({1: "one"}, 1)
    first = copy.merge(rows, KEY, 101)
    assert copy.merge(rows, KEY, 101).version == first.version
    assert len(list((tmp_path / FOLDER).glob("*.parquet"))) == 1


def test_compactions_and_new_columns_change_no_rows(tmp_path: Path) -> None:
    copy = open_copy(tmp_path)
    load_rows(copy, 40)
    copy.merge(make_rows({1: "one", 2: None}, 1), KEY, 101)
    before = newest(tmp_path)
    copy.compact(KEY, whole=True)
    assert newest(tmp_path) > before
    assert read_feed(tmp_path, newest(tmp_path)).num_rows == 0
    copy.merge(make_rows({3: "three"}, 2), KEY, 102)
    assert show(read_feed(tmp_path, newest(tmp_path))) == [(3, "n3", BEFORE), (3, "three", AFTER)]


class SomeKeys:
    """A ``KeySet``."""

    columns = KEY

    def find(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        return np.isin(batch.column("Id").to_numpy(), [1, 2, 5])


def test_a_repair_says_which_rows_it_has_changed(tmp_path: Path) -> None:
    copy = open_copy(tmp_path)
    load_rows(copy, 4)
    state = copy.merge(make_rows({1: "one"}, 1), KEY, 101)
    new = make_rows({1: "right", 5: "five"}, 2).drop_columns(["$deleted"])
    replacement = Replacement(state.version, SomeKeys(), new, "repair")  # type: ignore[arg-type]
    copy.replace_rows(replacement, 101)
    assert show(read_feed(tmp_path, newest(tmp_path))) == [
        (1, "one", BEFORE),
        (1, "right", AFTER),
        (2, "n2", DELETE),
        (5, "five", INSERT),
    ]


def test_a_copy_that_is_there_gets_the_feed_with_its_next_merge(tmp_path: Path) -> None:
    load_rows(open_copy(tmp_path, feed=False), 4)
    copy = open_copy(tmp_path)
    copy.merge(make_rows({1: "one"}, 1), KEY, 101)
    assert show(read_feed(tmp_path, newest(tmp_path))) == [(1, "n1", BEFORE), (1, "one", AFTER)]
    # Who opens it without the option goes on writing it, because the table asks for it.
    open_copy(tmp_path, feed=False).merge(make_rows({2: None}, 2), KEY, 102)
    assert show(read_feed(tmp_path, newest(tmp_path))) == [(2, "n2", DELETE)]


def test_a_merge_costs_the_rows_that_change(tmp_path: Path) -> None:
    def open_fed(folder: Path) -> TableCopy:
        return DeltaCopy(str(folder), "c", MERGE_ON_READ, feed=True)

    written = measure_merges(tmp_path, open_fed)
    small, large = written.values()
    assert large < 1.5 * small, written


def test_files_of_the_feed_go_with_the_cuts(tmp_path: Path) -> None:
    copy = open_copy(tmp_path)
    load_rows(copy, 4)
    copy.merge(make_rows({1: "one"}, 1), KEY, 101)
    copy.remove_before(Needed(0, newest(tmp_path)))
    assert len(list((tmp_path / FOLDER).iterdir())) == 1
    copy.remove_before(Needed(1 << 60, newest(tmp_path)))
    assert not list((tmp_path / FOLDER).iterdir())


def count_rows(
    table: CopiedTable, rows: Iterable[Mapping[str, Any]]
) -> Counter[tuple[object, ...]]:
    return Counter(
        tuple(comparable(row[each.name], each.type) for each in table.schema) for row in rows
    )


@pytest.mark.essential
@settings(
    max_examples=10,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_the_changes_of_random_merges_lead_from_each_version_to_the_next(
    tmp_path: Path, data: st.DataObject
) -> None:
    """Tables of any key and any types; each key has one change."""
    table, folder = data.draw(copied_tables()), tmp_path / str(next(COUNT))
    windows = load_and_merge(data, table, open_copy(folder))
    expected, loaded = next(windows)
    before, there = dict(expected.rows), loaded.version
    for expected, state in windows:
        if state.version == there:
            assert expected.rows == before
            continue
        feed = read_feed(folder, state.version).to_pylist()
        gone = [row for row in feed if row[KIND] in (BEFORE, DELETE)]
        come = [row for row in feed if row[KIND] in (AFTER, INSERT)]
        after = count_rows(table, before.values())
        after.subtract(count_rows(table, gone))
        assert min(after.values(), default=0) >= 0, "what went was there"
        after.update(count_rows(table, come))
        assert +after == count_rows(table, expected.rows.values())
        keys = {kind: {table.identify(r) for r in feed if r[KIND] == kind} for kind in (
            BEFORE, AFTER, INSERT, DELETE
        )}  # fmt: skip
        assert keys[BEFORE] == keys[AFTER] == {*before} & {table.identify(r) for r in come}
        assert keys[DELETE] == {*before} - {*expected.rows}
        assert sum(map(len, keys.values())) == len(feed)
        before, there = dict(expected.rows), state.version


def test_a_replica_has_the_feed_of_its_windows(singers: Database, tmp_path: Path) -> None:
    fed = {"replica": {"to": f"delta:{tmp_path}", "change_feed": True}}
    write_singers(singers, range(10), "first")
    replicate(singers, tmp_path, **fed)
    write_singers(singers, range(8, 12), "second")
    (report,) = replicate(singers, tmp_path, **fed)
    assert_equal(singers, tmp_path)
    feed = read_feed(tmp_path / "Singers", report.cut.tables["Singers"].version).to_pylist()
    changes = sorted((row["SingerId"], row[KIND], row["LastName"]) for row in feed)
    assert changes == [
        (8, AFTER, "second"),
        (8, BEFORE, "first"),
        (9, AFTER, "second"),
        (9, BEFORE, "first"),
        (10, INSERT, "second"),
        (11, INSERT, "second"),
    ]
    names = set(feed[0])
    assert "_spanner_commit_timestamp" in names, "beside the feed's own"
    assert "_commit_timestamp" in names


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"to": "iceberg:/x"}, "change_feed is for copies in Delta: remove it"),
        ({"to": "iceberg:/x", "engine": "spark"}, "change_feed is for copies in Delta: remove it"),
        ({"to": "delta:/x", "mode": "history"}, "change_feed is for copies of the latest rows"),
        ({"to": "delta:/x", "merge": "copy-on-write"}, "change_feed is for copies of the latest"),
    ],
)
def test_copies_without_a_feed_are_refused(more: Mapping[str, Any], message: str) -> None:
    database = "projects/p/instances/i/databases/d"
    config = {"database": database, "replica": {**more, "change_feed": True}}
    with pytest.raises((ConfigurationError, ValidationError), match=message):
        parse_watch_config(config)
