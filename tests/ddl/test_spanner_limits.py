"""Spanner's limits of a schema are checked before the first statement: at each limit the plan is
made, one above it the table is refused, and the others are planned without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from fixtures.server import CreateDatabase

from ddl.migration.apply import apply_plan, read_schema
from ddl.migration.plan import make_plan
from ddl.migration.record import create_records_table
from ddl.rules.evolve import parse_schema
from ddl.rules.limits import (
    COLUMNS_IN_TABLE_MAX,
    INDEXES_IN_TABLE_MAX,
    INDEXES_MAX,
    KEY_COLUMNS_MAX,
    STATEMENT_BYTES_MAX,
    STREAMS_A_COLUMN_MAX,
    STREAMS_MAX,
    TABLES_MAX,
)
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.errors import PlanError
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import (
    ChangeStream,
    ChangeStreamTable,
    Column,
    Dialect,
    Index,
    KeyPart,
    Schema,
    Table,
    Verbatim,
)

INT64 = Type(TypeCode.INT64)
SMALL = Table("Small", (Column("Id", INT64),), (KeyPart("Id"),))


def make_table(name: str, columns: int, key: int = 1, code: TypeCode = TypeCode.INT64) -> Table:
    """A table with so many columns, the first of which are its key."""
    made = tuple(Column(f"C{number}", Type(code), not_null=True) for number in range(columns))
    return Table(name, made, tuple(KeyPart(column.name) for column in made[:key]))


def with_columns(count: int) -> Schema:
    """Two columns are added."""
    return Schema(tables=(SMALL, make_table("T", count - 2)))


def with_key(count: int) -> Schema:
    """Shard and timestamp are in the key of the index, too."""
    return Schema(tables=(SMALL, make_table("T", count, key=count - 2)))


def index_table(table: Table, count: int) -> tuple[Index, ...]:
    return tuple(Index(f"{table.name}{n}", table.name, (KeyPart("C1"),)) for n in range(count))


def with_indexes(count: int) -> Schema:
    table = make_table("T", 2)
    return Schema(tables=(SMALL, table), indexes=index_table(table, count - 1))


def with_all_indexes(count: int) -> Schema:
    """Small takes the last but one."""
    tables = tuple(make_table(f"Other{number}", 2) for number in range(100))
    indexes = tuple(index for table in tables for index in index_table(table, 100))
    return Schema(tables=(SMALL, make_table("T", 2), *tables), indexes=indexes[: count - 2])


@pytest.mark.parametrize(
    ("make_schema", "limit", "words"),
    [
        (with_columns, COLUMNS_IN_TABLE_MAX, "Table T has too many columns; the limit is 1024"),
        (with_indexes, INDEXES_IN_TABLE_MAX, "Table T has too many indexes; the limit is 128"),
        (with_key, KEY_COLUMNS_MAX, r"too many keys \(17, with those of its table\)"),
        (with_all_indexes, INDEXES_MAX, "table T needs more indexes than Spanner allows"),
    ],
)
def test_a_table_is_refused_one_above_a_limit(
    make_schema: Callable[[int], Schema], limit: int, words: str
) -> None:
    tables = ["Small", "T"]
    assert not make_plan(make_schema(limit), tables, WatchOptions()).left_out
    with pytest.raises(PlanError, match=words):
        make_plan(make_schema(limit + 1), tables, WatchOptions())
    plan = make_plan(make_schema(limit + 1), tables, WatchOptions(), strict=False)
    assert [each.table for each in plan.left_out] == ["T"]
    assert {each.table for each in plan.statements} == {"Small"}


def test_tables_of_a_database_are_counted() -> None:
    tables = tuple(make_table(f"T{number}", 1) for number in range(TABLES_MAX))
    options = WatchOptions.model_validate({"strategy": "change-set"})
    make_plan(Schema(tables=tables[1:]), ["T1"], options)
    with pytest.raises(PlanError, match="more tables than Spanner allows in a database, which is"):
        make_plan(Schema(tables=tables), ["T1"], options)


def test_statements_of_a_database_are_measured() -> None:
    view = Verbatim("VIEW", "V", "CREATE VIEW V SQL SECURITY INVOKER AS SELECT 1 AS a --")
    long = replace(view, text=view.text + "-" * (STATEMENT_BYTES_MAX - 500))
    make_plan(Schema(tables=(SMALL,), verbatim=(view,)), ["Small"], WatchOptions())
    with pytest.raises(PlanError, match="more bytes of DDL than Spanner allows"):
        make_plan(Schema(tables=(SMALL,), verbatim=(long,)), ["Small"], WatchOptions())


def test_names_have_a_length() -> None:
    schema = parse_schema("CREATE TABLE t (a bigint PRIMARY KEY)", Dialect.POSTGRESQL)
    make_plan(schema, ["t"], WatchOptions(timestamp_column="c" * 63))
    with pytest.raises(PlanError, match="has more than 63 characters"):
        make_plan(schema, ["t"], WatchOptions(timestamp_column="c" * 64))


@pytest.mark.parametrize(
    ("streams", "watching", "words"),
    [
        (STREAMS_MAX, False, "the database has 10 change streams, Spanner's limit"),
        (STREAMS_A_COLUMN_MAX, True, "would be watched by 4 change streams; Spanner allows 3"),
    ],
)
def test_change_streams_are_counted(streams: int, watching: bool, words: str) -> None:
    watches = (ChangeStreamTable("T"),) if watching else ()
    made = tuple(ChangeStream(f"S{number}", watches) for number in range(streams))
    options = WatchOptions.model_validate({"strategy": "change-stream"})
    schema = Schema(tables=(SMALL, make_table("T", 2)), change_streams=made[1:])
    assert not make_plan(schema, ["T"], options).empty
    with pytest.raises(PlanError, match=words):
        make_plan(replace(schema, change_streams=made), ["T"], options)


def test_the_plan_says_how_long_a_key_may_be() -> None:
    short = Schema(tables=(make_table("T", 14, key=14),))
    assert "8,192 bytes" not in make_plan(short, ["T"], WatchOptions()).statements[-1].cost
    texts = Schema(tables=(make_table("T", 2, code=TypeCode.STRING),))
    cost = make_plan(texts, ["T"], WatchOptions()).statements[-1].cost
    assert "more than 8,192 bytes together can no longer be written" in cost


@pytest.mark.both_dialects
def test_the_server_takes_what_is_planned_at_the_limits(
    create_database: CreateDatabase, dialect: Dialect
) -> None:
    """Fourteen columns are hashed in an expression that is nested no deeper than Spanner allows."""
    names = [f"C{number}" for number in range(KEY_COLUMNS_MAX - 2)]
    columns = ", ".join(f"{name} STRING(9)" for name in names)
    database = create_database(f"CREATE TABLE T ({columns}) PRIMARY KEY ({', '.join(names)})")
    schema = read_schema(database)
    apply_plan(database, make_plan(schema, ["T"], WatchOptions()))
    assert make_plan(read_schema(database), ["T"], WatchOptions()).empty
    full = replace(schema, tables=(SMALL,) * TABLES_MAX)
    with pytest.raises(PlanError, match="so that SpannerWatcherMigrations can be created"):
        create_records_table(database, full)
