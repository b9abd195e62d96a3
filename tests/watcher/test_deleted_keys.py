"""Rows of polled tables that are deleted leave the copy, because keys are compared now and then."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from fixtures.commands import run_command
from fixtures.replicas import (
    CONSUMER,
    SMALL,
    assert_equal,
    make_replicator,
    open_table,
    read_delta,
    replicate,
    verify_folder,
)
from fixtures.singers import address_of, write_singers
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from watcher.model.errors import ConfigurationError, VersionExpiredError
from watcher.replica.replica_window import CutReport
from watcher.replica.verification.copied_rows import CopiedRows
from watcher.replica.verification.deleted_keys import DeletedKeys
from watcher.runners import replicator
from watcher.settings.watcher import parse_watch_config
from watcher.spanner.key_values import Parts

MERGES = ["merge-on-read", "copy-on-write"]


def comparing(folder: Path, merge: str = "merge-on-read", **more: Any) -> dict[str, Any]:
    return {"replica": {"to": f"delta:{folder}", "merge": merge, "deletes": "compare"} | more}


def delete_singers(database: Database, *keys: int) -> None:
    with database.batch() as batch:
        batch.delete("Singers", KeySet(keys=[[key] for key in keys]))


def read_keys(folder: Path) -> list[int]:
    rows = read_delta(open_table(folder, "Singers")).column("SingerId").to_pylist()
    return sorted(rows)


@pytest.mark.parametrize("merge", MERGES)
def test_deleted_rows_leave_the_copy_of_a_polled_table(
    singers: Database, tmp_path: Path, merge: str
) -> None:
    write_singers(singers, range(100), "first")
    replicate(singers, tmp_path, **comparing(tmp_path, merge))
    delete_singers(singers, 3, 50, 99)
    replicate(singers, tmp_path, replica={"to": f"delta:{tmp_path}", "merge": merge})
    assert not verify_folder(singers, tmp_path).equal, "polling sees no deletes"
    write_singers(singers, [4, 200], "second")
    (report,) = replicate(singers, tmp_path, **comparing(tmp_path, merge))
    assert report.cut.exact
    assert read_keys(tmp_path) == sorted({*range(100), 200} - {3, 50, 99})
    assert_equal(singers, tmp_path)
    write_singers(singers, [3], "back")
    replicate(singers, tmp_path, **comparing(tmp_path, merge))
    assert 3 in read_keys(tmp_path)
    assert_equal(singers, tmp_path)


def test_a_row_that_is_there_twice_is_there_once(singers: Database, tmp_path: Path) -> None:
    write_singers(singers, range(20), "first")
    replicate(singers, tmp_path, **comparing(tmp_path))
    table = open_table(tmp_path, "Singers")
    write_deltalake(table, read_delta(table).slice(5, 2), mode="append")
    write_singers(singers, [1], "second")
    replicate(singers, tmp_path, **comparing(tmp_path))
    assert read_keys(tmp_path) == list(range(20))


def test_a_cut_says_since_when_deletes_may_be_missing(singers: Database, tmp_path: Path) -> None:
    write_singers(singers, range(20), "first")
    caveats: list[tuple[str, ...]] = []

    def follow(report: CutReport) -> None:
        caveats.append(report.cut.tables["Singers"].caveats)
        if len(caveats) == 1:
            delete_singers(singers, 5)
            write_singers(singers, [1], "second")
        else:
            following.stop()

    following = make_replicator(singers, tmp_path, follow, **comparing(tmp_path))
    following.run()
    assert caveats[0] == ()
    assert caveats[-1][0].startswith("rows that were deleted after 20")
    assert 5 in read_keys(tmp_path), "it is not due yet"


def test_rows_that_are_deleted_between_two_chunks_of_a_load_leave_the_copy(
    singers: Database, tmp_path: Path
) -> None:
    write_singers(singers, range(10), "first")
    cuts: list[CutReport] = []

    def follow(report: CutReport) -> None:
        cuts.append(report)
        if len(cuts) == 1:
            delete_singers(singers, 0)

    settings = comparing(tmp_path, load_rows=4)
    make_replicator(singers, tmp_path, follow, **settings).run_once()
    assert [each.cut.exact for each in cuts] == [False, False, True]
    assert cuts[-1].cut.tables["Singers"].caveats == ()
    assert read_keys(tmp_path) == [*range(1, 10)]
    assert_equal(singers, tmp_path)


def test_a_comparison_that_removes_nothing_in_the_end_is_made_again(
    singers: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has found cannot be read at the window's end any more."""
    write_singers(singers, range(10), "first")
    replicate(singers, tmp_path, **comparing(tmp_path))
    delete_singers(singers, 0)
    write_singers(singers, [1], "second")
    read, caveats = CopiedRows.read, list[tuple[str, ...]]()

    def read_later(rows: CopiedRows, keys: Collection[Parts], at: int) -> pa.Table:
        if not caveats:
            raise VersionExpiredError("the window's end is not kept any more")
        return read(rows, keys, at)

    def follow(report: CutReport) -> None:
        caveats.append(report.cut.tables["Singers"].caveats)
        write_singers(singers, [1], f"later {len(caveats)}")
        if len(caveats) == 2:
            following.stop()

    monkeypatch.setattr(CopiedRows, "read", read_later)
    following = make_replicator(singers, tmp_path, follow, **comparing(tmp_path))
    following.run()
    assert caveats == [("rows that were deleted since it was loaded may be in the copy",), ()]
    assert read_keys(tmp_path) == [*range(1, 10)]


def test_keys_are_compared_when_they_are_due() -> None:
    now = [0.0]
    deleted = DeletedKeys("d", CONSUMER, 60.0, lambda: now[0])
    assert deleted.is_due("T")
    assert deleted.explain("T", 5) == (
        "rows that were deleted since it was loaded may be in the copy",
    )
    deleted.note("T", 5)
    assert not deleted.is_due("T")
    assert deleted.explain("T", 5) == ()
    now[0] = 60.0
    assert deleted.is_due("T")


@pytest.mark.parametrize("merge", MERGES)
def test_random_deletes_are_followed(
    singers: Database, tmp_path: Path, merge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In ranges that are divided."""
    small = replace(SMALL, shown_max=10_000)
    monkeypatch.setattr(replicator, "DeletedKeys", partial(DeletedKeys, depth=small))
    seed = random.randrange(2**32)
    print("seed", seed)
    chooser = random.Random(seed)
    write_singers(singers, range(150), "first")
    replicate(singers, tmp_path, **comparing(tmp_path, merge))
    for number in range(3):
        delete_singers(singers, *{chooser.randrange(200) for _ in range(20)})
        write_singers(singers, {chooser.randrange(200) for _ in range(9)}, f"name {number}")
        replicate(singers, tmp_path, **comparing(tmp_path, merge))
        assert_equal(singers, tmp_path)


def test_deletes_by_interleaving_are_found(singers: Database, tmp_path: Path) -> None:
    """Nobody names rows that go with their parent."""
    singers.update_ddl(
        [
            "CREATE TABLE Songs (SingerId INT64, SongId INT64, LastModified TIMESTAMP OPTIONS"
            " (allow_commit_timestamp = true)) PRIMARY KEY (SingerId, SongId),"
            " INTERLEAVE IN PARENT Singers ON DELETE CASCADE"
        ]
    ).result(60)
    write_singers(singers, range(5), "first")
    stamp = "spanner.commit_timestamp()"
    with singers.batch() as batch:
        songs = [(key, song, stamp) for key in range(5) for song in range(3)]
        batch.insert("Songs", ("SingerId", "SongId", "LastModified"), songs)
    more = comparing(tmp_path) | {"tables": ["Singers", "Songs"]}
    more |= {"table": {"Songs": {"shard": "none", "timestamp_column": "LastModified"}}}
    replicate(singers, tmp_path, **more)
    delete_singers(singers, 2)
    replicate(singers, tmp_path, **more)
    songs_left = read_delta(open_table(tmp_path, "Songs")).column("SingerId").to_pylist()
    assert sorted(set(songs_left)) == [0, 1, 3, 4]
    assert_equal(singers, tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"to": "parquet:/lake", "engine": "spark"}, "is for copies in Delta and Iceberg"),
        ({"deletes": "none", "compare_keys": "5m"}, "add that, or remove it"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(
    tmp_path: Path, settings: dict[str, str], message: str
) -> None:
    config = {"database": "spanner://projects/p1/instances/i1/databases/d1", "tables": ["T"]}
    with pytest.raises(ConfigurationError, match=message):
        parse_watch_config(config | comparing(tmp_path, **settings))


def test_a_change_stream_needs_no_comparison(singers: Database, tmp_path: Path) -> None:
    stream = run_command(
        *("replicate", "--once", "-d", str(address_of(singers)), "-t", "Singers"),
        *("--to", f"delta:{tmp_path}", "--stream", "S", "--deletes", "compare"),
    )
    assert stream.returncode == 2
    assert "remove deletes = 'compare'" in stream.stderr
