"""The column that copies add: a name that nobody reserves, and copies that have the old one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from fixtures.replicas import (
    CONSUMER,
    adopt_newest,
    assert_equal,
    last_cut,
    make_replicator,
    open_table,
    read_rows,
    replicate,
)
from fixtures.singers import write_singers
from google.cloud.spanner_v1.database import Database

from watcher.replica.copies import STAMP_COLUMN, STAMP_COLUMNS
from watcher.replica.delta.copy import DeltaCopy
from watcher.replica.reading import as_of

BEFORE = "_commit_timestamp"
CHANGE_DATA_FEED = {"delta.enableChangeDataFeed": "true"}
RESERVED = frozenset(
    {
        # Delta: the change data feed; row tracking.
        *("_change_type", "_commit_version", "_commit_timestamp", "_row_id", "_row_commit_version"),
        # Iceberg: metadata columns, and those of changelogs and of deletes.
        *("_file", "_pos", "_deleted", "_spec_id", "_partition", "file_path", "pos", "row"),
        *("_last_updated_sequence_number", "_change_ordinal", "_commit_snapshot_id"),
        # Spark and Hive.
        *("_metadata", "_corrupt_record", "_rescued_data", "block__offset__inside__file"),
        *("input__file__name", "row__id"),
    }
)
RESERVED_PREFIXES = (
    # BigQuery, Hudi, Delta.
    *("_table_", "_file_", "_partition", "_row_timestamp", "__root__", "_colidentifier"),
    *("_change_", "_hoodie_", "__delta_"),
)


def test_no_format_reserves_the_name() -> None:
    assert STAMP_COLUMN.casefold() not in RESERVED
    assert not STAMP_COLUMN.casefold().startswith(RESERVED_PREFIXES)
    assert STAMP_COLUMN.startswith("_"), "or a column of Spanner may have it"


def test_a_copy_can_have_a_change_data_feed(singers: Database, tmp_path: Path) -> None:
    write_singers(singers, range(3), "old")
    replicate(singers, tmp_path)
    table = open_table(tmp_path, "Singers")
    table.alter.set_table_properties(CHANGE_DATA_FEED)
    version = table.version()
    write_singers(singers, [1, 7], "new")
    (report,) = replicate(singers, tmp_path)
    assert report.merged == {"Singers": 2}
    feed = DeltaTable(str(tmp_path / "Singers")).load_cdf(starting_version=version + 1)
    rows = [
        (row["SingerId"], row["LastName"], row["_change_type"], row[STAMP_COLUMN] is not None)
        for row in pa.table(feed.read_all()).to_pylist()
    ]
    assert sorted(rows) == [
        (1, "new", "update_postimage", True),
        (1, "old", "update_preimage", True),
        (7, "new", "insert", True),
    ]
    assert_equal(singers, tmp_path)


def rename_as_before(folder: Path) -> None:
    """The copy of Singers as version 1.0.0 would have loaded it."""
    cut, rows = last_cut(folder), as_of(str(folder)).read("Singers")
    names = [BEFORE if name == STAMP_COLUMN else name for name in rows.column_names]
    before = rows.rename_columns(names)
    copy = DeltaCopy(str(folder / "Singers"), CONSUMER)
    copy.read_state()
    copy.load(before.schema, before.to_batches(), cut.end)
    adopt_newest(folder, "Singers")


def find_stamps(folder: Path) -> set[str]:
    return read_rows(folder, "Singers")[0].keys() & set(STAMP_COLUMNS)


def test_a_copy_of_an_earlier_version_goes_on_under_its_name(
    singers: Database, tmp_path: Path
) -> None:
    write_singers(singers, range(3), "old")
    replicate(singers, tmp_path)
    rename_as_before(tmp_path)
    assert_equal(singers, tmp_path)
    (plan,) = make_replicator(singers, tmp_path).plan()
    assert plan.action == "merge"
    write_singers(singers, [1, 7], "new")
    (report,) = replicate(singers, tmp_path)
    assert (report.loaded, report.merged) == ({}, {"Singers": 2})
    assert find_stamps(tmp_path) == {BEFORE}
    names = {row["SingerId"]: row["LastName"] for row in read_rows(tmp_path, "Singers")}
    assert names == {0: "old", 1: "new", 2: "old", 7: "new"}
    assert_equal(singers, tmp_path)
    shutil.rmtree(tmp_path / "Singers")
    (report,) = replicate(singers, tmp_path)
    assert report.loaded == {"Singers": 4}
    assert find_stamps(tmp_path) == {STAMP_COLUMN}
    assert_equal(singers, tmp_path)
