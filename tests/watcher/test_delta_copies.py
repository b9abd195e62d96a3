"""A copy as a Delta table: what is committed, what comes again, and what is refused."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from watcher.model.errors import CopyConflictError, ReplicaError, VersionExpiredError
from watcher.replica.copies import DELETED_COLUMN, STAMP_COLUMN, Merging
from watcher.replica.delta.copy import DeltaCopy

SCHEMA = pa.schema(
    [("Id", pa.int64()), ("Name", pa.string()), (STAMP_COLUMN, pa.timestamp("us", "UTC"))]
)
KEY = ("Id",)
Row = tuple[int | None, str | None, int | None]


def rows_of(*rows: Row, deleted: tuple[int, ...] = ()) -> pa.Table:
    """Keys, names and days of January 2026 (None: never stamped)."""
    batch = batch_of(*rows)
    marks = pa.array([row[0] in deleted for row in rows], pa.bool_())
    return pa.Table.from_batches([batch]).append_column(DELETED_COLUMN, marks)


def batch_of(*rows: Row) -> pa.RecordBatch:
    stamps = [datetime(2026, 1, day, tzinfo=UTC) if day else None for _, _, day in rows]
    arrays = [[key for key, _, _ in rows], [name for _, name, _ in rows], stamps]
    columns = [pa.array(a, t) for a, t in zip(arrays, SCHEMA.types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def content(copy: DeltaCopy) -> dict[int | None, str | None]:
    """The names by key; every key has one row."""
    state = copy.read_state()
    assert state is not None
    rows = [row for batch in copy.scan(state.version) for row in batch.to_pylist()]
    names = {row["Id"]: row["Name"] for row in rows}
    assert len(names) == len(rows)
    return names


@pytest.fixture(params=get_args(Merging))
def copy(tmp_path: Path, request: pytest.FixtureRequest) -> DeltaCopy:
    """Two rows, loaded at 100: one without a timestamp. Merged in both ways."""
    copy = DeltaCopy(str(tmp_path), "c", request.param)
    copy.load(SCHEMA, [batch_of((1, "one", None), (2, "two", 10))], 100)
    return copy


def test_a_commit_carries_the_end_as_transaction_and_metadata(
    copy: DeltaCopy, tmp_path: Path
) -> None:
    copy.merge(rows_of((1, "uno", 11)), KEY, 200)
    table = DeltaTable(str(tmp_path))
    assert table.transaction_version("spanner-watcher/c") == 200
    assert table.transaction_version("spanner-watcher/other") is None
    merge, load, create = table.history()
    assert create["operation"] == "CREATE TABLE"
    marks = [json.loads(commit["spanner_watcher"]) for commit in (merge, load)]
    assert [(mark["kind"], mark["end"]) for mark in marks] == [("merge", 200), ("load", 100)]
    log = (tmp_path / "_delta_log" / f"{2:020d}.json").read_text().splitlines()
    kinds = sorted(next(iter(json.loads(line))) for line in log)
    added = ["add", "add"] if DeltaCopy(str(tmp_path), "c")._merges.use_vectors() else ["add"]
    assert kinds == [*added, "commitInfo", "remove", "txn"], "one commit"


def test_rows_without_a_timestamp_are_replaced_by_their_first_change(copy: DeltaCopy) -> None:
    copy.merge(rows_of((1, "uno", 1)), KEY, 200)
    assert content(copy) == {1: "uno", 2: "two"}


def test_an_older_version_does_not_replace_a_newer_one(copy: DeltaCopy) -> None:
    copy.merge(rows_of((2, "older", 9), (3, "three", 9)), KEY, 200)
    assert content(copy) == {1: "one", 2: "two", 3: "three"}
    copy.merge(rows_of((2, None, 9), deleted=(2,)), KEY, 300)
    assert content(copy) == {1: "one", 2: "two", 3: "three"}, "an older delete"


def test_the_merge_of_the_documentation_updates_rows_without_a_timestamp(
    copy: DeltaCopy, tmp_path: Path
) -> None:
    """The listing is for Spark; its condition is SQL that delta-rs takes, too."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "spark.md").read_text()
    (condition,) = re.findall(r'\.whenMatchedUpdateAll\("(.*)"\)', text)
    table = DeltaTable(str(tmp_path))
    for rows in (batch_of((1, "uno", 1), (2, "older", 9)), batch_of((1, "older", None))):
        (
            table.merge(rows, "t.Id = s.Id", source_alias="s", target_alias="t")
            .when_matched_update_all(condition.replace("_commit_timestamp", f'"{STAMP_COLUMN}"'))
            .when_not_matched_insert_all()
            .execute()
        )
    assert content(copy) == {1: "uno", 2: "two"}


def test_rows_are_removed(copy: DeltaCopy) -> None:
    copy.merge(rows_of((1, None, 11), (2, None, 11), (7, None, 11), deleted=(1, 2, 7)), KEY, 200)
    assert content(copy) == {}


def test_rows_that_come_again_commit_nothing(copy: DeltaCopy) -> None:
    rows = rows_of((1, "uno", 11), (2, None, 11), (3, "three", 11), deleted=(2,))
    first = copy.merge(rows, KEY, 200)
    assert copy.merge(rows, KEY, 250).version == first.version
    assert content(copy) == {1: "uno", 3: "three"}


def test_a_key_that_is_null_has_one_row(copy: DeltaCopy) -> None:
    copy.merge(rows_of((None, "null", 11)), KEY, 200)
    copy.merge(rows_of((None, "NULL", 12)), KEY, 300)
    assert content(copy) == {1: "one", 2: "two", None: "NULL"}
    copy.merge(pa.concat_tables([rows_of((None, "", 13), deleted=())]), KEY, 400)
    assert content(copy)[None] == ""


@pytest.mark.parametrize("kind", ["load", "merge"])
@pytest.mark.parametrize("stale", [True, False], ids=["stale-snapshot", "newest-snapshot"])
def test_a_stale_writer_is_refused(copy: DeltaCopy, tmp_path: Path, kind: str, stale: bool) -> None:
    """It was frozen before it opened the table, or after that, while another one went on."""
    frozen = DeltaCopy(str(tmp_path), "c")
    frozen.read_state()
    before = [DeltaTable(str(tmp_path))] if stale else []
    copy.merge(rows_of((1, None, 15), (9, "nine", 15), deleted=(1,)), KEY, 300)
    opened = frozen._commits.open
    frozen._commits.open = lambda: before.pop() if before else opened()  # type: ignore[method-assign]
    writes: dict[str, Callable[[], object]] = {
        "load": lambda: frozen.load(SCHEMA, [batch_of((5, "five", None))], 200),
        "merge": lambda: frozen.merge(rows_of((1, "back", 11)), KEY, 200),
    }
    with pytest.raises(CopyConflictError, match="one instance of consumer 'c'"):
        writes[kind]()
    assert content(copy) == {2: "two", 9: "nine"}
    state = copy.read_state()
    assert state is not None
    assert state.end == 300


def test_a_compaction_meanwhile_is_no_conflict(copy: DeltaCopy, tmp_path: Path) -> None:
    copy.merge(rows_of((3, "three", 11)), KEY, 200)
    before = DeltaTable(str(tmp_path))
    DeltaTable(str(tmp_path)).optimize.z_order(["Id"])
    tables = iter([before])
    racing = DeltaCopy(str(tmp_path), "c")
    racing.read_state()
    opened = racing._commits.open
    racing._commits.open = lambda: next(tables, None) or opened()  # type: ignore[method-assign]
    racing.merge(rows_of((1, "uno", 12)), KEY, 300)
    assert content(copy) == {1: "uno", 2: "two", 3: "three"}


def test_two_first_loads_meet(tmp_path: Path) -> None:
    first, second = DeltaCopy(str(tmp_path), "c"), DeltaCopy(str(tmp_path), "c")

    def overtaken() -> Iterator[pa.RecordBatch]:
        batches = [batch_of((1, "first", None))]
        # delta-rs refuses a call from within the reader of another one.
        thread = threading.Thread(target=lambda: first.load(SCHEMA, batches, 200))
        thread.start()
        thread.join(60)
        yield batch_of((1, "second", None))

    with pytest.raises(CopyConflictError):
        second.load(SCHEMA, overtaken(), 100)
    assert content(first) == {1: "first"}


def test_what_a_load_reads_may_fail_and_nothing_is_changed(copy: DeltaCopy) -> None:
    def expire() -> Iterator[pa.RecordBatch]:
        yield batch_of((5, "five", None))
        raise VersionExpiredError("too old")

    with pytest.raises(VersionExpiredError, match="too old"):
        copy.load(SCHEMA, expire(), 200)
    assert content(copy) == {1: "one", 2: "two"}


def test_a_load_replaces_rows_and_columns(copy: DeltaCopy) -> None:
    schema = pa.schema([("Id", pa.int64()), ("City", pa.binary())])
    batch = pa.RecordBatch.from_pylist([{"Id": 4, "City": b"x"}], schema=schema)
    state = copy.load(schema, [batch], 200)
    assert state.schema.names == ["Id", "City"]
    assert [row for b in copy.scan(state.version) for row in b.to_pylist()] == [
        {"Id": 4, "City": b"x"}
    ]
    assert copy.load(schema, [], 300).end == 300
    assert sum(batch.num_rows for batch in copy.scan(state.version + 1)) == 0


def test_a_version_that_is_gone_is_explained(copy: DeltaCopy) -> None:
    with pytest.raises(ReplicaError, match="use a later cut"):
        list(copy.scan(77))
