"""Reads the records of what ``ddl apply`` added and took over, kept in the database."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.names import TABLE_NAME_CHARACTERS_MAX
from spanner_schema.model.schema import Column, Dialect, KeyPart, Schema, Table
from spanner_schema.model.steps import DropColumn, DropTable, Step
from spanner_schema.syntax.parse import parse_statement
from spanner_schema.syntax.render import SPELLINGS, quote_column, quote_name
from spanner_schema.syntax.spelling import normalize
from spanner_schema.watched.ownership import Ownership, fold, is_change_sets_table
from spanner_schema.watched.shards import shard_values
from spanner_schema.watched.tracked import find_processed

TABLE = "SpannerWatcherMigrations"
TAKEN_OVER = Column("TakenOver", Type(TypeCode.STRING))
"""Earlier releases did not make it."""
WATCHED = Column(
    "WatchedTable", Type(TypeCode.STRING, length=TABLE_NAME_CHARACTERS_MAX), not_null=True
)
"""Earlier releases made it one character shorter."""
RECORDS = Table(
    TABLE,
    (
        WATCHED,
        Column("Down", Type(TypeCode.STRING), not_null=True),
        Column("RecordedAt", Type(TypeCode.TIMESTAMP), not_null=True, allow_commit_timestamp=True),
        TAKEN_OVER,
    ),
    (KeyPart("WatchedTable"),),
)
RECORDED_SCHEMA = Schema(tables=(RECORDS,))


@dataclass(frozen=True, slots=True)
class Record:
    """What was recorded of a table: the statements that undo what was added, and the names of what
    was taken over."""

    down: tuple[str, ...] = ()
    taken_over: tuple[str, ...] = ()


def read_records(database: Database, schema: Schema) -> dict[str, Record]:
    """The records by table; empty if nothing was recorded.

    ``schema`` shows whether the table of records exists.
    """
    table = schema.table(TABLE)
    if table is None:
        return {}
    columns = ["WatchedTable", "Down"]
    columns += [name for name in (TAKEN_OVER.name,) if table.column(name) is not None]
    with database.snapshot() as snapshot:
        rows = snapshot.read(TABLE, columns, KeySet(all_=True))
        return {row[0]: parse_record(*row[1:]) for row in rows}


def parse_record(down: str, taken_over: str | None = None) -> Record:
    """A record as it is stored."""
    return Record(tuple(json.loads(down)), tuple(json.loads(taken_over or "[]")))


def read_own_records(database: Database, schema: Schema) -> dict[str, Record]:
    """The records of what is there and was added. A table may have been dropped since, or renamed,
    and made anew by an application, with columns of its own: what these cannot be is left out."""
    records = read_records(database, schema)
    for name, record in records.items():
        foreign = find_foreign_columns(database, schema, name, record)
        steps = ((sql, parse_statement(sql, schema.dialect)) for sql in record.down)
        down = tuple(
            sql
            for sql, step in steps
            if not changes_column(step, foreign) and not drops_foreign_table(step, schema)
        )
        records[name] = replace(record, down=down)
    return records


def read_ownership(database: Database, schema: Schema) -> Mapping[str, Ownership]:
    """What the records say is ours, by table: columns that were added or taken over."""
    return {
        table: Ownership(fold(record.taken_over), fold(list_added_columns(record, schema.dialect)))
        for table, record in read_own_records(database, schema).items()
    }


def list_added_columns(record: Record, dialect: Dialect) -> list[str]:
    """The columns that a rollback would drop."""
    steps = (parse_statement(sql, dialect) for sql in record.down)
    return [step.column for step in steps if isinstance(step, DropColumn)]


def changes_column(step: Step, columns: Collection[str]) -> bool:
    """Whether a recorded statement drops or changes one of these columns, in small letters."""
    column = getattr(step, "column", None)
    return isinstance(column, str) and column.casefold() in columns


def drops_foreign_table(step: Step, schema: Schema) -> bool:
    """Whether a recorded statement drops a table that has more than change sets."""
    table = schema.table(step.name) if isinstance(step, DropTable) else None
    if table is None:
        return False
    key = table.primary_key[0].column if table.primary_key else ""
    return not is_change_sets_table(table, key)


def find_foreign_columns(
    database: Database, schema: Schema, table_name: str, record: Record
) -> frozenset[str]:
    """The columns with the names of added ones that an application has made, in small letters."""
    table = schema.table(table_name)
    if table is None:
        return frozenset()
    columns = (table.column(name) for name in list_added_columns(record, schema.dialect))
    return fold(
        column.name
        for column in columns
        if column is not None
        and not (
            may_be_added(column, schema.dialect)
            and (
                is_in_use(table, column, schema.dialect)
                or is_empty(database, table, column, schema)
            )
        )
    )


def may_be_added(column: Column, dialect: Dialect) -> bool:
    """Whether a column has the form of one that is added: a timestamp, a shard, a mark or the id of
    a change set."""
    plain = column.generated is None and not column.not_null
    pending = SPELLINGS[dialect].commit_timestamp
    filled = {column.default, column.on_update} - {None}
    match column.type.code:
        case TypeCode.TIMESTAMP:
            ours = all(normalize(each) == normalize(pending) for each in filled)
            return plain and column.allow_commit_timestamp and ours
        case TypeCode.INT64:
            return column.generated is not None and shard_values(column.generated) is not None
        case TypeCode.BOOL | TypeCode.STRING:
            return plain and not filled
    return False


def is_in_use(table: Table, column: Column, dialect: Dialect) -> bool:
    """Whether a column of such a form does what it was added for, so that it may have values."""
    match column.type.code:
        case TypeCode.TIMESTAMP:
            return column.default is not None
        case TypeCode.BOOL:
            return any(
                find_processed(table, each, dialect) == column.name for each in table.columns
            )
    return True


def is_empty(database: Database, table: Table, column: Column, schema: Schema) -> bool:
    """Whether no row has a value in a column, as while ``apply`` is not done."""
    name = quote_column(column.name, schema.dialect)
    rows = (
        f"SELECT 1 FROM {quote_name(table.name, schema.dialect)}"  # noqa: S608 (quoted)
        f" WHERE {name} IS NOT NULL LIMIT 1"
    )
    with database.snapshot() as snapshot:
        return not list(snapshot.execute_sql(rows))
