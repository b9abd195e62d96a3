"""Runs a plan against a database, through the admin API of the real client."""

from __future__ import annotations

import time
from collections.abc import Callable

from google.api_core.exceptions import GoogleAPICallError
from google.cloud.spanner_v1.database import Database

from ddl.errors import ApplyError
from ddl.parse import parse_schema
from ddl.plan import Plan, fingerprint
from ddl.schema import Schema

OPERATION_SECONDS_MAX = 24 * 3600
POLL_SECONDS = 0.2
NOT_READABLE = """\
SELECT 'column', TABLE_NAME, COLUMN_NAME, SPANNER_STATE FROM INFORMATION_SCHEMA.COLUMNS
WHERE SPANNER_STATE IS NOT NULL AND SPANNER_STATE <> 'COMMITTED'
UNION ALL
SELECT 'index', TABLE_NAME, INDEX_NAME, INDEX_STATE FROM INFORMATION_SCHEMA.INDEXES
WHERE INDEX_STATE IS NOT NULL AND INDEX_STATE <> 'READ_WRITE'"""

Progress = Callable[[int], None]


def ignore(done: int) -> None:
    """Nobody watches."""


def read_schema(database: Database) -> Schema:
    """The schema as the database has it now."""
    database.reload()
    return parse_schema(list(database.ddl_statements))


def apply_plan(database: Database, plan: Plan, progress: Progress = ignore) -> None:
    """Applies a plan and returns when its columns and indexes can be read.

    ``progress`` is told how many statements are done. Raises ApplyError when the schema is not the
    one that the plan was made for, or when a statement fails: those before it stay, and planning
    again finds what is left.
    """
    if plan.empty:
        return
    if fingerprint(read_schema(database)) != plan.fingerprint:
        raise ApplyError(
            f"the schema of {database.name} has changed since the plan was made; plan again"
        )
    operation = database.update_ddl([statement.sql for statement in plan.statements])
    while not operation.done():
        progress(len(operation.metadata.commit_timestamps) if operation.metadata else 0)
        time.sleep(POLL_SECONDS)
    try:
        operation.result(OPERATION_SECONDS_MAX)
    except GoogleAPICallError as error:
        done = len(operation.metadata.commit_timestamps) if operation.metadata else 0
        raise ApplyError(
            f"statement {done + 1} of {len(plan.statements)} failed: {error.message};"
            f" the {done} before it stay, plan again for the rest"
        ) from error
    progress(len(plan.statements))
    wait_until_readable(database)


def wait_until_readable(database: Database) -> None:
    """Spanner: until a new column is COMMITTED and a new index READ_WRITE they cannot be read."""
    while True:
        with database.snapshot() as snapshot:
            if not list(snapshot.execute_sql(NOT_READABLE)):
                return
        time.sleep(POLL_SECONDS)
