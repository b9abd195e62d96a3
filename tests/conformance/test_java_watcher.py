"""The statements of the Java Spanner Change Watcher 1.2.1, as its library writes them."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database
from talk import Rows, commit, ddl, insert

SHARDS, LIMIT = (0, 1, 2), 4
HINT = "@{FORCE_INDEX=`ByShard`}"
SCHEMA = (
    "CREATE TABLE T (Id INT64 NOT NULL, V STRING(MAX), ShardId INT64,"
    " Ts TIMESTAMP OPTIONS (allow_commit_timestamp = true)) PRIMARY KEY (Id)",
    "CREATE NULL_FILTERED INDEX ByShard ON T (ShardId, Ts)",
)
POSITIONS = (
    "CREATE TABLE `LAST_SEEN` (\n"
    "        `DATABASE_NAME` STRING(MAX) NOT NULL,\n"
    "        `TABLE_CATALOG` STRING(MAX) NOT NULL,\n"
    "        `TABLE_SCHEMA` STRING(MAX) NOT NULL,\n"
    "        `TABLE_NAME` STRING(MAX) NOT NULL,\n"
    "        `SHARD_ID_BOOL` BOOL,\n"
    "        `SHARD_ID_STRING` STRING(MAX),\n"
    "        `LAST_SEEN_COMMIT_TIMESTAMP` TIMESTAMP NOT NULL\n"
    ") PRIMARY KEY (`DATABASE_NAME`, `TABLE_CATALOG`, `TABLE_SCHEMA`, `TABLE_NAME`,"
    " `SHARD_ID_BOOL`, `SHARD_ID_STRING`)"
)
TABLE = "TABLE_CATALOG = @catalog\nAND TABLE_SCHEMA = @schema\nAND TABLE_NAME = @table"
PRIMARY_KEY = (
    "SELECT COLUMN_NAME\nFROM INFORMATION_SCHEMA.INDEX_COLUMNS\n"
    "INNER JOIN INFORMATION_SCHEMA.INDEXES ON\n"
    "      INDEX_COLUMNS.TABLE_CATALOG=INDEXES.TABLE_CATALOG AND INDEX_COLUMNS.TABLE_SCHEMA="
    "INDEX_COLUMNS.TABLE_SCHEMA AND INDEX_COLUMNS.TABLE_NAME=INDEXES.TABLE_NAME\n"
    "  AND INDEX_COLUMNS.INDEX_NAME=INDEXES.INDEX_NAME AND INDEXES.INDEX_TYPE='PRIMARY_KEY'\n"
    "WHERE INDEX_COLUMNS.TABLE_CATALOG = @catalog\nAND INDEX_COLUMNS.TABLE_SCHEMA = @schema\n"
    "AND INDEX_COLUMNS.TABLE_NAME = @table\nORDER BY INDEX_COLUMNS.ORDINAL_POSITION"
)
ORDER = "\nORDER BY `Ts`, `Id`\nLIMIT @limit"
SHARD_LIST = param_types.Array(param_types.INT64)
pytestmark = pytest.mark.ddl(*SCHEMA)


def query_rows(database: Database, sql: str, **params: Any) -> Rows:
    """The rows of a query; the type of a parameter is that of its value."""
    kinds = {str: param_types.STRING, int: param_types.INT64, list: SHARD_LIST}
    types = {name: kinds.get(type(v), param_types.TIMESTAMP) for name, v in params.items()}
    with database.snapshot() as snapshot:
        return [list(row) for row in snapshot.execute_sql(sql, params=params, param_types=types)]


def poll(operator: str) -> str:
    """A page of what came after, or at, a timestamp."""
    return (
        f"SELECT *\nFROM `T`{HINT}\nWHERE `Ts`{operator}@prevCommitTimestamp"
        f" AND `ShardId` IS NOT NULL AND `ShardId` IN UNNEST(@shard){ORDER}"
    )


def backlog_query() -> str:
    """Its query when it is behind: each shard separately, then the rows of all."""
    shards = "".join(
        f"S{n} AS (\nSELECT `Id`, `Ts`\nFROM `T`{HINT}\nWHERE `Ts`>@prevCommitTimestamp"
        f" AND `ShardId`=@param{n}{ORDER}\n),"
        for n in range(len(SHARDS))
    )
    union = "UNION ALL\n".join(f"SELECT *\nFROM S{n}\n" for n in range(len(SHARDS)))
    return (
        f"WITH\n{shards}AllShards AS (\nSELECT `Id`\nFROM (\n{union}){ORDER}\n)\n"
        f"SELECT `T`.*\nFROM AllShards\nINNER JOIN `T` ON `T`.`Id`=AllShards.`Id`{ORDER}"
    )


def fill(database: Database) -> list[datetime.datetime]:
    """Two commits of six rows, Ids 0 to 11; their timestamps."""
    stamps = []
    for first in (0, 6):
        values = [
            (n, f"v{n}", n % 3, "spanner.commit_timestamp()") for n in range(first, first + 6)
        ]
        stamps.append(commit(database, insert("T", "Id V ShardId Ts", *values)))
    return stamps


def test_it_finds_out_about_its_table(database: Database) -> None:
    table = {"catalog": "", "schema": "", "table": "T"}
    options = query_rows(
        database,
        "SELECT COLUMN_NAME, OPTION_NAME, OPTION_VALUE\nFROM INFORMATION_SCHEMA.COLUMN_OPTIONS\n"
        f"WHERE {TABLE}",
        **table,
    )
    assert options == [["Ts", "allow_commit_timestamp", "TRUE"]]
    assert query_rows(database, PRIMARY_KEY, **table) == [["Id"]]


def test_it_makes_its_table_of_positions_and_knows_it_again(database: Database) -> None:
    ddl(database, POSITIONS)
    columns = query_rows(
        database,
        f"SELECT COLUMN_NAME, SPANNER_TYPE\nFROM INFORMATION_SCHEMA.COLUMNS\nWHERE {TABLE}\n"
        "ORDER BY ORDINAL_POSITION",
        catalog="",
        schema="",
        table="LAST_SEEN",
    )
    assert columns[4:] == [
        ["SHARD_ID_BOOL", "BOOL"],
        ["SHARD_ID_STRING", "STRING(MAX)"],
        ["LAST_SEEN_COMMIT_TIMESTAMP", "TIMESTAMP"],
    ]


def test_its_pages_go_on_where_the_last_ended(database: Database) -> None:
    first, second = fill(database)
    start = first - datetime.timedelta(microseconds=1)
    params = {"shard": list(SHARDS), "limit": LIMIT}
    page = query_rows(database, poll(">"), prevCommitTimestamp=start, **params)
    assert [row[0] for row in page] == [0, 1, 2, 3]
    rest = poll("=") + f" OFFSET {LIMIT}"
    page = query_rows(database, rest, prevCommitTimestamp=first, **params)
    assert [row[0] for row in page] == [4, 5]
    page = query_rows(database, poll(">"), prevCommitTimestamp=first, **params)
    assert [row[3] for row in page] == [second] * LIMIT


def test_its_query_for_a_watcher_that_is_behind(database: Database) -> None:
    first, _ = fill(database)
    page = query_rows(
        database,
        backlog_query(),
        prevCommitTimestamp=first,
        limit=LIMIT,
        **{f"param{n}": shard for n, shard in enumerate(SHARDS)},
    )
    assert [row[0] for row in page] == [6, 7, 8, 9]
    assert len(page[0]) == 4
