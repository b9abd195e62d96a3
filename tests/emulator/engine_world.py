"""What the engine's tests share: a database in memory and short ways to write and read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ddl.schema import Type, TypeCode
from emulator.engine.clock import Clock
from emulator.engine.database import Database
from emulator.engine.partitioned import PartitionedDmlTransaction
from emulator.engine.read_only import ReadOnlyTransaction
from emulator.engine.read_write import ReadWriteTransaction
from emulator.values.requests import (
    BoundKind,
    Committed,
    DmlResult,
    KeyDelete,
    KeySet,
    MutationKind,
    ResultRows,
    RowWrite,
    Stored,
    TimestampBound,
)

NAME = "projects/p/instances/i/databases/d"
INT64, STRING, TIMESTAMP = (
    Type(code) for code in (TypeCode.INT64, TypeCode.STRING, TypeCode.TIMESTAMP)
)
STRONG = TimestampBound()
INSERT, UPDATE = MutationKind.INSERT, MutationKind.UPDATE
UPSERT, REPLACE = MutationKind.INSERT_OR_UPDATE, MutationKind.REPLACE

WATCHED = (
    "CREATE TABLE Singers (SingerId INT64, Name STRING(20), "
    "ChangedAt TIMESTAMP DEFAULT (PENDING_COMMIT_TIMESTAMP()) "
    "ON UPDATE (PENDING_COMMIT_TIMESTAMP()) OPTIONS (allow_commit_timestamp=true), "
    "ShardId INT64 AS (MOD(FARM_FINGERPRINT(Name), 4)) STORED) PRIMARY KEY (SingerId)",
    "CREATE NULL_FILTERED INDEX ByChange ON Singers (ShardId, ChangedAt)",
)

Row = tuple[Stored, ...]


@contextmanager
def open_database(
    *ddl: str, path: Path | None = None, clock: Clock | None = None
) -> Iterator[Database]:
    """A database with a schema, closed at the end."""
    database = Database(NAME, path, clock or Clock())
    try:
        database.update_ddl(ddl)
        yield database
    finally:
        database.close()


def write(
    database: Database, kind: MutationKind, table: str, columns: str, *rows: Row
) -> Committed:
    """Commits one mutation; the columns are separated by blanks."""
    return database.write([RowWrite(kind, table, tuple(columns.split()), rows)])


def delete(database: Database, table: str, *keys: Row) -> Committed:
    """Commits the deletion of rows."""
    return database.write([KeyDelete(table, KeySet(keys=keys))])


def exact_bound(micros: int) -> TimestampBound:
    """An exact read timestamp."""
    return TimestampBound(BoundKind.READ_TIMESTAMP, micros)


def run_query(
    transaction: ReadOnlyTransaction | ReadWriteTransaction,
    sql: str,
    params: Mapping[str, Stored] | None = None,
    types: Mapping[str, Type] | None = None,
    *,
    profile: bool = False,
    check: Callable[[], None] | None = None,
) -> ResultRows:
    """The result of a query in a transaction; it is read lazily."""
    statement = transaction.state.compile(sql, types or {})
    return transaction.query(statement, params or {}, profile=profile, check=check)


def run_dml(
    transaction: ReadWriteTransaction,
    sql: str,
    params: Mapping[str, Stored] | None = None,
    types: Mapping[str, Type] | None = None,
) -> DmlResult:
    """The result of a DML statement in a transaction."""
    return transaction.execute_dml(transaction.state.compile(sql, types or {}), params or {})


def run_partitioned(
    transaction: PartitionedDmlTransaction,
    sql: str,
    params: Mapping[str, Stored] | None = None,
    types: Mapping[str, Type] | None = None,
) -> DmlResult:
    """The result of partitioned DML."""
    return transaction.execute(transaction.state.compile(sql, types or {}), params or {})


def query(
    database: Database,
    sql: str,
    bound: TimestampBound = STRONG,
    params: Mapping[str, Stored] | None = None,
    types: Mapping[str, Type] | None = None,
) -> list[Row]:
    """All rows of a query."""
    return list(run_query(database.read_only(bound), sql, params or {}, types or {}).rows)


def read(
    database: Database,
    table: str,
    columns: str,
    bound: TimestampBound = STRONG,
    keys: KeySet | None = None,
    index: str | None = None,
    limit: int = 0,
) -> list[Row]:
    """All rows of a read."""
    keys = keys or KeySet(all=True)
    rows = database.read_only(bound).read(table, index, columns.split(), keys, limit).rows
    return list(rows)


def commit_dml(database: Database, *statements: str) -> tuple[list[int], Committed]:
    """Statements in one transaction; their row counts and the commit."""
    transaction = database.read_write()
    try:
        counts = [run_dml(transaction, text).row_count for text in statements]
        return counts, transaction.commit([])
    finally:
        transaction.rollback()


def rows_by_first_column(rows: Sequence[Row]) -> dict[Stored, Row]:
    """Rows by their first column."""
    return {row[0]: row[1:] for row in rows}
