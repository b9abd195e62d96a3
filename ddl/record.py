"""What ``apply`` put into a database, kept in the database: ``rollback`` takes out that, and only
that."""

from __future__ import annotations

import json
from collections.abc import Sequence

from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, KeySet, param_types
from google.cloud.spanner_v1.database import Database

from ddl.errors import NameNotFoundError
from ddl.evolve import apply
from ddl.parse import parse_statement
from ddl.plan import Plan
from ddl.schema import Schema

TABLE = "SpannerWatcherMigrations"
CREATE = (
    f"CREATE TABLE IF NOT EXISTS {TABLE} (WatchedTable STRING(256) NOT NULL,"
    " Down STRING(MAX) NOT NULL,"
    " RecordedAt TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true)"
    ") PRIMARY KEY (WatchedTable)"
)


def record(database: Database, plan: Plan) -> None:
    """Writes down how to take a plan back, before it is applied.

    Statements of an earlier plan that was interrupted stay, behind those of this one.
    """
    database.update_ddl([CREATE]).result(600)
    kept = recorded(database)
    rows = []
    for table in dict.fromkeys(statement.table for statement in plan.statements):
        mine = [s for s in reversed(plan.statements) if s.table == table]
        down = [sql for statement in mine for sql in statement.undo]
        down += [sql for sql in kept.get(table, ()) if sql not in down]
        rows.append((table, json.dumps(down), COMMIT_TIMESTAMP))
    with database.batch() as batch:
        batch.insert_or_update(TABLE, ("WatchedTable", "Down", "RecordedAt"), rows)


def recorded(database: Database) -> dict[str, tuple[str, ...]]:
    """The statements that take out what was put in, by table; empty when nothing was recorded."""
    with database.snapshot(multi_use=True) as snapshot:
        there = snapshot.execute_sql(
            "SELECT COUNT(*) FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME = @name",
            params={"name": TABLE},
            param_types={"name": param_types.STRING},
        )
        if not next(iter(there))[0]:
            return {}
        rows = snapshot.read(TABLE, ("WatchedTable", "Down"), KeySet(all_=True))
        return {row[0]: tuple(json.loads(row[1])) for row in rows}


def rollback_statements(
    schema: Schema, kept: dict[str, tuple[str, ...]], tables: Sequence[str]
) -> list[str]:
    """The recorded statements that still have something to take out, tried on the schema.

    Raises SchemaError when something else has come to depend on what would go.
    """
    found = []
    for table in tables:
        for sql in kept.get(table, ()):
            step = parse_statement(sql)
            try:
                after = apply(schema, step)
            except NameNotFoundError:
                continue  # it was never put in, or somebody has taken it out
            if after != schema:
                found.append(sql)
            schema = after
    return found


def forget(database: Database, tables: Sequence[str]) -> None:
    """Removes the records of tables; with the last one the table of records itself."""
    with database.batch() as batch:
        batch.delete(TABLE, KeySet(keys=[[table] for table in tables]))
    if not recorded(database):
        database.update_ddl([f"DROP TABLE {TABLE}"]).result(600)
