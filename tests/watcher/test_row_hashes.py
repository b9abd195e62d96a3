"""The hash of a row: the same in both dialects, for the same rows, and of their copy in Arrow."""

from __future__ import annotations

import math
from base64 import b64encode
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from fixtures.server import create_and_drop
from fixtures.singers import address_of
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.instance import Instance

from spanner_schema.model.schema import Dialect
from watcher.replica.keys.order import KeyColumn, KeyOrder
from watcher.replica.keys.ranges import KeyInterval
from watcher.replica.verification.canonical import ComparedColumn
from watcher.replica.verification.column_groups import ColumnGroup
from watcher.replica.verification.row_hashes import hash_rows
from watcher.replica.verification.spanner_sums import ComparedTable, RangeSum, read_sum
from watcher.spanner.queries import QueryClient
from watcher.spanner.results.columns import build_schema
from watcher.tables.discovery import read_schema

TABLE = """CREATE TABLE T (Id INT64, B BOOL, R FLOAT32, D FLOAT64, N NUMERIC, S STRING(MAX),
X BYTES(MAX), Da DATE, Ti TIMESTAMP, U UUID, Ds ARRAY<FLOAT64>, Ss ARRAY<STRING(MAX)>)
PRIMARY KEY (Id)"""
MOMENT = datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)
ROWS: list[dict[str, Any]] = [
    {
        "Id": 1,
        "B": True,
        "R": -1.5,
        "D": 0.1,
        "N": Decimal("-1.50"),
        "S": "ä \\ '\" \\x41 \n",
        "X": b"\x00\xff",
        "Da": date(1, 1, 1),
        "Ti": MOMENT,
        "U": "6f1c7c1e-6d0a-4c3b-9d55-1f7f0c2a9b01",
        "Ds": [3.5, None, -1e-7],
        "Ss": ["b", "", None, "a"],
    },
    {"Id": 2, "D": -0.0, "R": 0.1, "N": Decimal("100"), "S": "", "Ds": [], "Ss": ["x"]},
    {"Id": 3, "D": math.nan, "R": math.inf, "N": Decimal("0.000000001"), "B": False},
    {"Id": 4, "D": -math.inf, "N": Decimal("9" * 29 + ".999999999"), "Da": date(9999, 12, 31)},
    {"Id": 5, "D": 1e308, "N": Decimal(0), "Ti": datetime(9999, 12, 31, tzinfo=UTC)},
    {"Id": 6, "D": 5e-324, "S": "-", "X": b""},
]


def write(database: Database) -> None:
    for row in ROWS:
        values = [b64encode(v) if isinstance(v, bytes) else v for v in row.values()]
        with database.batch() as batch:
            batch.insert("T", list(row), [values])


def compare(database: Database) -> ComparedTable:
    """What compares the table, as of now."""
    table = read_schema(database).tables[0]
    order = KeyOrder((KeyColumn("Id", table.columns[0].type),), read_schema(database).dialect)
    names = tuple(column.name for column in table.columns)
    group = ColumnGroup(
        0, tuple(ComparedColumn(c.name, c.type, one_zero=True) for c in table.columns)
    )
    queries = QueryClient(address_of(database))
    return ComparedTable(queries, "T", names, order, (group,), queries.fetch_read_timestamp())


def read_hashes(table: ComparedTable) -> dict[int, int]:
    (group,) = table.groups
    batches = table.read_hashes(KeyInterval(), group)
    return {r["Id"]: r[group.name] for b in batches for r in b.to_pylist()}


@pytest.fixture
def databases(instance: Instance) -> Any:
    """The same rows in a database of each dialect."""
    makers = [create_and_drop(instance, f"hashes-{d.value[:2]}", d) for d in Dialect]
    found = [next(maker)(TABLE) for maker in makers]
    for each in found:
        write(each)
    yield found
    for maker in makers:
        next(maker, None)


def test_both_dialects_and_the_copy_have_the_same_hashes_and_sums(
    databases: list[Database],
) -> None:
    tables = [compare(database) for database in databases]
    hashes = [read_hashes(table) for table in tables]
    assert len(set(hashes[0].values())) == len(ROWS)
    assert hashes[1] == hashes[0]
    for table, expected in zip(tables, hashes, strict=True):
        compared = table.groups[0].columns
        columns = [(each.name, each.type) for each in compared]
        copy = pa.RecordBatch.from_pylist(ROWS, schema=build_schema(columns))
        assert dict(zip(expected, hash_rows(copy, compared).tolist(), strict=True)) == expected
    upto = KeyInterval(upto=("4",))
    sums = [read_sum(table.start_sum(upto, table.groups[0])) for table in tables]
    kept = [value for key, value in hashes[0].items() if key <= 4]
    low, high = sum(h & 0xFFFFFFFF for h in kept), sum(h >> 32 & 0xFFFFFFFF for h in kept)
    assert sums == [RangeSum(4, ((low, high),))] * 2
