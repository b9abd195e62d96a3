"""What ``apply`` put into a database, kept in the database: ``rollback`` takes out that, and only
that."""

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
    """Writes down how to take a plan back, before it is applied.

    Statements of an earlier plan that was interrupted stay, behind those of this one.
    """
    create = render_step(CreateTable(RECORDS, if_not_exists=True), schema.dialect)
    database.update_ddl([create]).result(600)
    kept = read_records(database, RECORDED_SCHEMA)
    rows = []
    for table in dict.fromkeys(statement.table for statement in plan.statements):
        mine = [s for s in reversed(plan.statements) if s.table == table]
        down = [sql for statement in mine for sql in statement.undo]
        down += [sql for sql in kept.get(table, ()) if sql not in down]
        rows.append((table, json.dumps(down), COMMIT_TIMESTAMP))
    with database.batch() as batch:
        batch.insert_or_update(TABLE, ("WatchedTable", "Down", "RecordedAt"), rows)


def read_records(database: Database, schema: Schema) -> dict[str, tuple[str, ...]]:
    """The statements that take out what was put in, by table; empty when nothing was recorded.

    ``schema`` says whether there is a table of records.
    """
    if schema.table(TABLE) is None:
        return {}
    with database.snapshot() as snapshot:
        rows = snapshot.read(TABLE, ("WatchedTable", "Down"), KeySet(all_=True))
        return {row[0]: tuple(json.loads(row[1])) for row in rows}


def select_rollback_statements(
    schema: Schema, kept: dict[str, tuple[str, ...]], tables: Sequence[str]
) -> list[str]:
    """The recorded statements that still have something to take out, tried on the schema.

    Raises SchemaError when something else has come to depend on what would go.
    """
    found = []
    for table in tables:
        for sql in kept.get(table, ()):
            step = parse_statement(sql, schema.dialect)
            try:
                after = apply_step(schema, step)
            except NameNotFoundError:
                continue  # it was never put in, or somebody has taken it out
            if after != schema:
                found.append(sql)
            schema = after
    return found


def delete_records(database: Database, tables: Sequence[str], schema: Schema) -> None:
    """Removes the records of tables; with the last one the table of records itself."""
    with database.batch() as batch:
        batch.delete(TABLE, KeySet(keys=[[table] for table in tables]))
    if not read_records(database, schema):
        database.update_ddl([render_step(DropTable(TABLE), schema.dialect)]).result(600)
