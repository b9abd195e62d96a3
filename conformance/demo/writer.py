"""A process that writes to the table and knows nothing of watching.

It inserts and updates, by mutations and by DML in turn, at a fixed rate of rows, and logs every
commit that was acknowledged: that log is the ground truth of the verification. ``LastName`` of each
written row names the write, so that a delivered row can be traced back to the commit that made it.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TextIO

from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from conformance.demo.settings import TABLE, DemoSettings
from watcher.spanner.database import open_database
from watcher.spanner.dialects import SqlDialect, find_dialect

ROWS_A_COMMIT = 20
THREADS = 4
COLUMNS = ("SingerId", "FirstName", "LastName", "BirthDate", "Picture")
PARAMETER_TYPES = {
    "id": param_types.INT64,
    "first": param_types.STRING,
    "last": param_types.STRING,
    "born": param_types.DATE,
    "picture": param_types.BYTES,
}


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one commit: ``versions`` are the names that this commit gives its rows."""

    keys: tuple[int, ...]
    versions: tuple[str, ...]
    insert: bool
    by_dml: bool


def generate_batches(settings: DemoSettings) -> Iterator[Batch]:
    """An endless, seeded sequence; no key is in two batches that could be under way together."""
    randomness = random.Random(settings.seed)
    next_key = settings.rows
    versions = (f"v{number}" for number in itertools.count(1))
    recent: list[int] = []
    for number in itertools.count():
        insert = number % 2 == 0
        if insert:
            keys = tuple(range(next_key, next_key + ROWS_A_COMMIT))
            next_key += ROWS_A_COMMIT
        else:
            candidates = randomness.sample(range(next_key), ROWS_A_COMMIT + len(recent))
            keys = tuple(key for key in candidates if key not in recent)[:ROWS_A_COMMIT]
        recent = [*recent, *keys][-THREADS * 2 * ROWS_A_COMMIT :]
        yield Batch(keys, tuple(next(versions) for _ in keys), insert, by_dml=number % 4 >= 2)


def make_row(key: int, version: str) -> tuple[int, str, str, date, bytes]:
    """A whole row; BYTES go through the client in base64."""
    born = date(1950, 1, 1) + timedelta(days=key % 20_000)
    return key, f"First {key}", version, born, b64encode(b"picture %d" % key)


def commit_mutations(database: Database, batch: Batch) -> datetime:
    """Writes a batch as mutations of one commit."""
    rows = [make_row(key, version) for key, version in zip(batch.keys, batch.versions, strict=True)]
    with database.batch() as mutations:
        if batch.insert:
            mutations.insert(TABLE, COLUMNS, rows)
        else:
            mutations.update(TABLE, ("SingerId", "LastName"), [(r[0], r[2]) for r in rows])
    return read_commit_timestamp(mutations.committed)


def render_insert(sql: SqlDialect) -> str:
    """The statement of a new row."""
    return (
        f"INSERT INTO {sql.quote(TABLE)} ({sql.quote_all(COLUMNS)})"  # noqa: S608 (quoted)
        " VALUES (@id, @first, @last, @born, @picture)"
    )


def render_update(sql: SqlDialect) -> str:
    """The statement that changes a row."""
    q = sql.quote
    return f"UPDATE {q(TABLE)} SET {q('LastName')} = @last WHERE {q('SingerId')} = @id"  # noqa: S608


def commit_dml(database: Database, batch: Batch) -> datetime:
    """Writes a batch as DML statements of one read-write transaction."""
    sql = find_dialect(database)
    text = render_insert(sql) if batch.insert else render_update(sql)

    def work(transaction: Transaction) -> Transaction:
        statements = []
        for key, version in zip(batch.keys, batch.versions, strict=True):
            values = dict(zip(PARAMETER_TYPES, make_row(key, version), strict=True))
            names = PARAMETER_TYPES if batch.insert else ("id", "last")
            bound = {name: (values[name], PARAMETER_TYPES[name]) for name in names}
            statements.append(sql.bind(text, bound))
        status, counts = transaction.batch_update(statements)
        if status.code or any(count != 1 for count in counts):
            raise RuntimeError(f"the writer's DML failed: {status.message or counts}")
        return transaction

    return read_commit_timestamp(database.run_in_transaction(work).committed)


def read_commit_timestamp(committed: datetime | None) -> datetime:
    """The commit timestamp of an answered commit."""
    if committed is None:
        raise RuntimeError("the response to the commit has no timestamp")
    return committed


class CommitLog:
    """The ground truth on disk: a line a commit, written after the commit was acknowledged."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._lock = threading.Lock()

    def append(self, batch: Batch, committed: datetime) -> None:
        """Records a commit; lines of several threads do not mix."""
        micros = round(committed.timestamp() * 1_000_000)
        line = {"timestamp": micros, "keys": batch.keys, "versions": batch.versions}
        with self._lock:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()


def write(settings: DemoSettings, database: Database, log: CommitLog) -> None:
    """Keeps the rate for the settings' time: each batch has its moment, none is skipped."""
    interval = ROWS_A_COMMIT / settings.mutations_per_second
    count = int(settings.write_seconds / interval)
    source, turn = generate_batches(settings), threading.Lock()
    began = time.monotonic()

    def write_batch(number: int) -> None:
        delay = began + number * interval - time.monotonic()
        if delay > 0:
            time.sleep(delay)
        with turn:
            batch = next(source)
        commit: Callable[[Database, Batch], datetime] = (
            commit_dml if batch.by_dml else commit_mutations
        )
        log.append(batch, commit(database, batch))

    with ThreadPoolExecutor(THREADS) as threads:
        for _ in threads.map(write_batch, range(count)):
            pass


def main(arguments: list[str]) -> None:
    """``python -m conformance.demo.writer SETTINGS``; SPANNER_EMULATOR_HOST names the server."""
    settings = DemoSettings.load(Path(arguments[0]))
    database = open_database(settings.address)
    with settings.writer_log.open("a") as file:
        write(settings, database, CommitLog(file))


if __name__ == "__main__":
    main(sys.argv[1:])
