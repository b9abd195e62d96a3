"""A table that is renamed is loaded under its new name; cuts before that name the old one."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures.changing_schemas import STREAM_DDL, change_schema, watchable_ddl
from fixtures.changing_schemas import write as write_table
from fixtures.replicas import assert_equal, last_cut, read_rows, replicate
from fixtures.server import CreateDatabase

from watcher.replica.reading import as_of
from watcher.spanner.timestamps import format_timestamp


@pytest.mark.both_dialects
@pytest.mark.parametrize("capture", ["poll", "change-stream"])
def test_a_renamed_table_is_loaded_under_its_new_name(
    create_database: CreateDatabase, tmp_path: Path, capture: str
) -> None:
    """With what is written around it; the other tables are only merged."""
    database = create_database(*watchable_ddl("Old"), *watchable_ddl("Other"), STREAM_DDL)
    for name in ("Old", "Other"):
        write_table(database, *range(6), table=name, Version=1)
    replicate(database, tmp_path, tables=["*"], capture=capture)
    before = last_cut(tmp_path)
    assert set(before.tables) == {"Old", "Other"}
    write_table(database, 1, table="Old", Version=2)
    change_schema(database, "ALTER TABLE Old RENAME TO Renamed")
    write_table(database, 2, 9, table="Renamed", Version=3)
    reports = replicate(database, tmp_path, tables=["*"], capture=capture)
    assert {name for report in reports for name in report.loaded} == {"Renamed"}
    cut = last_cut(tmp_path)
    assert set(cut.tables) == {"Renamed", "Other"}
    assert_equal(database, tmp_path, cut)
    versions = {row["Id"]: row["Version"] for row in read_rows(tmp_path, "Renamed")}
    assert versions == dict.fromkeys(range(6), 1) | {1: 2, 2: 3, 9: 3}
    earlier = as_of(f"delta:{tmp_path}", format_timestamp(before.end))
    assert earlier.read("Old").num_rows == 6
    assert_equal(database, tmp_path, before)
