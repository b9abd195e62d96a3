"""The schema read from INFORMATION_SCHEMA is the one that the DDL text says."""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures.server import CreateDatabase
from google.cloud.spanner_v1.database import Database
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ddl.rules.evolve import parse_schema
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.names import join_name
from spanner_schema.model.schema import (
    ChangeStream,
    ChangeStreamTable,
    Column,
    Dialect,
    Index,
    KeyPart,
    Schema,
    Table,
)
from spanner_schema.syntax.parse import parse_script
from spanner_schema.syntax.render import render_schema, render_step
from spanner_schema.watched.shards import shard_values
from spanner_schema.watched.tracked import find_processed
from watcher.model.errors import VersionExpiredError
from watcher.spanner.outages import Outages
from watcher.spanner.read_options import ReadOptions
from watcher.spanner.results.wire import ResultPart
from watcher.spanner.sessions import SharedSession
from watcher.spanner.sql import Statement
from watcher.spanner.stream import QueryStream
from watcher.tables.schema_reader import SchemaEpoch, read_digest, read_epoch
from watcher.tables.schema_rows import build_schema

ROOT = Path(__file__).resolve().parents[2]
SINGERS = (ROOT / "examples/singers.sql").read_text()
STAMP = "OPTIONS (allow_commit_timestamp = true)"
T = "CREATE TABLE T (Id INT64 NOT NULL, A STRING(20), B BYTES(MAX), C TIMESTAMP) PRIMARY KEY (Id)"

SCHEMAS = {
    "nothing": "",
    "every type": """CREATE TABLE T (
        Id INT64 NOT NULL, Bo BOOL, F3 FLOAT32, F6 FLOAT64, Nu NUMERIC, St STRING(12),
        Sm STRING(MAX), `By` BYTES(7), Bm BYTES(MAX), Da DATE NOT NULL, Ti TIMESTAMP, Js JSON,
        Uu UUID, Ai ARRAY<INT64>, "As" ARRAY<STRING(5)>, Ve ARRAY<FLOAT32>(vector_length=>3)
        ) PRIMARY KEY (Id)""".replace('"As"', "`As`"),
    "keys": """CREATE TABLE T (A INT64, B STRING(9), C DATE) PRIMARY KEY (C DESC, A, B DESC);
        CREATE TABLE Single (A INT64) PRIMARY KEY ()""",
    "generated, hidden, options": f"""CREATE TABLE T (
        Id INT64 NOT NULL, Processed BOOL, `At` TIMESTAMP {STAMP}, Secret STRING(9) HIDDEN,
        Twice INT64 AS (Id * 2) STORED, Sum INT64 AS ((Id + 1) + (Id + 2)),
        ShardId INT64 AS (CASE WHEN Processed THEN NULL ELSE MOD(Id, 19) END) HIDDEN
        ) PRIMARY KEY (Id);
        CREATE NULL_FILTERED INDEX Polled ON T(ShardId, `At`)""",
    "indexes": f"""{T}; CREATE UNIQUE INDEX I1 ON T(A DESC, Id) STORING (C, B);
        CREATE NULL_FILTERED INDEX I2 ON T(C);
        CREATE INDEX I3 ON T(A, C DESC) WHERE A IS NOT NULL AND C IS NOT NULL;
        CREATE INDEX I4 ON T(A, C) WHERE C IS NOT NULL""",
    "named schemas": f"""CREATE SCHEMA Shop; {T};
        CREATE TABLE Shop.T (Id INT64 NOT NULL, A INT64) PRIMARY KEY (Id);
        CREATE TABLE Shop.Child (Id INT64 NOT NULL, N INT64) PRIMARY KEY (Id, N),
          INTERLEAVE IN PARENT Shop.T ON DELETE CASCADE;
        CREATE INDEX Shop.I ON Shop.T(A); CREATE INDEX I ON T(A);
        CREATE CHANGE STREAM S FOR T, Shop.T(A)""",
    "interleaved": """CREATE TABLE P (Id INT64) PRIMARY KEY (Id);
        CREATE TABLE C (Id INT64, N INT64) PRIMARY KEY (Id, N), INTERLEAVE IN PARENT P;
        CREATE TABLE D (Id INT64, M INT64) PRIMARY KEY (Id, M),
          INTERLEAVE IN PARENT P ON DELETE CASCADE;
        CREATE TABLE E (Id INT64, M INT64) PRIMARY KEY (Id, M), INTERLEAVE IN P;
        CREATE INDEX CByN ON C(Id, N DESC), INTERLEAVE IN P""",
    "change streams": f"""{T}; CREATE TABLE U (Id INT64, A INT64) PRIMARY KEY (Id);
        CREATE CHANGE STREAM Nothing; CREATE CHANGE STREAM Whole FOR ALL;
        CREATE CHANGE STREAM Keys FOR T();
        CREATE CHANGE STREAM Some FOR U, T(C, A) OPTIONS (retention_period = '36h',
          value_capture_type = 'NEW_ROW', exclude_insert = true);
        CREATE CHANGE STREAM Moving FOR U OPTIONS (partition_mode = 'IMMUTABLE_KEY_RANGE')""",
    "views and others": f"""{T}; CREATE VIEW V SQL SECURITY INVOKER AS SELECT T.Id FROM T;
        CREATE TABLE U (Id INT64, T INT64,
          CONSTRAINT Fk FOREIGN KEY (T) REFERENCES T (Id)) PRIMARY KEY (Id);
        CREATE SEQUENCE Numbers OPTIONS (sequence_kind = 'bit_reversed_positive')""",
    "example": SINGERS,
}
GOLDEN = {
    path.stem: path.read_text().split("-- down")[0].replace("-- up", "")
    for path in sorted((ROOT / "tests/ddl/golden").glob("*.sql"))
    if not path.stem.startswith("postgresql")
}
BARE = (
    "CREATE TABLE Singers (SingerId INT64 NOT NULL, FirstName STRING(200), LastName STRING(200)"
    " NOT NULL, BirthDate DATE, Picture BYTES(MAX){})PRIMARY KEY (SingerId);"
)
SCHEMAS |= {
    name: BARE.format(f", LastModified TIMESTAMP {STAMP}" if name == "manual" else "") + up
    for name, up in GOLDEN.items()
}


def statements(text: str) -> list[str]:
    return [render_step(step) for step in parse_script(text)]


def used_column(column: Column) -> Column:
    """What a watcher uses of a column."""
    return replace(column, default=None, on_update=None, identity=None, options=())


def used_stream(stream: ChangeStream, schema: Schema) -> ChangeStream:
    watches = []
    for each in sorted(stream.watches, key=lambda each: each.table):
        table = schema.table(each.table)
        assert table is not None
        order = [column.name for column in table.columns]
        named = None if each.columns is None else tuple(sorted(each.columns, key=order.index))
        watches.append(ChangeStreamTable(each.table, named))
    options = sorted(pair for pair in stream.options if pair[1].upper() != "NULL")
    return replace(stream, watches=tuple(watches), options=tuple(options))


def used(schema: Schema) -> Schema:
    """What a watcher uses of a schema, in the order of names."""
    tables = [
        Table(t.name, tuple(map(used_column, t.columns)), t.primary_key, t.interleave)
        for t in schema.tables
    ]
    indexes = [replace(i, storing=tuple(sorted(i.storing)), options=()) for i in schema.indexes]
    streams = [used_stream(stream, schema) for stream in schema.change_streams]
    return Schema(
        tables=tuple(sorted(tables, key=lambda each: each.name)),
        indexes=tuple(sorted(indexes, key=lambda each: each.name)),
        change_streams=tuple(sorted(streams, key=lambda each: each.name)),
    )


def change(database: Database, *ddl: str) -> None:
    database.update_ddl(ddl).result(60)


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schema_is_the_one_of_the_ddl(create_database: CreateDatabase, name: str) -> None:
    database = create_database(*statements(SCHEMAS[name]))
    database.reload()
    epoch = read_epoch(QueryStream(*stream_parts(database)))
    assert epoch.schema == used(parse_schema(list(database.ddl_statements)))


names = st.text(string.ascii_letters, min_size=1, max_size=12).map(lambda text: "n" + text)
plain_types = st.sampled_from(
    [Type(c) for c in (TypeCode.INT64, TypeCode.BOOL, TypeCode.DATE, TypeCode.UUID)]
)
sized_types = st.builds(
    Type, st.sampled_from([TypeCode.STRING, TypeCode.BYTES]), st.none() | st.integers(1, 500)
)
key_types = plain_types | sized_types
column_types = key_types | st.builds(Type, st.just(TypeCode.ARRAY), element=key_types)


OWNERS = ("Archive", "sales")


@st.composite
def columns(draw: st.DrawFn) -> list[Column]:
    """At least two; the first can be a key."""
    column_names = draw(st.lists(names, min_size=2, max_size=5, unique_by=str.casefold))
    return [
        Column(
            name,
            draw(column_types if number else key_types),
            not_null=draw(st.booleans()),
            hidden=bool(number) and draw(st.booleans()),
        )
        for number, name in enumerate(column_names)
    ]


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """A few tables with an index and a change stream each."""
    tables, indexes, streams = [], [], []
    for number in range(draw(st.integers(1, 3))):
        drawn = draw(columns())
        key = drawn[0].name
        owner = draw(st.sampled_from(["", *OWNERS]))
        table = Table(
            join_name(owner, f"T{number}"), tuple(drawn), (KeyPart(key, draw(st.booleans())),)
        )
        tables.append(table)
        filtered = draw(st.sampled_from(["", "null", "where"]))
        index = Index(
            join_name(owner, f"I{number}"),
            table.name,
            (KeyPart(key, draw(st.booleans())),),
            storing=tuple(c.name for c in drawn[1:] if draw(st.booleans())),
            unique=draw(st.booleans()),
            null_filtered=filtered == "null",
            where_not_null=(key,) if filtered == "where" else (),
        )
        indexes += [index] if draw(st.booleans()) else []
        some = tuple(c.name for c in drawn[1:] if draw(st.booleans()))
        watched = ChangeStreamTable(table.name, draw(st.sampled_from([None, some])))
        streams.append(ChangeStream(f"S{number}", (watched,)))
    return Schema(
        tables=tuple(tables),
        indexes=tuple(indexes),
        change_streams=tuple(streams),
        named_schemas=OWNERS,
    )


@given(schemas())
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_schema_is_read_as_it_was_written(
    create_database: CreateDatabase, schema: Schema
) -> None:
    database = create_database(*render_schema(schema))
    assert read_epoch(QueryStream(*stream_parts(database))).schema == used(schema)


def test_shards_and_the_processed_column_are_found_alike(create_database: CreateDatabase) -> None:
    database = create_database(*statements(SCHEMAS["generated, hidden, options"]))
    table = read_epoch(QueryStream(*stream_parts(database))).schema.table("T")
    assert table is not None
    shard = table.column("ShardId")
    assert shard is not None
    assert shard_values(shard.generated or "") == tuple(range(-18, 19))
    assert find_processed(table, shard, Dialect.GOOGLESQL) == "Processed"


CHANGES = [
    ("CREATE TABLE N (Id INT64) PRIMARY KEY (Id)", "DROP TABLE N"),
    ("ALTER TABLE T ADD COLUMN N INT64", "ALTER TABLE T DROP COLUMN N"),
    ("ALTER TABLE T ADD COLUMN G INT64 AS (Id + 1)", "ALTER TABLE T DROP COLUMN G"),
    ("ALTER TABLE T ALTER COLUMN A STRING(30)", "ALTER TABLE T ALTER COLUMN A STRING(20)"),
    ("ALTER TABLE T ALTER COLUMN A STRING(20) NOT NULL", "ALTER TABLE T ALTER COLUMN A STRING(20)"),
    (
        "ALTER TABLE T ALTER COLUMN C SET OPTIONS (allow_commit_timestamp = true)",
        "ALTER TABLE T ALTER COLUMN C SET OPTIONS (allow_commit_timestamp = null)",
    ),
    ("CREATE INDEX N ON T(A)", "DROP INDEX N"),
    ("ALTER INDEX I ADD STORED COLUMN C", "ALTER INDEX I DROP STORED COLUMN C"),
    ("CREATE CHANGE STREAM N FOR ALL", "DROP CHANGE STREAM N"),
    ("ALTER CHANGE STREAM S SET FOR T(A)", "ALTER CHANGE STREAM S SET FOR T"),
    ("ALTER CHANGE STREAM S SET FOR T()", "ALTER CHANGE STREAM S SET FOR T"),
    ("ALTER CHANGE STREAM S SET FOR ALL", "ALTER CHANGE STREAM S SET FOR T"),
    (
        "ALTER CHANGE STREAM S SET OPTIONS (value_capture_type = 'NEW_ROW')",
        "ALTER CHANGE STREAM S SET OPTIONS (value_capture_type = null)",
    ),
    (
        "ALTER CHANGE STREAM S SET OPTIONS (exclude_ttl_deletes = true)",
        "ALTER CHANGE STREAM S SET OPTIONS (exclude_ttl_deletes = null)",
    ),
]


def test_the_digest_follows_every_change_and_its_undoing(create_database: CreateDatabase) -> None:
    database = create_database(T, "CREATE INDEX I ON T(B)", "CREATE CHANGE STREAM S FOR T")
    stream = QueryStream(*stream_parts(database))
    first = read_epoch(stream)
    seen = {first.digest}
    for done, undone in CHANGES:
        change(database, done)
        epoch = read_epoch(stream)
        assert epoch.digest not in seen, done
        assert epoch.schema != first.schema, done
        seen.add(epoch.digest)
        change(database, undone)
        again = read_epoch(stream)
        assert (again.digest, again.schema) == (first.digest, first.schema), undone


def test_what_no_watcher_uses_leaves_the_digest_alone(create_database: CreateDatabase) -> None:
    database = create_database(T)
    stream = QueryStream(*stream_parts(database))
    _, before = read_digest(stream)
    change(database, "CREATE VIEW V SQL SECURITY INVOKER AS SELECT T.Id FROM T")
    assert read_digest(stream)[1] == before


def stream_parts(database: Database) -> tuple[SharedSession, ReadOptions, Outages]:
    """What a stream of queries is made of."""
    return SharedSession(database), ReadOptions(), Outages(database.name)


class CountedStream(QueryStream):
    """Counts the calls that it makes."""

    calls = 0

    def query_numbers(self, statement: Statement, at: int | None) -> tuple[int, list[int]]:
        self.calls += 1
        return super().query_numbers(statement, at)

    def query(
        self, statement: Statement, at: int | None, with_stats: bool = True
    ) -> Iterator[ResultPart]:
        self.calls += 1
        return super().query(statement, at, with_stats)


def test_a_digest_is_one_call_and_an_epoch_two(create_database: CreateDatabase) -> None:
    database = create_database(*statements(SCHEMAS["change streams"]))
    stream = CountedStream(*stream_parts(database))
    at, digest = read_digest(stream)
    assert stream.calls == 1
    epoch = read_epoch(stream, at)
    assert stream.calls == 3
    assert epoch == SchemaEpoch(at, digest, epoch.schema)
    assert read_digest(stream, at) == (at, digest)


def test_an_epoch_is_the_schema_of_its_timestamp(create_database: CreateDatabase) -> None:
    database = create_database(T)
    stream = QueryStream(*stream_parts(database))
    before = read_epoch(stream)
    change(database, "ALTER TABLE T ADD COLUMN N INT64", "CREATE INDEX I ON T(N)")
    assert read_epoch(stream, before.read_timestamp) == before
    assert read_epoch(stream).digest != before.digest


def test_a_timestamp_past_the_version_retention_is_refused(create_database: CreateDatabase) -> None:
    stream = QueryStream(*stream_parts(create_database(T)))
    with pytest.raises(VersionExpiredError):
        read_epoch(stream, read_digest(stream)[0] - 8 * 86_400_000_000)


def text_of(*values: str | None) -> str:
    """A row as ``watcher.tables.schema_reader`` has it told."""
    return "".join("-" if value is None else f"{len(value)}:{value}" for value in values)


def column_row(name: str, type_: str, state: str = "COMMITTED", place: int = 1) -> str:
    return text_of("column", "", "T", name, str(place), type_, "YES", None, None, "FALSE", state)


def index_row(name: str, state: str, managed: str = "false") -> str:
    return text_of("index", "", "T", name, "INDEX", "", "false", "false", state, managed, None)


def part_row(index: str, column: str, nullable: str) -> str:
    return text_of("index column", "", "T", index, "INDEX", column, "1", "ASC", nullable)


TABLE_ROW = text_of("table", "", "T", None, None, "", "COMMITTED")


def read(rows: Sequence[str]) -> Schema:
    """The schema of rows as the embedded server never has them."""
    return build_schema([TABLE_ROW, *rows])


def test_what_is_backfilled_is_not_there_yet() -> None:
    schema = read(
        [
            column_row("A", "INT64"),
            column_row("B", "INT64", "WRITE_ONLY", 2),
            index_row("Ready", "READ_WRITE"),
            index_row("Filling", "WRITE_ONLY"),
            index_row("Backing", "READ_WRITE", managed="true"),
        ]
    )
    assert [column.name for column in schema.tables[0].columns] == ["A"]
    assert [index.name for index in schema.indexes] == ["Ready"]


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("PROTO<a.b.C>", Type(TypeCode.PROTO, proto_name="a.b.C")),
        ("ENUM<a.b.E>", Type(TypeCode.ENUM, proto_name="a.b.E")),
        (
            "ARRAY<ENUM<a.b.E>>",
            Type(TypeCode.ARRAY, element=Type(TypeCode.ENUM, proto_name="a.b.E")),
        ),
        ("a.b.C", Type(TypeCode.PROTO, proto_name="a.b.C")),
        ("TOKENLIST", Type(TypeCode.TOKENLIST)),
        ("GEOGRAPHY", Type(TypeCode.STRUCT, proto_name="GEOGRAPHY")),
    ],
)
def test_types_that_the_embedded_server_does_not_have_are_read(text: str, type_: Type) -> None:
    assert read([column_row("A", text)]).tables[0].columns[0].type == type_


def test_the_condition_of_an_index_is_found_where_its_text_is_not_told() -> None:
    rows = [column_row("A", "INT64"), index_row("I", "READ_WRITE"), part_row("I", "A", "NO")]
    assert read(rows).indexes[0].where_not_null == ("A",)
