"""Records of what ``ddl apply`` added, kept in the database: ``ddl rollback`` removes only that."""

from __future__ import annotations

import json
from collections.abc import Sequence

from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, KeySet
from google.cloud.spanner_v1.database import Database

from ddl.errors import NameNotFoundError
from ddl.evolve import apply_step
from ddl.parse import parse_statement
from ddl.plan import Plan
from ddl.render import render_step
from ddl.schema import Column, KeyPart, Schema, Table, Type, TypeCode
from ddl.steps import CreateTable, DropTable

TABLE = "SpannerWatcherMigrations"
RECORDS = Table(
    TABLE,
    (
        Column("WatchedTable", Type(TypeCode.STRING, length=256), not_null=True),
        Column("Down", Type(TypeCode.STRING), not_null=True),
        Column("RecordedAt", Type(TypeCode.TIMESTAMP), not_null=True, allow_commit_timestamp=True),
    ),
    (KeyPart("WatchedTable"),),
)
RECORDED_SCHEMA = Schema(tables=(RECORDS,))


def record_plan(database: Database, plan: Plan, schema: Schema) -> None:
    """Records how to undo a plan, before it is applied.

    Statements of an earlier plan that was interrupted stay, after those of this one.
    """
    create = render_step(CreateTable(RECORDS, if_not_exists=True), schema.dialect)
    database.update_ddl([create]).result(600)
    records = read_records(database, RECORDED_SCHEMA)
    rows = []
    for table in dict.fromkeys(statement.table for statement in plan.statements):
        of_table = [s for s in reversed(plan.statements) if s.table == table]
        down = [sql for statement in of_table for sql in statement.undo]
        down += [sql for sql in records.get(table, ()) if sql not in down]
        rows.append((table, json.dumps(down), COMMIT_TIMESTAMP))
    with database.batch() as batch:
        batch.insert_or_update(TABLE, ("WatchedTable", "Down", "RecordedAt"), rows)


def read_records(database: Database, schema: Schema) -> dict[str, tuple[str, ...]]:
    """The statements that undo what was added, by table; empty if nothing was recorded.

    ``schema`` shows whether the table of records exists.
    """
    if schema.table(TABLE) is None:
        return {}
    with database.snapshot() as snapshot:
        rows = snapshot.read(TABLE, ("WatchedTable", "Down"), KeySet(all_=True))
        return {row[0]: tuple(json.loads(row[1])) for row in rows}


def select_rollback_statements(
    schema: Schema, records: dict[str, tuple[str, ...]], tables: Sequence[str]
) -> list[str]:
    """The recorded statements that still have something to undo, tried on the schema.

    Raises SchemaError if another object depends on what would be dropped.
    """
    statements = []
    for table in tables:
        for sql in records.get(table, ()):
            step = parse_statement(sql, schema.dialect)
            try:
                after = apply_step(schema, step)
            except NameNotFoundError:
                continue  # it was never added, or is already dropped
            if after != schema:
                statements.append(sql)
            schema = after
    return statements


def delete_records(database: Database, tables: Sequence[str], schema: Schema) -> None:
    """Deletes the records of tables, and with the last one the table of records."""
    with database.batch() as batch:
        batch.delete(TABLE, KeySet(keys=[[table] for table in tables]))
    if not read_records(database, schema):
        database.update_ddl([render_step(DropTable(TABLE), schema.dialect)]).result(600)
