"""Partitions of reads and queries: several, disjoint, and together everything at one timestamp."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from google.api_core import exceptions
from google.cloud.spanner_v1 import KeyRange, KeySet
from google.cloud.spanner_v1.database import Database

TABLE = (
    "CREATE TABLE T (A STRING(MAX), B INT64 NOT NULL, Shard INT64, V STRING(MAX)) "
    "PRIMARY KEY (A, B DESC)"
)
INDEX = "CREATE NULL_FILTERED INDEX ByShard ON T (Shard, V DESC)"
COLUMNS = ("A", "B", "Shard", "V")
ROWS = [
    (None if n % 7 == 0 else f"a?{n % 5}", n, None if n % 3 == 0 else n % 4, f"v{n % 11}")
    for n in range(200)
]

pytestmark = pytest.mark.ddl(TABLE, INDEX)


@pytest.fixture(autouse=True)
def fill(database: Database) -> None:
    with database.batch() as batch:
        batch.insert("T", COLUMNS, ROWS)


def change_everything(database: Database) -> None:
    with database.batch() as batch:
        batch.update("T", ("A", "B", "V"), [(a, b, "later") for a, b, _, _ in ROWS[::2]])
        batch.delete("T", KeySet(keys=[[a, b] for a, b, _, _ in ROWS[1::10]]))
        batch.insert("T", COLUMNS, [("new", n, 1, "later") for n in range(50)])


def sort_by_text(rows: Sequence[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return sorted(rows, key=repr)


def query_partitions(
    database: Database, sql: str, later: bool, **options: object
) -> list[list[tuple[object, ...]]]:
    batch = database.batch_snapshot()
    parts = list(batch.generate_query_batches(sql, **options))
    if later:
        change_everything(database)
    partitions = [[tuple(row) for row in batch.process_query_batch(part)] for part in parts]
    batch.close()
    return partitions


@pytest.mark.parametrize("later", [False, True])
def test_the_partitions_of_a_read_are_several_and_together_everything(
    database: Database, later: bool
) -> None:
    batch = database.batch_snapshot()
    parts = list(batch.generate_read_batches("T", COLUMNS, KeySet(all_=True)))
    if later:
        change_everything(database)
    partitions = [[tuple(row) for row in batch.process_read_batch(part)] for part in parts]
    batch.close()
    assert len(partitions) > 1
    assert all(partitions)
    assert sort_by_text([row for part in partitions for row in part]) == sort_by_text(ROWS)


@pytest.mark.parametrize("later", [False, True])
def test_the_partitions_of_an_index_read_follow_its_keys(database: Database, later: bool) -> None:
    batch = database.batch_snapshot()
    keys = KeySet(ranges=[KeyRange(start_closed=[1], end_closed=[2])])
    columns = ("Shard", "V", "A", "B")
    parts = list(batch.generate_read_batches("T", columns, keys, index="ByShard"))
    if later:
        change_everything(database)
    read = [tuple(row) for part in parts for row in batch.process_read_batch(part)]
    batch.close()
    assert len(parts) > 1
    assert sort_by_text(read) == sort_by_text([(s, v, a, b) for a, b, s, v in ROWS if s in {1, 2}])


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("table", ["T", "T@{FORCE_INDEX=ByShard}"])
def test_the_partitions_of_a_query_together_are_its_result(
    database: Database, table: str, later: bool
) -> None:
    sql = f"SELECT A, B, Shard, V FROM {table} WHERE Shard > 0 AND V IS NOT NULL"
    partitions = query_partitions(database, sql, later)
    assert len(partitions) > 1
    expected = sort_by_text([row for row in ROWS if (row[2] or 0) > 0])
    assert sort_by_text([row for part in partitions for row in part]) == expected


@pytest.mark.parametrize(
    ("where", "several"),
    [
        ("B = 7 AND 'a' = A", False),
        ("A = 'a'", True),
        ("A = 'a' OR B = 7", True),
        ("A = CAST(B AS STRING) AND B = 7", True),
    ],
)
def test_a_query_of_one_key_has_one_partition(
    database: Database, where: str, several: bool
) -> None:
    partitions = query_partitions(database, f"SELECT A, B FROM T WHERE {where}", False)
    assert (len(partitions) > 1) is several


def test_data_boost_is_accepted(database: Database) -> None:
    partitions = query_partitions(database, "SELECT B FROM T", False, data_boost_enabled=True)
    assert len(partitions) > 1
    assert sort_by_text([row for part in partitions for row in part]) == sort_by_text(
        [(n,) for n in range(200)]
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM T",
        "SELECT MAX(B) + 1 FROM T",
        "SELECT A FROM T ORDER BY A",
        "SELECT A FROM T LIMIT 3",
        "SELECT DISTINCT A FROM T",
        "SELECT A FROM T GROUP BY A",
        "SELECT x.A FROM T AS x JOIN T AS y ON x.B = y.B",
        "SELECT A FROM T WHERE B IN (SELECT B FROM T)",
        "SELECT A FROM T UNION ALL SELECT A FROM T",
        "SELECT 1",
        "SELECT A FROM T, UNNEST([1, 2]) AS u",
        "SELECT ARRAY(SELECT 1) FROM T",
    ],
)
def test_a_query_that_is_not_row_by_row_is_refused(database: Database, sql: str) -> None:
    batch = database.batch_snapshot()
    with pytest.raises(exceptions.InvalidArgument, match="not root partitionable"):
        list(batch.generate_query_batches(sql))
    batch.close()


def test_a_token_of_another_query_is_refused(database: Database) -> None:
    batch = database.batch_snapshot()
    part = next(iter(batch.generate_query_batches("SELECT A FROM T")))
    part["query"]["sql"] = "SELECT B FROM T"
    with pytest.raises(exceptions.InvalidArgument, match="partition token"):
        list(batch.process_query_batch(part))
    batch.close()
