"""Runs a plan against a database, through the admin API of the real client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from google.api_core.exceptions import (
    DeadlineExceeded,
    GoogleAPICallError,
    ResourceExhausted,
    ServiceUnavailable,
)
from google.api_core.operation import Operation
from google.api_core.retry import Retry, if_exception_type
from google.cloud.spanner_admin_database_v1 import DatabaseDialect
from google.cloud.spanner_v1.database import Database

from ddl.migration.plan import Plan, fingerprint
from ddl.migration.record import (
    delete_records,
    record_plan,
    select_rollback_statements,
)
from ddl.migration.updates import SchemaUpdate, find_running_updates, read_update
from ddl.rules.evolve import parse_schema
from spanner_schema.model.errors import ApplyError, PlanError
from spanner_schema.model.schema import Dialect, Schema
from spanner_schema.watched.records import read_own_records

OPERATION_SECONDS_MAX = 24 * 3600
POLL_SECONDS_MIN, POLL_SECONDS_MAX, POLL_GROWTH = 0.2, 5.0, 1.2
ASKED_AGAIN = Retry(
    predicate=if_exception_type(ServiceUnavailable, ResourceExhausted, DeadlineExceeded),
    initial=0.2,
    maximum=10.0,
    timeout=600.0,
)
"""How an operation is asked for while the service refuses to answer: it goes on meanwhile."""
STATEMENTS_A_BATCH = 10
"""Every statement of a batch makes a schema version; Spanner recommends about ten."""
NOT_READABLE = """\
SELECT 'column', TABLE_NAME, COLUMN_NAME, SPANNER_STATE FROM INFORMATION_SCHEMA.COLUMNS
WHERE SPANNER_STATE IS NOT NULL AND SPANNER_STATE <> 'COMMITTED'
UNION ALL
SELECT 'index', TABLE_NAME, INDEX_NAME, INDEX_STATE FROM INFORMATION_SCHEMA.INDEXES
WHERE INDEX_STATE IS NOT NULL AND INDEX_STATE <> 'READ_WRITE'"""

Progress = Callable[[SchemaUpdate], None]
"""Takes how far all statements of a plan are."""


def ignore_progress(update: SchemaUpdate) -> None:
    """Reports progress to nobody."""


def read_schema(database: Database) -> Schema:
    """The schema as the database has it now, in its own dialect."""
    database.reload()
    postgres = database.database_dialect is DatabaseDialect.POSTGRESQL
    dialect = Dialect.POSTGRESQL if postgres else Dialect.GOOGLESQL
    return parse_schema(list(database.ddl_statements), dialect)


def apply_plan(database: Database, plan: Plan, progress: Progress = ignore_progress) -> None:
    """Applies a plan and returns when its columns and indexes can be read.

    Records first how to undo it. Calls ``progress`` with how far it is.
    Raises ApplyError if the schema changed after planning, or if a statement fails: the statements
    before it stay, and a new plan contains the rest.
    """
    if plan.empty:
        return
    schema = read_schema(database)
    if fingerprint(schema) != plan.fingerprint:
        raise ApplyError(f"the schema of {database.name} changed after planning: plan again")
    record_plan(database, plan, schema)
    run_statements(database, [statement.sql for statement in plan.statements], progress)
    wait_until_readable(database)


def roll_back(
    database: Database, tables: Sequence[str] = (), progress: Progress = ignore_progress
) -> list[str]:
    """Removes what ``apply_plan`` added for the tables; without names for all recorded ones.

    Returns the statements. Safe to run again after an interruption. Raises PlanError for a table
    without a record, and where other objects depend on what would be dropped.
    """
    statements, selected = plan_rollback(database, tables)
    if statements:
        run_statements(database, statements, progress)
    if selected:
        delete_records(database, selected, read_schema(database))
    return statements


def plan_rollback(database: Database, tables: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """The statements of a rollback and its tables. Changes nothing. Raises as ``roll_back``."""
    schema = read_schema(database)
    records = read_own_records(database, schema)
    by_name = {table.casefold(): table for table in records}
    unknown = [table for table in tables if table.casefold() not in by_name]
    if unknown:
        known = ", ".join(sorted(records)) or "none"
        raise PlanError(
            f"table {unknown[0]} has no record: only what 'ddl apply' added can be rolled back"
            f" (recorded tables: {known})"
        )
    selected = [by_name[table.casefold()] for table in tables] or list(records)
    return select_rollback_statements(schema, records, selected), selected


def run_statements(
    database: Database, statements: Sequence[str], progress: Progress = ignore_progress
) -> None:
    """Runs DDL statements in batches, in their order. Raises ApplyError for one that fails.

    Interrupted, it leaves the batch that it has begun to Spanner, which carries it out.
    """
    done = 0
    for batch in split_batches(statements):
        operation, pauses = database.update_ddl(list(batch)), iterate_pauses()
        while not operation.done(retry=ASKED_AGAIN):
            progress(describe_batch(operation, statements, done))
            time.sleep(next(pauses))
        try:
            operation.result(OPERATION_SECONDS_MAX)
        except GoogleAPICallError as error:
            done += count_finished(operation)
            raise ApplyError(
                f"statement {done + 1} of {len(statements)} failed: {error.message};"
                f" the {done} before it are applied: fix the cause and plan again"
            ) from error
        done += len(batch)
        progress(SchemaUpdate(operation.operation.name, tuple(statements), done))


def describe_batch(
    operation: Operation, statements: Sequence[str], done_before: int
) -> SchemaUpdate:
    """How far all statements are while a batch of them runs."""
    name = operation.operation.name
    metadata = operation.metadata
    batch = read_update(name, metadata) if metadata else SchemaUpdate(name, ())
    return replace(batch, statements=tuple(statements), done=done_before + batch.done)


def wait_for_running(database: Database, progress: Progress = ignore_progress) -> None:
    """Returns when no schema update runs, such as one of an ``apply`` that was interrupted: what is
    planned before its end would be planned twice. Who may not list operations does not wait."""
    pauses = iterate_pauses()
    while running := find_running_updates(database):
        progress(running[0])
        time.sleep(next(pauses))


def split_batches(statements: Sequence[str]) -> Iterator[Sequence[str]]:
    """Splits statements into batches of the size that Spanner recommends."""
    for first in range(0, len(statements), STATEMENTS_A_BATCH):
        yield statements[first : first + STATEMENTS_A_BATCH]


def count_finished(operation: Operation) -> int:
    """The number of statements of a schema update that are done."""
    return len(operation.metadata.commit_timestamps) if operation.metadata else 0


def iterate_pauses() -> Iterator[float]:
    """How many seconds to wait before each next question: longer and longer, as an update may take
    hours and a project may make few admin calls."""
    seconds = POLL_SECONDS_MIN
    while True:
        yield seconds
        seconds = min(POLL_GROWTH * seconds, POLL_SECONDS_MAX)


def wait_until_readable(database: Database) -> None:
    """Waits until every column is COMMITTED and every index READ_WRITE: then they can be read."""
    for seconds in iterate_pauses():
        with database.snapshot() as snapshot:
            if not list(snapshot.execute_sql(NOT_READABLE)):
                return
        time.sleep(seconds)
