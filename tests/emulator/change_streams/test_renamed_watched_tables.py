"""A change stream goes on with a table under its new name."""

from __future__ import annotations

from datetime import timedelta

import pytest
from google.cloud.spanner_v1.database import Database
from stream_reader import now, read_all


@pytest.mark.ddl(
    "CREATE TABLE A (K INT64, V INT64) PRIMARY KEY (K)",
    "CREATE TABLE B (K INT64, V INT64) PRIMARY KEY (K)",
    "CREATE CHANGE STREAM S FOR A (V)",
)
def test_changes_have_the_name_of_their_time(database: Database) -> None:
    start = now()

    def write(value: int) -> None:
        with database.batch() as batch:
            batch.insert_or_update("A", ["K", "V"], [[1, value]])
            batch.insert_or_update("B", ["K", "V"], [[1, value]])

    write(1)
    database.update_ddl(["RENAME TABLE A TO C, B TO A, C TO B"]).result(60)
    write(2)
    contents = read_all(database, "S", start, now() + timedelta(seconds=1))
    assert [record[4] for record in sorted(contents.data)] == ["A", "B"]
