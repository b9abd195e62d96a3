"""The tables of a run: made, filled, then made watchable, so that the old rows are in no index."""

from __future__ import annotations

import time
from datetime import datetime

import numpy as np
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from benchmarks.load.records import WRITTEN, Appender
from benchmarks.load.workload import Workload
from benchmarks.run_settings import (
    PREFIX,
    PROCESSED_COLUMN,
    SHARD_COLUMN,
    TIMESTAMP_COLUMN,
    Preparation,
    Run,
)
from ddl.migration import apply
from ddl.migration.plan import make_plan
from ddl.rules.evolve import parse_schema
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import (
    ChangeStream,
    ChangeStreamTable,
    Column,
    Dialect,
    KeyPart,
    Schema,
    Table,
)
from spanner_schema.model.steps import CreateChangeStream, CreateTable
from spanner_schema.model.strategies import Strategy
from spanner_schema.syntax.render import render_schema, render_step
from watcher.model.errors import ConfigurationError
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect, create_on_emulator
from watcher.spanner.dialects import SqlDialect, find_dialect
from watcher.spanner.timestamps import format_timestamp, to_micros

COLUMNS = ("Id", "Version", "Payload")
ROWS_A_COMMIT = 10_000
STATEMENTS_MAX = 1_000
"""Of one update of the embedded server's schema."""
UPDATE_SECONDS_MAX = 3_600.0


def prepare_tables(run: Run) -> Database:
    """Makes and fills the tables of a run. Raises ConfigurationError when one is there already."""
    address = DatabaseAddress.parse(run.database)
    if run.emulator is not None:
        create_on_emulator(address, [], run.preparation.dialect)
    database = connect(address)
    there = list_own_tables(database)
    if there:
        raise ConfigurationError(
            f"{address} already has a table {there[0]}: benchmarks create {PREFIX}... and drop"
            " them at the end. Drop it if an earlier run left it, or use another database"
        )
    dialect = find_dialect(database).dialect
    statements = [render_step(CreateTable(define_table(name)), dialect) for name in run.tables]
    if can_create_watchable(run):
        create_watchable(database, run, parse_schema(statements, dialect))
        for name in run.tables:
            fill_tables(database, name, run.workload, unchanged=True)
        return database
    apply.run_statements(database, statements)
    for name in run.tables:
        fill_tables(database, name, run.workload)
    if run.consumer.streams:
        make_streams(database, run)
    else:
        make_watchable(database, run)
    return database


def define_table(name: str) -> Table:
    """A table before it is made watchable."""
    types = {"Id": TypeCode.INT64, "Version": TypeCode.INT64, "Payload": TypeCode.STRING}
    columns = tuple(Column(c, Type(code), not_null=c == "Id") for c, code in types.items())
    return Table(name, columns, (KeyPart("Id"),))


def render_fill(sql: SqlDialect, table: str, version: str, unchanged: bool = False) -> str:
    """The statement that inserts rows with the keys from @low to @high; ``unchanged`` rows have no
    timestamp."""
    keys = {
        Dialect.GOOGLESQL: "UNNEST(GENERATE_ARRAY(@low, @high)) AS k",
        Dialect.POSTGRESQL: "GENERATE_SERIES(@low, @high) AS k",
    }
    columns = (*COLUMNS, TIMESTAMP_COLUMN) if unchanged else COLUMNS
    timestamp = ", CAST(NULL AS TIMESTAMP)" if unchanged else ""
    return (
        f"INSERT INTO {sql.quote(table)} ({sql.quote_all(columns)})"  # noqa: S608 (quoted)
        f" SELECT k, {version}, REPEAT('.', @bytes){timestamp} FROM {keys[sql.dialect]}"
    )


def fill_tables(
    database: Database, table: str, workload: Workload, unchanged: bool = False
) -> None:
    """Rows with the keys 0, 1, ... and version -1."""
    rows, statement = workload.rows, render_fill(find_dialect(database), table, "-1", unchanged)
    for low in range(0, rows, ROWS_A_COMMIT):
        insert(database, statement, low, min(low + ROWS_A_COMMIT, rows) - 1, workload.row_bytes)


def can_create_watchable(run: Run) -> bool:
    """Whether tables can be created as they are watched, and be filled with rows that are not in
    their index: those without a timestamp."""
    wish = run.preparation
    plain = wish.index == "forced" and wish.strategy == "automatic"
    return plain and wish.dialect is Dialect.GOOGLESQL and not run.consumer.streams


def create_watchable(database: Database, run: Run, schema: Schema) -> None:
    """Tables that are watchable from the start: two statements a table, and none alters what is
    there, which would be long for thousands of tables, or for millions of rows."""
    plan = make_plan(schema, list(run.tables), make_options(run.preparation))
    written = [*render_schema(schema), *(each.sql for each in plan.statements)]
    statements = render_schema(parse_schema(written, schema.dialect))
    if run.emulator is None:
        apply.run_statements(database, statements)
        return
    for first in range(0, len(statements), STATEMENTS_MAX):
        update = database.update_ddl(statements[first : first + STATEMENTS_MAX])
        update.result(UPDATE_SECONDS_MAX)


def make_watchable(database: Database, run: Run) -> None:
    """What ``spanner-watcher ddl apply`` does, without the record that it leaves behind."""
    options = make_options(run.preparation)
    plan = make_plan(apply.read_schema(database), list(run.tables), options)
    apply.run_statements(database, [each.sql for each in plan.statements])
    if run.preparation.index != "forced":
        replace_indexes(database, run)


def make_options(wish: Preparation) -> WatchOptions:
    """How tables are made watchable."""
    return WatchOptions(
        strategy=Strategy(wish.strategy),
        shards=wish.shards,
        timestamp_column=TIMESTAMP_COLUMN,
        shard_column=SHARD_COLUMN,
        processed_column=PROCESSED_COLUMN,
        storing=("Version", "Payload") if wish.storing else (),
    )


def replace_indexes(database: Database, run: Run) -> None:
    """Another index in place of the one that is made for watching, or none.

    The key at the end, which every index has anyway, is named here: it keeps the watcher from
    taking this for the index that it forces.
    """
    schema, kind = apply.read_schema(database), run.preparation.index
    statements = [f"DROP INDEX {index.name}" for n in run.tables for index in schema.indexes_of(n)]
    if kind != "none":
        filtered = "" if kind == "plain" else "NULL_FILTERED "
        parts = f"{SHARD_COLUMN}, {TIMESTAMP_COLUMN}, Id"
        parts = TIMESTAMP_COLUMN if kind == "no-shard" else parts
        statements += [
            f"CREATE {filtered}INDEX {name}ByOther ON {name}({parts})" for name in run.tables
        ]
    apply.run_statements(database, statements)


def make_streams(database: Database, run: Run) -> None:
    """A change stream for each watcher: the tables stay as they are."""
    options = (("value_capture_type", "'NEW_ROW'"),)
    streams = (
        ChangeStream(
            run.stream_of(n), tuple(map(ChangeStreamTable, run.tables_of(n))), False, options
        )
        for n in range(run.consumer.watchers)
        if run.tables_of(n)
    )
    dialect = find_dialect(database).dialect
    statements = [render_step(CreateChangeStream(stream), dialect) for stream in streams]
    apply.run_statements(database, statements)


def read_database_time(database: Database) -> str:
    """The database's time: everything that was committed before has a timestamp below it."""
    with database.snapshot() as snapshot:
        now: datetime = next(iter(snapshot.execute_sql("SELECT CURRENT_TIMESTAMP")))[0]
    return format_timestamp(to_micros(now))


def load_backlog(database: Database, run: Run) -> None:
    """Inserts rows that are in the index, and logs them as a writer does."""
    statement = render_fill(find_dialect(database), run.tables[0], "k")
    first, after = run.workload.rows, run.workload.rows + run.backlog
    with Appender(run.records("written", "backlog"), WRITTEN) as log:
        for low in range(first, after, run.backlog_mutations):
            high = min(low + run.backlog_mutations, after) - 1
            sent = time.time_ns() // 1_000
            commit = insert(database, statement, low, high, run.workload.row_bytes)
            keys = np.arange(low, high + 1)
            log.add((0, keys, keys, commit, sent, sent, commit), len(keys))


def insert(database: Database, statement: str, low: int, high: int, row_bytes: int) -> int:
    """Runs a statement in a transaction of its own; the commit timestamp in microseconds."""
    numbers = {"low": low, "high": high, "bytes": row_bytes}
    values = {name: (value, param_types.INT64) for name, value in numbers.items()}
    bound = find_dialect(database).bind(statement, values)

    def work(transaction: Transaction) -> Transaction:
        transaction.execute_update(*bound)
        return transaction

    committed = database.run_in_transaction(work).committed
    return to_micros(committed)


def list_own_tables(database: Database) -> list[str]:
    """The tables of benchmarks in a database."""
    return sorted(t.name for t in apply.read_schema(database).tables if t.name.startswith(PREFIX))


def drop_own_tables(database: Database) -> None:
    """Takes the tables of benchmarks away again."""
    schema, names = apply.read_schema(database), list_own_tables(database)
    streams = [each.name for each in schema.change_streams if each.name.startswith(PREFIX)]
    q = find_dialect(database).quote
    statements = [f"DROP CHANGE STREAM {q(name)}" for name in streams]
    statements += [f"DROP INDEX {q(index.name)}" for n in names for index in schema.indexes_of(n)]
    statements += [f"DROP TABLE {q(name)}" for name in names]
    apply.run_statements(database, statements)
