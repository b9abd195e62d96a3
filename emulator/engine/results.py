"""Rows as they come out of SQLite: lazily, counted, and with their connection given back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice

import apsw

from emulator.engine.long_statements import LongStatement
from emulator.engine.refusals import translate_error
from emulator.errors import SpannerError
from emulator.sql.functions.callers import waiting
from emulator.storage.sqlite import StorageReader
from emulator.values.requests import ResultColumn, ResultRows, Stats, Stored
from emulator.wrong import Wrong, is_wrong
from spanner_schema.model.schema import Schema

ROWS_AT_ONCE = 128
STEPS_BETWEEN_CHECKS = 10_000

Check = Callable[[], None]
"""Raises when nobody waits for the answer any more."""

Bindings = Mapping[str, Stored] | Sequence[Stored]


def start_query(
    reader: StorageReader,
    sql: str,
    bindings: Bindings,
    columns: tuple[ResultColumn, ...],
    schema: Schema,
    release: Callable[[bool], None],
    *,
    profile: bool = False,
    check: Check | None = None,
) -> ResultRows:
    """Starts a statement.

    ``release`` is called once: at the end with True, or by ``close`` before it with False.
    ``check`` is called every few thousand steps of SQLite; what it raises ends the statement.
    """
    stats = Stats()
    started = time.perf_counter()
    statement = LongStatement(sql, check or nobody_waits)
    watch(reader, statement)
    try:
        if profile:
            stats.plan = query_plan(reader.connection, sql, bindings)
        reader.scanned[0] = 0
        with waiting(check), running(statement):
            cursor = reader.connection.execute(sql, bindings)
    except apsw.Error as error:
        watch(reader, None)
        raise translate_error(error, schema) from error
    except SpannerError:
        watch(reader, None)
        raise
    released = False

    def finish(complete: bool = False) -> None:
        nonlocal released
        if not released:
            released = True
            stats.elapsed_seconds = time.perf_counter() - started
            stats.rows_scanned = reader.scanned[0] + 10_000 * is_wrong(Wrong.INDEX_READS_ENTRIES)
            cursor.close(True)
            watch(reader, None)
            release(complete)

    def fetch() -> list[tuple[Stored, ...]]:
        with waiting(check), running(statement):
            return list(islice(cursor, ROWS_AT_ONCE))

    return ResultRows(columns, read_batches(fetch, stats, schema, finish), stats, finish)


def nobody_waits() -> None:
    """The check of a statement that ends by itself."""


@contextmanager
def running(statement: LongStatement) -> Iterator[None]:
    """While SQLite works on a statement."""
    try:
        yield
    finally:
        statement.pause()


def watch(reader: StorageReader, statement: LongStatement | None) -> None:
    """Ends a statement while it runs, once its check raises."""
    if statement is None:
        reader.connection.set_progress_handler(None)
        return

    def handler() -> bool:
        statement.note_check()
        return False

    reader.connection.set_progress_handler(handler, STEPS_BETWEEN_CHECKS)


def read_batches(
    fetch: Callable[[], list[tuple[Stored, ...]]],
    stats: Stats,
    schema: Schema,
    finish: Callable[[bool], None],
) -> Iterator[tuple[Stored, ...]]:
    """The rows of a statement, some at a time, counted; ``fetch`` gives none at the end."""
    try:
        while rows := fetch():
            stats.rows_returned += len(rows)
            yield from rows
        finish(True)
    except apsw.Error as error:
        raise translate_error(error, schema) from error
    finally:
        finish(False)


def collect_rows(
    reader: StorageReader,
    sql: str,
    bindings: Bindings,
    columns: tuple[ResultColumn, ...],
    schema: Schema,
    *,
    profile: bool = False,
    check: Check | None = None,
) -> ResultRows:
    """All rows at once, for a connection that must not keep a cursor open."""
    rows = start_query(
        reader, sql, bindings, columns, schema, nothing_to_release, profile=profile, check=check
    )
    return rows_in_memory(columns, list(rows.rows), rows.stats)


def rows_in_memory(
    columns: tuple[ResultColumn, ...], rows: Sequence[tuple[Stored, ...]], stats: Stats
) -> ResultRows:
    """A result that is in memory already."""
    stats.rows_returned = len(rows)
    return ResultRows(columns, iter(rows), stats, nothing_to_close)


def query_plan(connection: apsw.Connection, sql: str, bindings: Bindings) -> tuple[str, ...]:
    """SQLite's plan, a line a step."""
    return tuple(str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings))


def nothing_to_release(_complete: bool) -> None:
    """There is nothing to release."""


def nothing_to_close() -> None:
    """There is nothing to close."""
