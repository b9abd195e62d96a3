"""Applications that write and know nothing of watching; every transaction names itself in a table
of its own, so that a commit whose answer was lost can be looked up."""

from __future__ import annotations

import os
import random
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from google.api_core.exceptions import (
    Aborted,
    AlreadyExists,
    GoogleAPICallError,
    NotFound,
    RetryError,
)
from google.cloud import spanner
from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, KeySet, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from conformance.truth import Commit, Key, Truth, Write
from spanner_schema.model.schema import Dialect
from watcher.spanner.address import EMULATOR_HOST, DatabaseAddress
from watcher.spanner.dialects import GOOGLESQL, SqlDialect
from watcher.spanner.timestamps import to_micros

ACCOUNTS = "CREATE TABLE Accounts (Id INT64, Version STRING(MAX)) PRIMARY KEY (Id)"
ENTRIES = (
    "CREATE TABLE Entries (Id INT64, EntryId INT64, Version STRING(MAX)) PRIMARY KEY (Id, EntryId),"
    " INTERLEAVE IN PARENT Accounts ON DELETE CASCADE"
)
EVENTS = "CREATE TABLE Events (Name STRING(36), Version STRING(MAX)) PRIMARY KEY (Name)"
LOG = (
    "CREATE TABLE Log (Name STRING(36), `At` TIMESTAMP OPTIONS (allow_commit_timestamp = true))"
    " PRIMARY KEY (Name)"
)
WATCHED = ("Accounts", "Entries", "Events")
COLUMNS = {
    "Accounts": ("Id", "Version"),
    "Entries": ("Id", "EntryId", "Version"),
    "Events": ("Name", "Version"),
}
KEY_TYPES: dict[str, tuple[type[int] | type[str], ...]] = {
    "Accounts": (int,),
    "Entries": (int, int),
    "Events": (str,),
}
WRITERS = 3
WRITER_PAUSE_SECONDS_MAX = 0.03
LOST = (GoogleAPICallError, RetryError)


@dataclass(frozen=True, slots=True)
class Habits:
    """How many keys the writers of a run share, and how often an event is deleted: with few keys
    and many deletes a table often has nothing left of what was written in a window."""

    keys: int
    deletes: float


def habits_of(seed: int) -> Habits:
    """The habits of a run."""
    randomness = random.Random(f"habits {seed}")  # small numbers alone begin alike
    return Habits(randomness.choice([1, 12, 12, 12]), randomness.choice([0.25, 0.7]))


@dataclass
class Writer:
    """One application. Its keys overlap with those of the others, except for deletes of parents."""

    number: int
    seed: int
    connect: Callable[[], Database]
    truth: Truth
    stop: threading.Event
    sql: SqlDialect = GOOGLESQL
    pause_seconds_max: float = 0.01
    failure: BaseException | None = None
    committed: int = 0

    def run(self) -> None:
        """Writes until ``stop`` is set."""
        randomness = random.Random(self.seed * 1_000 + self.number)
        try:
            database = self._connect()
            while not self.stop.wait(randomness.uniform(0, self.pause_seconds_max)):
                try:
                    self._one(database, randomness)
                except LOST as error:
                    if isinstance(error, NotFound) and "Session" in str(error):
                        database = self._connect()
        except Exception as error:  # noqa: BLE001 (handed to the main thread)
            self.failure = error

    def _connect(self) -> Database:
        """A client with a session. The client's own transactions need it: when one finds no server
        to open a session, all later ones of its thread fail as "nested"."""
        database = self.connect()
        while not self.stop.is_set():
            try:
                with database.snapshot():
                    break
            except LOST:
                self.stop.wait(0.05)
        return database

    def _one(self, database: Database, randomness: random.Random) -> None:
        name = str(uuid.UUID(int=randomness.getrandbits(128)))
        writes = plan_transaction(habits_of(self.seed), randomness, name)
        kinds = ["mutations", "dml", "mixed", "abandoned"]
        kind = randomness.choices(kinds, weights=[4, 4, 1, 1])[0]
        if kind == "abandoned":
            abandon(database, writes, self.sql)
            return
        try:
            if kind == "mutations":
                mutate(database, name, writes)
            else:
                mixed = kind == "mixed"
                database.run_in_transaction(execute, name, writes, mixed, self.sql)
        except AlreadyExists:
            pass  # the client sent the commit again, and the first one had come through
        except (*LOST, Aborted):
            pass  # perhaps it came through all the same: the log knows
        at = self._find_commit_timestamp(name)
        if at is not None:
            self.truth.add(Commit(at, tuple(writes)))
            self.committed += 1

    def _find_commit_timestamp(self, name: str) -> int | None:
        """The commit timestamp from the log, read until the server answers; None if it failed."""
        while True:
            try:
                with self.connect().snapshot() as snapshot:
                    rows = list(snapshot.read("Log", ("At",), KeySet(keys=[[name]])))
            except LOST:
                if self.stop.wait(0.05):
                    continue
            else:
                return to_micros(rows[0][0]) if rows else None


class Writers:
    """The writers of a run, each in a thread with an event of its own that ends it."""

    def __init__(self, seed: int, connect: Callable[[], Database], truth: Truth) -> None:
        self._seed = seed
        self._connect = connect
        self._truth = truth
        self._all: list[tuple[Writer, threading.Thread]] = []

    @property
    def count(self) -> int:
        """How many write."""
        return len(self._working())

    def start_all(self) -> None:
        """The writers that a run begins with."""
        for _ in range(WRITERS):
            self.start()

    def start(self) -> int:
        """One more; its number."""
        writer = Writer(
            len(self._all),
            self._seed,
            self._connect,
            self._truth,
            threading.Event(),
            pause_seconds_max=WRITER_PAUSE_SECONDS_MAX,
        )
        thread = threading.Thread(target=writer.run, daemon=True)
        self._all.append((writer, thread))
        thread.start()
        return writer.number

    def end(self, choice: random.Random) -> int:
        """Ends one of them after its transaction; its number."""
        writer = choice.choice(self._working())
        writer.stop.set()
        return writer.number

    def stop(self) -> None:
        """Ends all of them, each after its transaction."""
        for writer in self._working():
            writer.stop.set()

    def join(self, seconds: float) -> Iterator[tuple[Writer, bool]]:
        """Each writer, and whether it still runs after so many seconds."""
        for writer, thread in self._all:
            thread.join(seconds)
            yield writer, thread.is_alive()

    def _working(self) -> list[Writer]:
        return [writer for writer, _ in self._all if not writer.stop.is_set()]


def plan_transaction(habits: Habits, randomness: random.Random, name: str) -> list[Write]:
    """The writes of a transaction: rows of several tables, each once."""
    writes: dict[tuple[str, Key], str | None] = {}
    for number in range(randomness.choice([1, 1, 2, 3, 6])):
        version = f"{name}/{number}"
        key = randomness.randrange(habits.keys)
        table = randomness.choice(WATCHED)
        if table == "Accounts":
            writes["Accounts", (key,)] = version
        elif table == "Entries":
            writes["Accounts", (key,)] = version
            gone = randomness.random() < 0.3
            writes["Entries", (key, randomness.randrange(3))] = None if gone else version
        else:
            gone = randomness.random() < habits.deletes
            writes["Events", (f"event-{key}",)] = None if gone else version
    return [Write(row, version) for row, version in writes.items()]


def mutate(database: Database, name: str, writes: list[Write]) -> None:
    """A transaction of mutations alone."""
    with database.batch() as batch:
        batch.insert("Log", ("Name", "At"), [(name, COMMIT_TIMESTAMP)])
        for write in writes:
            buffer(batch, write)


def buffer(target: Any, write: Write) -> None:
    """A write as a mutation."""
    table, key = write.row
    if write.version is None:
        target.delete(table, KeySet(keys=[list(key)]))
    else:
        row = (*key, write.version)
        target.insert_or_update(table, COLUMNS[table], [row])


def execute(
    transaction: Transaction, name: str, writes: list[Write], mixed: bool, sql: SqlDialect
) -> None:
    """A read-write transaction of DML; ``mixed`` puts mutations beside it."""
    text = (
        f"INSERT INTO {sql.quote('Log')} ({sql.quote_all(('Name', 'At'))})"
        f" VALUES (@name, {sql.commit_timestamp})"
    )
    transaction.execute_update(*sql.bind(text, {"name": (name, param_types.STRING)}))
    for number, write in enumerate(writes):
        if mixed and number % 2 and write.row[0] == "Events":
            buffer(transaction, write)
        else:
            statement(transaction, write, sql)


def statement(transaction: Transaction, write: Write, sql: SqlDialect) -> None:
    """A write as DML."""
    table, key = write.row
    names = COLUMNS[table][:-1]
    values: dict[str, tuple[object, object]] = {
        f"k{n}": (value, param_types.STRING if isinstance(value, str) else param_types.INT64)
        for n, value in enumerate(key)
    }
    if write.version is None:
        where = " AND ".join(f"{sql.quote(name)} = @k{n}" for n, name in enumerate(names))
        transaction.execute_update(
            *sql.bind(f"DELETE FROM {sql.quote(table)} WHERE {where}", values)
        )
        return
    values["version"] = write.version, param_types.STRING
    transaction.execute_update(*sql.bind(render_upsert(table, sql), values))


def render_upsert(table: str, sql: SqlDialect) -> str:
    """The statement that inserts or updates a row."""
    *names, changed = COLUMNS[table]
    given = ", ".join(f"@k{n}" for n in range(len(names)))
    rows = f"{sql.quote(table)} ({sql.quote_all(COLUMNS[table])}) VALUES ({given}, @version)"
    if sql.dialect is Dialect.GOOGLESQL:
        return f"INSERT OR UPDATE INTO {rows}"
    new = sql.quote(changed)
    conflict = f"ON CONFLICT ({sql.quote_all(names)}) DO UPDATE SET {new} = excluded.{new}"
    return f"INSERT INTO {rows} {conflict}"


def abandon(database: Database, writes: list[Write], sql: SqlDialect) -> None:
    """A transaction that is rolled back after its statements."""

    def work(transaction: Transaction) -> None:
        for write in writes:
            statement(transaction, write, sql)
        raise AbandonedError

    try:
        database.run_in_transaction(work)
    except AbandonedError:
        return


class AbandonedError(Exception):
    """Raised on purpose, so that the client rolls back."""


def fresh_database(address: DatabaseAddress) -> Database:
    """A client of its own: a session that the server has lost is not kept."""
    reached = address.endpoint.client_arguments if address.endpoint is not None else {}
    if EMULATOR_HOST in os.environ:
        reached = {}
    client = spanner.Client(project=address.project, disable_builtin_metrics=True, **reached)
    opened: Database = client.instance(address.instance).database(address.database)
    return opened
