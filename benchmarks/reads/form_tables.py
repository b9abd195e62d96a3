"""Two tables of an embedded server that are read in every form: one is polled, one has a stream."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from benchmarks.reads.shaped_rows import COLUMNS, SHAPES, RowShape, make_row
from ddl.migration import apply
from ddl.migration.plan import make_plan
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.options import WatchOptions
from watcher.model.window import Window
from watcher.runners.spark.resolution import resolve_scan
from watcher.runners.spark.scan import Scan
from watcher.runners.spark.slices import PlannedSlice, attach_captures
from watcher.runners.spark.window_sources import make_window_source
from watcher.settings.spark_parsing import parse_source_options
from watcher.spanner.address import EMULATOR_HOST, DatabaseAddress
from watcher.spanner.database import connect, create_on_emulator

ADDRESS = DatabaseAddress("benchmark", "benchmark", "forms")
DATABASE_OPTIONS = {
    "project": ADDRESS.project,
    "instance": ADDRESS.instance,
    "database": ADDRESS.database,
}
POLLED, STREAMED, STREAM = "Polled", "Streamed", "Changes"
POLLED_COMMIT_ROWS = 1_000
THREADS = 4
COUNTED_ROWS = 100_000
"""CPU time is told for so many rows."""
CHANGE_KINDS = 3
"""Each row of the streamed table is inserted, updated and deleted."""

OF_POLLED = {"tables": POLLED}
OF_STREAM = {"tables": STREAMED, "capture": "change-stream"}
FORMS: dict[str, Mapping[str, str]] = {
    "poll, columns": {"table": POLLED},
    "poll, several tables": OF_POLLED,
    "poll, debezium": OF_POLLED | {"envelope": "debezium"},
    "poll, datastream": OF_POLLED | {"envelope": "datastream"},
    "poll, ydb": OF_POLLED | {"envelope": "ydb"},
    "change stream, columns": {"table": STREAMED, "capture": "change-stream"},
    "change stream, several tables": OF_STREAM,
    "change stream, debezium": OF_STREAM | {"envelope": "debezium"},
    "change stream, datastream": OF_STREAM | {"envelope": "datastream"},
    "change stream, change-stream": OF_STREAM | {"envelope": "change-stream"},
}
"""The options of each form."""


@dataclass(frozen=True, slots=True)
class FormReader:
    """A query in one form, and the slices that hold everything of a window."""

    scan: Scan
    slices: tuple[PlannedSlice, ...]


def fill_tables(server: str, rows: int, transaction_rows: int) -> Window:
    """Creates the tables on an embedded server; each has about so many changes, in the window.

    ``transaction_rows`` is how many rows a transaction of the streamed table changes.
    """
    database = create_database(server)
    start = fetch_now()
    fill_polled(database, rows)
    fill_streamed(database, rows // CHANGE_KINDS, transaction_rows)
    return Window(start, fetch_now())


def create_database(server: str, polled: RowShape = SHAPES["text"]) -> Database:
    """The database with its tables, on an embedded server that this process uses from now on;
    ``polled`` is what the polled table has."""
    os.environ[EMULATOR_HOST] = server
    create_on_emulator(ADDRESS, [])
    database = connect(ADDRESS)
    create_tables(database, polled)
    return database


def create_tables(database: Database, polled: RowShape) -> None:
    """The tables, one watchable by polling, and the stream of the other."""
    statements = [
        spell_table(POLLED, polled.columns),
        spell_table(STREAMED, COLUMNS),
    ]
    stream = (
        f"CREATE CHANGE STREAM {STREAM} FOR {STREAMED}"
        " OPTIONS (value_capture_type = 'NEW_ROW_AND_OLD_VALUES')"
    )
    apply.run_statements(database, [*statements, stream])
    make_watchable(database, [POLLED])


def make_watchable(database: Database, tables: Sequence[str]) -> None:
    """Prepares tables for polling."""
    plan = make_plan(apply.read_schema(database), tables, WatchOptions())
    apply.run_statements(database, [each.sql for each in plan.statements])


def name_polled(number: int) -> str:
    """The polled tables: the first is ``POLLED``."""
    return f"{POLLED}{number}" if number else POLLED


def add_polled(count: int, rows: int) -> None:
    """More tables beside ``POLLED``, each with so many rows."""
    database, tables = connect(ADDRESS), [name_polled(each) for each in range(1, count + 1)]
    apply.run_statements(database, [spell_table(each, COLUMNS) for each in tables])
    make_watchable(database, tables)
    for table in tables:
        insert_rows(database, table, 0, rows, SHAPES["text"])


def update_polled(database: Database, tables: Sequence[str], rows: int, number: int) -> None:
    """A transaction that changes the first rows of tables; ``number`` is its own."""
    changed = [(make_row(each)[0], f"city {number}") for each in range(rows)]
    with database.batch() as batch:
        for table in tables:
            batch.update(table, ("Id", "City"), changed)


def spell_table(table: str, columns: Sequence[tuple[str, Type]]) -> str:
    """The statement that creates a table; its key is its first column."""
    spelled = ", ".join(f"{name} {spell_type(type_.code)}" for name, type_ in columns)
    return f"CREATE TABLE {table} ({spelled}) PRIMARY KEY ({columns[0][0]})"


def spell_type(code: TypeCode) -> str:
    """A type of a column, as DDL writes it."""
    return f"{code.value}(MAX)" if code in (TypeCode.STRING, TypeCode.BYTES) else code.value


def fetch_now() -> int:
    """A timestamp at which a strong read is served."""
    return resolve_form("poll, columns").queries.fetch_read_timestamp()


def fill_polled(database: Database, rows: int, shape: RowShape = SHAPES["text"]) -> None:
    """Rows of about 430 bytes, or of the ``shape`` with which the table was created."""

    def insert(first: int, after: int) -> None:
        insert_rows(database, POLLED, first, after, shape)

    run_side_by_side(insert, rows, POLLED_COMMIT_ROWS)


def fill_streamed(database: Database, rows: int, transaction_rows: int) -> None:
    """Rows of about 430 bytes: inserted, then updated in one column, then deleted."""

    def insert(first: int, after: int) -> None:
        insert_rows(database, STREAMED, first, after, SHAPES["text"])

    def update(first: int, after: int) -> None:
        changed = [(make_row(number)[0], "another city") for number in range(first, after)]
        with database.batch() as batch:
            batch.update(STREAMED, ("Id", "City"), changed)

    def delete(first: int, after: int) -> None:
        keys = [[make_row(number)[0]] for number in range(first, after)]
        with database.batch() as batch:
            batch.delete(STREAMED, KeySet(keys=keys))

    for change in (insert, update, delete):
        run_side_by_side(change, rows, transaction_rows)


def insert_rows(database: Database, table: str, first: int, after: int, shape: RowShape) -> None:
    """A transaction of new rows."""
    names = [name for name, _ in shape.columns]
    with database.batch() as batch:
        batch.insert(table, names, [shape.make_row(number) for number in range(first, after)])


def run_side_by_side(work: Callable[[int, int], None], rows: int, step: int) -> None:
    """Does the work for all rows, some at a time."""
    firsts = range(0, rows, step)
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(lambda first: work(first, min(first + step, rows)), firsts))


def resolve_form(form: str) -> Scan:
    """The query of a form."""
    return resolve_scan(parse_source_options({**DATABASE_OPTIONS, **FORMS[form]}))


def plan_form(form: str, window: Window) -> FormReader:
    """A query in one form, and its slices, as Spark's driver plans them."""
    scan = resolve_form(form)
    parts = make_window_source(scan).plan_slices(dict.fromkeys(scan.tables, window))
    return FormReader(scan, tuple(attach_captures(scan, parts)))
