"""The primary key of a table is a property of its copy, where other engines find it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from fixtures.changing_schemas import watchable_ddl
from fixtures.replicas import assert_equal, open_table, read_rows, replicate
from fixtures.server import CreateDatabase

from watcher.replica.copies import PRIMARY_KEY
from watcher.replica.cuts.cut import DELTA
from watcher.replica.iceberg.catalog import open_catalog

TWO = (
    "CREATE TABLE Two (B STRING(9), A INT64 NOT NULL, Text STRING(MAX),"
    " ShardId INT64 AS (MOD(A, 2)) STORED, LastModified TIMESTAMP"
    " DEFAULT (PENDING_COMMIT_TIMESTAMP()) ON UPDATE (PENDING_COMMIT_TIMESTAMP())"
    " OPTIONS (allow_commit_timestamp = true)) PRIMARY KEY (B DESC, A)",
    "CREATE NULL_FILTERED INDEX TwoByTime ON Two (ShardId, LastModified)",
)


def read_properties(folder: Path, table: str, format_: str) -> Mapping[str, str]:
    if format_ == DELTA:
        return open_table(folder, table).metadata().configuration
    opened = open_catalog(str(folder)).load(table)
    assert opened is not None
    return opened.properties


def test_a_copy_tells_the_primary_key_of_its_table(
    create_database: CreateDatabase, tmp_path: Path, own_format: str
) -> None:
    """Also a load in chunks, and after a merge."""
    database = create_database(*watchable_ddl("T"), *TWO)
    for text in ("a", "b"):
        with database.batch() as batch:
            rows = [(name, number, text) for name in ("x", None) for number in range(3)]
            batch.insert_or_update("Two", ("B", "A", "Text"), rows)
        to = {"to": f"{own_format}:{tmp_path}", "load_rows": 2}
        replicate(database, tmp_path, tables=["T", "Two"], replica=to)
        assert_equal(database, tmp_path)
        keys = {
            name: json.loads(read_properties(tmp_path, name, own_format)[PRIMARY_KEY])
            for name in ("T", "Two")
        }
        assert keys == {"T": ["Id"], "Two": ["B", "A"]}
    assert {row["Text"] for row in read_rows(tmp_path, "Two")} == {"b"}
