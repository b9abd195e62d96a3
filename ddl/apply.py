"""Runs a plan against a database, through the admin API of the real client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from google.api_core.exceptions import GoogleAPICallError
from google.api_core.operation import Operation
from google.cloud.spanner_admin_database_v1 import DatabaseDialect
from google.cloud.spanner_v1.database import Database

from ddl.errors import ApplyError, PlanError
from ddl.parse import parse_schema
from ddl.plan import Plan, fingerprint
from ddl.record import delete_records, read_records, record_plan, select_rollback_statements
from ddl.schema import Dialect, Schema

OPERATION_SECONDS_MAX = 24 * 3600
POLL_SECONDS = 0.2
STATEMENTS_A_BATCH = 10
"""Spanner: many schema updates in one batch make many schema versions; about ten are fine."""
NOT_READABLE = """\
SELECT 'column', TABLE_NAME, COLUMN_NAME, SPANNER_STATE FROM INFORMATION_SCHEMA.COLUMNS
WHERE SPANNER_STATE IS NOT NULL AND SPANNER_STATE <> 'COMMITTED'
UNION ALL
SELECT 'index', TABLE_NAME, INDEX_NAME, INDEX_STATE FROM INFORMATION_SCHEMA.INDEXES
WHERE INDEX_STATE IS NOT NULL AND INDEX_STATE <> 'READ_WRITE'"""

Progress = Callable[[int], None]


def ignore_progress(done: int) -> None:
    """Nobody watches."""


def read_schema(database: Database) -> Schema:
    """The schema as the database has it now, in its own dialect."""
    database.reload()
    postgres = database.database_dialect is DatabaseDialect.POSTGRESQL
    dialect = Dialect.POSTGRESQL if postgres else Dialect.GOOGLESQL
    return parse_schema(list(database.ddl_statements), dialect)


def apply_plan(database: Database, plan: Plan, progress: Progress = ignore_progress) -> None:
    """Applies a plan and returns when its columns and indexes can be read.

    What takes it back is recorded first. ``progress`` is told how many statements are done. Raises
    ApplyError when the schema is not the one that the plan was made for, or when a statement fails:
    those before it stay, and planning again finds what is left.
    """
    if plan.empty:
        return
    schema = read_schema(database)
    if fingerprint(schema) != plan.fingerprint:
        raise ApplyError(
            f"the schema of {database.name} has changed since the plan was made; plan again"
        )
    record_plan(database, plan, schema)
    run_statements(database, [statement.sql for statement in plan.statements], progress)
    wait_until_readable(database)


def roll_back(
    database: Database, tables: Sequence[str] = (), progress: Progress = ignore_progress
) -> list[str]:
    """Takes out what ``apply_plan`` put in for the tables (none: all recorded ones).

    Returns the statements. Safe to run again after an interruption. Raises PlanError for a table
    without a record, SchemaError when something else depends on what would go.
    """
    statements, chosen = plan_rollback(database, tables)
    if statements:
        run_statements(database, statements, progress)
    if chosen:
        delete_records(database, chosen, read_schema(database))
    return statements


def plan_rollback(database: Database, tables: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """The statements of a rollback, and the tables that it is for. Changes nothing."""
    schema = read_schema(database)
    kept = read_records(database, schema)
    by_name = {table.casefold(): table for table in kept}
    unknown = [table for table in tables if table.casefold() not in by_name]
    if unknown:
        known = ", ".join(sorted(kept)) or "none"
        raise PlanError(
            f"nothing is recorded for table {unknown[0]}; only what 'ddl apply' put in can be taken"
            f" out; recorded: {known}"
        )
    chosen = [by_name[table.casefold()] for table in tables] or list(kept)
    return select_rollback_statements(schema, kept, chosen), chosen


def run_statements(
    database: Database, statements: Sequence[str], progress: Progress = ignore_progress
) -> None:
    """Runs DDL statements as batches, in their order. Raises ApplyError for the one that fails."""
    done = 0
    for batch in split_batches(statements):
        operation = database.update_ddl(list(batch))
        while not operation.done():
            progress(done + count_finished(operation))
            time.sleep(POLL_SECONDS)
        try:
            operation.result(OPERATION_SECONDS_MAX)
        except GoogleAPICallError as error:
            done += count_finished(operation)
            raise ApplyError(
                f"statement {done + 1} of {len(statements)} failed: {error.message};"
                f" the {done} before it stay, plan again for the rest"
            ) from error
        done += len(batch)
        progress(done)


def split_batches(statements: Sequence[str]) -> Iterator[Sequence[str]]:
    """So many statements at a time as Spanner likes in one schema update."""
    for first in range(0, len(statements), STATEMENTS_A_BATCH):
        yield statements[first : first + STATEMENTS_A_BATCH]


def count_finished(operation: Operation) -> int:
    """How many statements of a schema update are done."""
    return len(operation.metadata.commit_timestamps) if operation.metadata else 0


def wait_until_readable(database: Database) -> None:
    """Spanner: until a new column is COMMITTED and a new index READ_WRITE they cannot be read."""
    while True:
        with database.snapshot() as snapshot:
            if not list(snapshot.execute_sql(NOT_READABLE)):
                return
        time.sleep(POLL_SECONDS)
