"""Connections to the SQLite file of one database, and how things are named in it."""

from __future__ import annotations

import base64
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from emulator.errors import invalid_argument
from emulator.sql.functions import register
from emulator.values.sqlite_text import quote_name

PENDING = 2**63 - 1
"""Stands for the commit timestamp of a transaction that has not committed yet."""

BUSY_TIMEOUT_MILLISECONDS = 20_000
PAGES_AT_ONCE = 4_096
"""Of a file that is copied: 16 MB."""
SHARED_MEMORY = Path("/dev/shm")
SHARED_MEMORY_BYTES_MIN = 1 << 30


def current_table(table: str) -> str:
    """The SQLite table that holds a table's current rows."""
    return quote_name("t$" + table)


def history_table(table: str) -> str:
    """The SQLite table that holds a table's replaced rows."""
    return quote_name("h$" + table)


def index_name(index: str) -> str:
    """The SQLite index that implements a secondary index."""
    return quote_name("i$" + index)


def key_index(table: str) -> str:
    """The SQLite index that holds a table's primary key."""
    return quote_name("k$" + table)


@dataclass(slots=True)
class StorageReader:
    """A connection for reading; ``scanned`` counts the rows that profiled statements visit."""

    connection: apsw.Connection
    scanned: list[int]


@dataclass(slots=True)
class Storage:
    """The files of one database. ``durable`` is false for a database that lives in memory."""

    path: Path
    durable: bool
    _readers: list[StorageReader] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closed: bool = False

    @classmethod
    def temporary(cls) -> Storage:
        """A database that ends with the process; in shared memory where there is enough."""
        return cls(temporary_directory() / "database.sqlite", durable=False)

    def open_writer(self) -> StorageReader:
        """The one connection that writes (its owner sees to it that it is one)."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        writer = self._open()
        synchronous = "NORMAL" if self.durable else "OFF"
        run(
            writer.connection,
            "PRAGMA journal_mode = WAL",
            f"PRAGMA synchronous = {synchronous}",
            "PRAGMA wal_autocheckpoint = 4000",
            "PRAGMA cache_size = -65536",
            "PRAGMA legacy_alter_table = ON",
        )
        return writer

    def borrow(self) -> StorageReader:
        """A connection for reading; hand it back with ``give_back``."""
        with self._lock:
            if self._readers:
                return self._readers.pop()
        reader = self._open()
        run(reader.connection, "PRAGMA query_only = ON", "PRAGMA cache_size = -8192")
        return reader

    def give_back(self, reader: StorageReader) -> None:
        """Ends the reader's transaction and keeps the connection for the next."""
        if reader.connection.in_transaction:
            reader.connection.execute("ROLLBACK")
        with self._lock:
            if not self._closed:
                self._readers.append(reader)
                return
        reader.connection.close()

    @contextmanager
    def frozen(self) -> Iterator[Callable[[Path], None]]:
        """What writes the file as it is now to another path, while this one goes on."""
        reader = self.borrow()
        try:
            run(reader.connection, "BEGIN", "SELECT 1 FROM sqlite_schema LIMIT 1")
            yield lambda path: copy_file(reader.connection, path)
        finally:
            self.give_back(reader)

    def close(self) -> None:
        """Closes idle connections; a temporary database is removed."""
        with self._lock:
            self._closed = True
            readers, self._readers = self._readers, []
        for reader in readers:
            reader.connection.close()
        if not self.durable:
            shutil.rmtree(self.path.parent, ignore_errors=True)

    def remove(self) -> None:
        """Deletes the files; call ``close`` first."""
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    def _open(self) -> StorageReader:
        connection = apsw.Connection(str(self.path), statementcachesize=400)
        connection.set_busy_timeout(BUSY_TIMEOUT_MILLISECONDS)
        register(connection)
        scanned = [0]

        def count(*_row: apsw.SQLiteValue) -> int:
            scanned[0] += 1
            return 1

        connection.create_scalar_function("scanned_", count, 1)
        connection.create_scalar_function("fits_", fits, 2, deterministic=True)
        connection.create_scalar_function("array_fits_", array_fits, 3, deterministic=True)
        connection.create_scalar_function("vector_fits_", vector_fits, 2, deterministic=True)
        connection.create_scalar_function("evaluate_", Evaluator(), -1, deterministic=True)
        connection.create_scalar_function("next_value_", refuse_drawing, 1)
        connection.create_scalar_function("sequence_state_", counter_state, 2)
        run(connection, "PRAGMA temp_store = MEMORY", "PRAGMA trusted_schema = ON")
        return StorageReader(connection, scanned)


def copy_file(connection: apsw.Connection, path: Path) -> None:
    """Writes what a connection sees in its read transaction to a new file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    target = apsw.Connection(str(path))
    try:
        with target.backup("main", connection, "main") as backup:
            while not backup.done:
                backup.step(PAGES_AT_ONCE)
    finally:
        target.close()


def refuse_drawing(*_arguments: apsw.SQLiteValue) -> int:
    """A sequence's value is drawn where it can be committed (the writer has its own function)."""
    raise invalid_argument("A sequence's value can only be used in a read-write transaction.")


def counter_state(*arguments: apsw.SQLiteValue) -> apsw.SQLiteValue:
    """A counter as it is stored."""
    return arguments[1]


def fits(*arguments: apsw.SQLiteValue) -> int:
    """Whether a string has at most so many characters (SQLite's own length stops at NUL)."""
    value, length = arguments
    return int(not isinstance(value, str) or not isinstance(length, int) or len(value) <= length)


class Evaluator:
    """Evaluates a query over some values: SQLite takes no subquery into a generated column or a
    CHECK. The first argument is the query, the others are its parameters."""

    def __init__(self) -> None:
        self._connection: apsw.Connection | None = None

    def __call__(self, *arguments: apsw.SQLiteValue) -> apsw.SQLiteValue:
        if self._connection is None:
            self._connection = apsw.Connection(":memory:")
            register(self._connection)
        query, *values = arguments
        result: apsw.SQLiteValue = self._connection.execute(str(query), values).get
        return result


def array_fits(*arguments: apsw.SQLiteValue) -> int:
    """Whether no element of an array has more characters (or bytes) than allowed."""
    value, length, of_bytes = arguments
    if not isinstance(value, str) or not isinstance(length, int):
        return 1
    items = [item for item in json.loads(value) if item is not None]
    sizes = (len(base64.b64decode(item)) if of_bytes else len(item) for item in items)
    return int(all(size <= length for size in sizes))


def vector_fits(*arguments: apsw.SQLiteValue) -> int:
    """Whether an array, if there is one, has so many elements, none of them NULL."""
    value, length = arguments
    if not isinstance(value, str):
        return 1
    items = json.loads(value)
    return int(len(items) == length and None not in items)


def run(connection: apsw.Connection, *statements: str) -> None:
    """Executes statements that give no rows of interest."""
    for statement in statements:
        for _ in connection.execute(statement):
            pass


def fetch_integer(
    connection: apsw.Connection, sql: str, bindings: Sequence[apsw.SQLiteValue] = ()
) -> int:
    """The single integer that a statement gives; 0 when it gives none."""
    row = connection.execute(sql, tuple(bindings)).fetchone()
    return int(row[0]) if row is not None and row[0] is not None else 0


def temporary_directory() -> Path:
    """A new directory, in shared memory where there is room for a database."""
    if SHARED_MEMORY.is_dir() and os.access(SHARED_MEMORY, os.W_OK):
        room = os.statvfs(SHARED_MEMORY)
        if room.f_bavail * room.f_frsize >= SHARED_MEMORY_BYTES_MIN:
            return Path(tempfile.mkdtemp(prefix="spanner-", dir=SHARED_MEMORY))
    return Path(tempfile.mkdtemp(prefix="spanner-"))
