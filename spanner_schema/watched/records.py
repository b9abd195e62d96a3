"""Reads the records of what ``ddl apply`` added and took over, kept in the database."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.names import TABLE_NAME_CHARACTERS_MAX
from spanner_schema.model.schema import Column, Dialect, KeyPart, Schema, Table
from spanner_schema.model.steps import DropColumn
from spanner_schema.syntax.parse import parse_statement
from spanner_schema.watched.ownership import Ownership, fold

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


def read_ownership(database: Database, schema: Schema) -> Mapping[str, Ownership]:
    """What the records say is ours, by table: columns that were added or taken over."""
    return {
        table: Ownership(fold(record.taken_over), fold(list_added_columns(record, schema.dialect)))
        for table, record in read_records(database, schema).items()
    }


def list_added_columns(record: Record, dialect: Dialect) -> list[str]:
    """The columns that a rollback would drop."""
    steps = (parse_statement(sql, dialect) for sql in record.down)
    return [step.column for step in steps if isinstance(step, DropColumn)]
