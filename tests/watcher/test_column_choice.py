"""``columns`` and ``exclude_columns`` of a table, and columns that cannot be decoded."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from fixtures.server import CreateDatabase
from fixtures.singers import address_of
from google.cloud.spanner_v1.database import Database
from pyspark.sql.pandas.types import from_arrow_schema

from ddl.rules.evolve import parse_schema
from spanner_schema.model.column_types import Type, TypeCode
from watcher import Change, Operation, Watcher
from watcher.captures.poll import PollCapture
from watcher.model.errors import ConfigurationError, NotWatchableError, TableNotFoundError
from watcher.runners.spark.resolution import make_shown_schema
from watcher.runners.spark.scan import Scan
from watcher.settings.spark import SourceOptions
from watcher.spanner.queries import QueryClient
from watcher.tables.discovery import find_watched_table, find_whole_table
from watcher.tables.values import TableSpec, WatchedTable

TABLE = """CREATE TABLE {} (Id INT64 NOT NULL, Name STRING(MAX), Words TOKENLIST,
  Sets ARRAY<TOKENLIST>, Tokens TOKENLIST HIDDEN, Gone BOOL,
  `At` TIMESTAMP OPTIONS (allow_commit_timestamp = true)) PRIMARY KEY ({})"""
SPEC = TableSpec(shard="none")


def table_of(
    spec: TableSpec = SPEC, name: str = "T", key: str = "Id", ddl: str = TABLE
) -> WatchedTable:
    """A table with columns that cannot be read."""
    return find_watched_table(parse_schema(ddl.format(name, key)), name, "d", spec)


def names_of(table: WatchedTable) -> list[str]:
    return [name for name, _ in table.columns]


def test_columns_that_cannot_be_decoded_are_left_out_with_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "watcher.columns"):
        tables = [table_of(name="Once"), table_of(name="Once")]
    assert [names_of(table) for table in tables] == [["Id", "Name", "Gone", "At"]] * 2
    assert [record.getMessage() for record in caplog.records] == [
        "table Once: columns Words, Sets have types TOKENLIST,"
        " ARRAY<TOKENLIST> that cannot be read and are left out"
    ]


def test_a_table_read_whole_leaves_them_out_too() -> None:
    table = find_whole_table(parse_schema(TABLE.format("T", "Id")), "T", "d")
    assert names_of(table) == ["Id", "Name", "Gone", "At"]


def test_nothing_is_said_of_a_column_that_nobody_asked_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table_of(TableSpec(shard="none", exclude_columns=("Words", "Sets")), name="Quiet")
    table_of(TableSpec(shard="none", columns=("Name",)), name="Quiet")
    assert not caplog.records


def test_one_that_is_asked_for_is_refused_with_the_reason() -> None:
    with pytest.raises(ConfigurationError, match=r"T\.Words has type TOKENLIST"):
        table_of(TableSpec(shard="none", columns=("Name", "words")))


def test_a_key_that_cannot_be_decoded_cannot_be_watched() -> None:
    schema = parse_schema(TABLE.format("T", "Id"))
    (table,) = schema.tables
    unknown = replace(table.columns[0], type=Type(TypeCode.STRUCT, proto_name="GEOGRAPHY"))
    later = replace(schema, tables=(replace(table, columns=(unknown, *table.columns[1:])),))
    with pytest.raises(NotWatchableError, match=r"key column T\.Id has type GEOGRAPHY, which"):
        find_watched_table(later, "T", "d", SPEC)


def test_key_timestamp_and_mark_of_a_delete_are_always_read() -> None:
    spec = TableSpec(shard="none", columns=("name",), deleted="Gone")
    assert names_of(table_of(spec)) == ["Id", "Name", "Gone", "At"]


def test_a_hidden_column_is_read_where_it_is_named() -> None:
    ddl = TABLE.replace("Tokens TOKENLIST HIDDEN", "Secret INT64 HIDDEN")
    assert names_of(table_of(TableSpec(shard="none", columns=("Secret",)), ddl=ddl)) == [
        "Id",
        "Secret",
        "At",
    ]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (TableSpec(columns=("Nmae",)), "table T has no column 'Nmae'; did you mean 'Name'"),
        (TableSpec(exclude_columns=("Zzz",)), "table T has no column 'Zzz'; it has: Id, Name"),
        (TableSpec(exclude_columns=("id",)), "T.id is always read"),
        (TableSpec(exclude_columns=("At",)), "T.At is always read"),
    ],
)
def test_what_cannot_be_chosen_is_refused(spec: TableSpec, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        table_of(
            TableSpec(columns=spec.columns, exclude_columns=spec.exclude_columns, shard="none")
        )
    assert words in str(caught.value)


def test_a_spark_query_with_a_schema_of_its_own_reads_no_other_column() -> None:
    options = SourceOptions(project="p1", instance="i1", database="d1", table="T")
    capture = PollCapture(QueryClient(options.address), table_of(), ())
    reading = Scan(options, (capture,), make_shown_schema(options, (capture,)))
    asked = from_arrow_schema(pa.schema([("Id", pa.int64()), ("Name", pa.string())]))
    assert names_of(reading.select_columns(asked).captures[0].table) == ["Id", "Name"]


@pytest.fixture
def database(singers: Database) -> Database:
    with singers.batch() as batch:
        batch.insert("Singers", ("SingerId", "FirstName", "LastName"), [(1, "Ada", "L")])
    return singers


def deliver(database: Database, **more: Any) -> list[Change]:
    changes: list[Change] = []
    watcher = Watcher(**{"database": str(address_of(database)), "tables": ["Singers"]} | more)
    watcher.on_change(changes.append)
    watcher.run_once()
    return changes


@pytest.mark.parametrize("more", [{"start": "earliest"}, {"backfill": ["*"]}], ids=["poll", "fill"])
@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"columns": ["FirstName"]}, {"FirstName", "LastModified"}),
        (
            {"exclude_columns": ["Picture", "BirthDate", "ShardId"]},
            {"FirstName", "LastName", "LastModified"},
        ),
    ],
    ids=["columns", "exclude"],
)
def test_a_watcher_reads_what_is_chosen(
    database: Database, more: dict[str, object], chosen: dict[str, object], expected: set[str]
) -> None:
    (change,) = deliver(database, table={"singers": chosen}, **more)
    assert change.key == {"SingerId": 1}
    assert set(change.new_values or {}) == expected
    assert {name for name, _ in change.shape.columns} == expected | {"SingerId"}
    assert (change.new_values or {})["FirstName"] == "Ada"


def test_an_unknown_column_stops_a_watcher_before_it_reads(database: Database) -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'FirstName'"):
        deliver(database, table={"Singers": {"columns": ["FirstNme"]}}, start="earliest")


STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = '{}')"
STREAMED = "CREATE TABLE T (Id INT64, A INT64, B STRING(MAX)) PRIMARY KEY (Id)"


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("capture", ["NEW_ROW_AND_OLD_VALUES", "OLD_AND_NEW_VALUES"])
def test_a_change_stream_tells_of_the_chosen_columns(
    create_database: CreateDatabase, capture: str, whole: bool
) -> None:
    database = create_database(STREAMED, STREAM.format(capture))
    write(database, 0)
    common: dict[str, object] = {
        "tables": ["T"],
        "capture": "change-stream",
        "consumer": "c",
        "table": {"t": {"exclude_columns": ["B"]}},
        "stream": {"whole_rows": whole},
    }
    (filled,) = deliver(database, backfill=["*"], **common)
    assert (filled.operation, filled.new_values) == (Operation.READ, {"A": 0})
    write(database, 1)
    (change,) = deliver(database, **common)
    assert (change.key, change.new_values, change.old_values) == ({"Id": 1}, {"A": 1}, {"A": 0})
    assert [name for name, _ in change.shape.columns] == ["Id", "A"]


@pytest.mark.parametrize("asked", [{}, {"hidden_columns": True}])
def test_a_stream_leaves_out_a_hidden_column_that_nobody_asked_for(
    create_database: CreateDatabase, asked: dict[str, object]
) -> None:
    hidden = STREAMED.replace("B STRING(MAX)", "B STRING(MAX) HIDDEN")
    database = create_database(hidden, STREAM.format("OLD_AND_NEW_VALUES"))
    write(database, 0)
    common: dict[str, object] = {
        "tables": ["T"],
        "capture": "change-stream",
        "consumer": "c",
        "stream": {"whole_rows": True},
        "table": {"T": asked},
    }
    (filled,) = deliver(database, backfill=["*"], **common)
    write(database, 1)
    (change,) = deliver(database, **common)
    old, new = ({"A": 0, "B": "b0"}, {"A": 1, "B": "b1"}) if asked else ({"A": 0}, {"A": 1})
    assert (filled.new_values, change.old_values, change.new_values) == (old, old, new), (
        "a row of a backfill has the columns that its changes have"
    )


def write(database: Database, value: int) -> None:
    with database.batch() as batch:
        batch.insert_or_update("T", ("Id", "A", "B"), [(1, value, f"b{value}")])


def test_with_a_change_stream_a_table_says_nothing_of_polling(
    create_database: Callable[..., Database],
) -> None:
    database = create_database(STREAMED, STREAM.format("NEW_ROW"))
    words = "use only columns, exclude_columns, hidden_columns, text_columns and masks there"
    with pytest.raises(ConfigurationError, match=words):
        deliver(database, capture="change-stream", table={"T": {"shard": "none"}})
    with pytest.raises(TableNotFoundError, match="no table U, but it is configured"):
        deliver(database, tables=["T"], capture="change-stream", table={"U": {"columns": []}})


def test_the_strategy_of_change_sets_reads_what_is_chosen() -> None:
    schema = parse_schema(
        """CREATE TABLE Sets (ChangeSetId STRING(36),
             `At` TIMESTAMP OPTIONS (allow_commit_timestamp = true)) PRIMARY KEY (ChangeSetId);
           CREATE TABLE Songs (Id INT64, A INT64, B INT64, ChangeSetId STRING(36))
             PRIMARY KEY (Id);
           CREATE INDEX SongsByChangeSet ON Songs(ChangeSetId)"""
    )
    spec = TableSpec(change_sets="Sets", columns=("A",))
    assert names_of(find_watched_table(schema, "Songs", "d", spec)) == ["Id", "A"]
