"""Chunks of a load by Spark, without a session: what is planned, what executors read, and what the
log says of writers that did not know of each other."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from fixtures.singers import capture_of, fetch_now, write_singers
from google.cloud.spanner_v1.database import Database

from watcher.model.errors import VersionExpiredError
from watcher.replica.delta.log import DeltaLog, name_entry
from watcher.replica.loads import ChunkLimit, ChunkPace, LoadProgress
from watcher.runners.spark.chunks import LoadedPart, plan_chunk

NUMBERS = pa.record_batch({"id": pa.array(range(100), pa.int64())})


@pytest.mark.essential
@pytest.mark.parametrize("rows", [1, 4, 5, 20, 21])
def test_chunks_are_the_table_in_the_order_of_its_key(singers: Database, rows: int) -> None:
    write_singers(singers, range(20), "name")
    capture, at = capture_of(singers), fetch_now(singers)
    progress, keys = None, list[int]()
    while True:
        planned = pickle.loads(pickle.dumps(plan_chunk(capture, at, progress, rows, 3)))
        read = list(planned.read([NUMBERS.slice(0, len(planned.ranges))]))
        keys += [key for batch in read for key in batch.column("SingerId").to_pylist()]
        assert planned.chunk.first == (progress is None)
        progress = planned.chunk.progress
        if progress is None:
            break
        assert (progress.rows, progress.upto) == (len(keys), (str(keys[-1]),))
        assert progress.chunks == len(keys) // rows
    assert keys == list(range(20))


def test_a_window_has_the_rows_whose_keys_are_loaded(singers: Database) -> None:
    table = capture_of(singers).table
    part = pickle.loads(pickle.dumps(LoadedPart(table, LoadProgress(("7",), 8, 0, 1, 1))))
    rows = pa.record_batch({"SingerId": pa.array([9, 7, 3, 8], pa.int64())})
    kept = [key for batch in part.keep([rows]) for key in batch.column(0).to_pylist()]
    assert kept == [7, 3]


def test_keys_that_cannot_be_read_any_more_are_no_chunk(
    singers: Database, faults: Callable[..., None]
) -> None:
    write_singers(singers, range(20), "name")
    capture, at = capture_of(singers), fetch_now(singers)
    faults(versions_kept_seconds=0.000_001)
    with pytest.raises(VersionExpiredError):
        plan_chunk(capture, at, None, 5, 3)


def test_a_chunk_has_as_many_rows_as_fit_its_time() -> None:
    pace = ChunkPace(ChunkLimit(seconds=60.0))
    first = pace.rows
    pace.note(first, 120.0)
    assert pace.rows == first // 2
    pace.note(pace.rows, 0.001)
    assert pace.rows == 2 * first, "it grows slowly"
    assert ChunkPace(ChunkLimit(rows=5)).rows == 5


@pytest.mark.parametrize(
    ("commits", "chained"),
    [
        (["load a", "chunk b a", "merge b", "chunk c b"], True),
        (["load a", "merge a", "other", "chunk b a"], True),
        (["chunk x w", "load a", "chunk b a"], True),
        (["load a", "chunk b a", "chunk c a"], False),
        (["load a", "chunk b a", "merge a"], False),
        (["load a", "chunk b a", "merge a", "chunk c a", "merge c"], False),
    ],
)
def test_commits_that_did_not_know_each_other_are_found(
    tmp_path: Path, commits: list[str], chained: bool
) -> None:
    """Of a chunk: its ID, and that of the one it follows. Also by who has looked before."""
    (tmp_path / "_delta_log").mkdir()
    log = DeltaLog(str(tmp_path), "c")
    for version, text in enumerate(commits):
        write_commit(tmp_path, version, text)
        found = log.is_chained(version)
    assert DeltaLog(str(tmp_path), "c").is_chained(len(commits) - 1) == found == chained


def test_what_was_found_chained_is_not_read_again(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    for version, text in enumerate(["load a", "chunk b a", "chunk c b", "chunk d c"]):
        write_commit(tmp_path, version, text)
    log = DeltaLog(str(tmp_path), "c")
    assert log.is_chained(2)
    for version in (0, 1):
        (tmp_path / "_delta_log" / name_entry(version)).write_text("unreadable")
    assert log.is_chained(3)


def write_commit(folder: Path, version: int, text: str) -> None:
    """An entry of the log: a kind, and the IDs of a chunk and of the one it follows."""
    kind, *ids = text.split()
    mark = {"consumer": "c", "kind": kind, **dict(zip(("chunk", "on"), ids, strict=False))}
    said = {} if kind == "other" else {"userMetadata": json.dumps({"spanner_watcher": mark})}
    entry = json.dumps({"commitInfo": {"operation": "WRITE", **said}})
    (folder / "_delta_log" / name_entry(version)).write_text(entry)
