"""A writer process: ``python -m benchmarks.load.writer RUN WRITER``.

An open loop: every transaction has its moment on the schedule, whether or not the one before it is
done. Every acknowledged commit is logged, row by row: that is the ground truth.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from google.cloud.spanner_v1 import CommitResponse, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction as SpannerTransaction

from benchmarks.load.arrivals import arrivals
from benchmarks.load.choices import Choices, PlannedTransaction
from benchmarks.load.records import ATTEMPTS, WRITTEN, Appender
from benchmarks.load.tables import COLUMNS
from benchmarks.run_settings import PROCESSED_COLUMN, Run
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect
from watcher.spanner.dialects import SqlDialect, find_dialect
from watcher.spanner.timestamps import to_micros

TYPES = {"id": param_types.INT64, "version": param_types.INT64, "payload": param_types.STRING}
BEGIN_SECONDS_MAX = 320.0


class LoadWriter:
    """Commits transactions and logs them. Used by several threads."""

    def __init__(self, run: Run, number: int, database: Database) -> None:
        self._run = run
        self._database = database
        self._choices = Choices(run.workload, number)
        self._lock = threading.Lock()
        self._log = Appender(run.records("written", f"writer{number}"), WRITTEN)
        self.commits = 0

    def write(self, intended: int) -> None:
        """One transaction that was due at ``intended``."""
        with self._lock:
            transaction = self._choices.next()
        sent = now()
        commit = self._commit(transaction)
        acknowledged = now()
        columns = (
            transaction.table,
            transaction.keys,
            transaction.versions,
            commit,
            intended,
            sent,
            acknowledged,
        )
        with self._lock:
            self._log.add(columns, len(transaction.keys))
            self.commits += 1

    def _commit(self, transaction: PlannedTransaction) -> int:
        """The commit timestamp."""
        rows = rows_of(transaction, self._run.workload.row_bytes)
        columns: tuple[str, ...] = COLUMNS
        values: Sequence[tuple[object, ...]] = rows
        if self._run.resets_processed:
            # The strategy's one wish of an application: a change is not processed yet.
            columns, values = (*COLUMNS, PROCESSED_COLUMN), [(*row, False) for row in rows]
        table = self._run.tables[transaction.table]
        if self._run.workload.dml:
            return self._commit_dml(table, rows, transaction.insert)
        with self._database.batch() as batch:
            (batch.insert if transaction.insert else batch.update)(table, columns, values)
        return read_commit_micros(batch.committed)

    def _commit_dml(self, table: str, rows: list[tuple[int, int, str]], insert: bool) -> int:
        sql = find_dialect(self._database)

        def work(spanner: SpannerTransaction) -> SpannerTransaction:
            write_by_dml(spanner, table, rows, insert, self._run.resets_processed, sql)
            return spanner

        return read_commit_micros(self._database.run_in_transaction(work).committed)


class CountedCommits:
    """Counts the Commit calls of a client, which tries ABORTED ones again without telling."""

    def __init__(self, database: Database) -> None:
        self.count = 0
        self._lock = threading.Lock()
        self._api = database.spanner_api
        self._commit = self._api.commit
        self._api.commit = self

    def __call__(self, *arguments: object, **options: object) -> CommitResponse:
        """A Commit call."""
        with self._lock:
            self.count += 1
        response: CommitResponse = self._commit(*arguments, **options)
        return response


def rows_of(transaction: PlannedTransaction, row_bytes: int) -> list[tuple[int, int, str]]:
    """Whole rows; the payload begins with the version."""
    return [
        (key, version, f"{version} ".ljust(row_bytes, "x")[:row_bytes])
        for key, version in zip(
            transaction.keys.tolist(), transaction.versions.tolist(), strict=True
        )
    ]


def write_by_dml(
    spanner: SpannerTransaction,
    table: str,
    rows: list[tuple[int, int, str]],
    insert: bool,
    reset: bool,
    sql: SqlDialect,
) -> None:
    """A statement a row, in one call; with ``reset`` an updated row is not processed.

    Raises RuntimeError unless each wrote its row.
    """
    more = f", {sql.quote(PROCESSED_COLUMN)} = FALSE" if reset else ""
    key, version, payload = map(sql.quote, COLUMNS)
    statement = (
        f"INSERT INTO {sql.quote(table)} ({sql.quote_all(COLUMNS)})"  # noqa: S608 (quoted)
        " VALUES (@id, @version, @payload)"
        if insert
        else f"UPDATE {sql.quote(table)} SET {version} = @version, {payload} = @payload{more}"  # noqa: S608
        f" WHERE {key} = @id"
    )
    statements = [
        sql.bind(statement, {n: (value, TYPES[n]) for n, value in zip(TYPES, row, strict=True)})
        for row in rows
    ]
    status, counts = spanner.batch_update(statements)
    if status.code or any(count != 1 for count in counts):
        raise RuntimeError(f"the writer's DML failed: {status.message or counts}")


def read_commit_micros(committed: datetime | None) -> int:
    """The commit timestamp of an answered commit."""
    if committed is None:
        raise RuntimeError("the response to the commit has no timestamp")
    return to_micros(committed)


def now() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1_000


def wait_for_beginning(run: Run, process: str) -> int:
    """Says that this process is ready, and waits for the moment at which the schedule begins."""
    run.ready(process).touch()
    ends_at = time.monotonic() + BEGIN_SECONDS_MAX
    while not run.begin.exists():
        if time.monotonic() > ends_at:
            raise TimeoutError(f"{run.begin} did not appear within {BEGIN_SECONDS_MAX} s")
        time.sleep(0.01)
    return int(run.begin.read_text())


def main(arguments: list[str]) -> None:
    """Keeps the schedule from its beginning to its end."""
    run, number = Run.load(arguments[0]), int(arguments[1])
    process = f"writer{number}"
    database = connect(DatabaseAddress.parse(run.database))
    # Channel and session are made now: the first transactions are not late because of them.
    database.run_in_transaction(lambda spanner: list(spanner.execute_sql("SELECT 1")))
    counted = CountedCommits(database)
    writer = LoadWriter(run, number, database)
    due = (arrivals(run.workload)[number :: run.workload.writers] * 1_000_000).astype(int)
    beginning = wait_for_beginning(run, process)

    def write_at(offset: int) -> None:
        intended = beginning + offset
        delay = intended - now()
        if delay > 0:
            time.sleep(delay / 1_000_000)
        writer.write(intended)

    with ThreadPoolExecutor(run.workload.threads) as threads:
        for _ in threads.map(write_at, due.tolist()):
            pass
    with Appender(run.records("attempts", process), ATTEMPTS) as log:
        log.add((writer.commits, counted.count), 1)


if __name__ == "__main__":
    main(sys.argv[1:])
