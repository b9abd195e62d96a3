"""Two ways to clear the same rows: by partitioned DML, or key by key from the index."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from google.cloud.spanner_v1 import Type, param_types
from google.cloud.spanner_v1.database import Database

from watcher.consumers.clearing.statements import (
    clearing_statement,
    count_clearable,
    count_table,
    latest_clearable,
)
from watcher.model.errors import IndexMissingError
from watcher.model.window import BEGINNING
from watcher.spanner.requests import make_low_options
from watcher.spanner.timestamps import to_datetime, to_micros
from watcher.tables.values import WatchedTable

TABLE_ROWS_PER_CLEARED = 10
"""``auto`` goes by the index when the table has more than so many rows for each that is cleared.
Partitioned DML scans the table and writes in bulk; by the index each row costs a read by its key
and a part of a transaction, which is dearer than scanning one row, but not by orders of
magnitude."""


class Method(StrEnum):
    """How rows leave the index."""

    PARTITIONED = "partitioned"
    """One partitioned DML statement: scans the whole table, once a split, and needs nothing
    else."""
    INDEX = "index"
    """Reads the keys of delivered rows from the index and clears them in ordinary transactions."""
    AUTO = "auto"
    """The cheaper one by an estimate."""


CLEARING = make_low_options("clear")
"""Clearing is not urgent: it yields to what applications and consumers do."""


@dataclass(frozen=True, slots=True)
class ClearableShard:
    """The rows of one shard that may be cleared; ``latest`` is in microseconds since 1970."""

    shard: int | str | None
    rows: int
    latest: int


@dataclass(frozen=True, slots=True)
class ClearingLoad:
    """What may be cleared, shard by shard; ``shard_type`` is the type of the shard column."""

    shards: tuple[ClearableShard, ...]
    shard_type: Type

    @property
    def rows(self) -> int:
        """Over all shards."""
        return sum(each.rows for each in self.shards)

    @property
    def latest(self) -> int:
        """The latest timestamp among them: what is above it is not touched."""
        return max((each.latest for each in self.shards), default=BEGINNING)


def round_up_micros(timestamp: Any) -> int:
    """A timestamp of the client's in microseconds since 1970, rounded up: a row is at or below a
    bound in microseconds when this is. (Applications may write nanoseconds; Spanner does not.)"""
    return to_micros(timestamp) + int(timestamp.nanosecond % 1_000 > 0)


def bind_safe(safe: int) -> dict[str, tuple[object, object]]:
    """The parameter @safe."""
    return {"safe": (to_datetime(safe), param_types.TIMESTAMP)}


def bind_limit(limit: int) -> dict[str, tuple[object, object]]:
    """The parameter @limit."""
    return {"limit": (limit, param_types.INT64)}


def read_load(database: Database, table: WatchedTable, safe: int) -> ClearingLoad:
    """What may be cleared up to ``safe``: one query of the index alone."""
    with database.snapshot() as snapshot:
        bound = table.sql.bind(count_clearable(table), bind_safe(safe))
        result = snapshot.execute_sql(*bound, request_options=CLEARING)
        shards = [ClearableShard(r[0], int(r[1]), round_up_micros(r[2])) for r in result if r[1]]
        return ClearingLoad(tuple(shards), result.fields[0].type_)


def limit_end(database: Database, table: WatchedTable, safe: int, rows_max: int) -> int:
    """Up to where about ``rows_max`` of the oldest rows lie."""
    with database.snapshot() as snapshot:
        rows = snapshot.execute_sql(
            *table.sql.bind(latest_clearable(table), bind_safe(safe) | bind_limit(rows_max)),
            request_options=CLEARING,
        )
        latest = next(iter(rows))[0]
    return safe if latest is None else min(safe, round_up_micros(latest))


def count_table_rows(database: Database, table: WatchedTable, limit: int) -> int:
    """How many rows the table has; ``limit`` when there are as many or more."""
    with database.snapshot() as snapshot:
        bound = table.sql.bind(count_table(table), bind_limit(limit))
        rows = snapshot.execute_sql(*bound, request_options=CLEARING)
        return int(next(iter(rows))[0])


def choose_method(database: Database, table: WatchedTable, method: Method, rows: int) -> Method:
    """The method that clears so many rows. Raises IndexMissingError when it needs an index that is
    not there."""
    if method is Method.INDEX and table.index is None:
        raise IndexMissingError(
            f"table {table.name} has no index to clear through; make one with 'spanner-watcher ddl"
            " apply', or set the method of clearing to 'partitioned'"
        )
    if method is not Method.AUTO:
        return method
    if table.index is None:
        return Method.PARTITIONED
    enough = rows * TABLE_ROWS_PER_CLEARED + 1
    return (
        Method.INDEX if count_table_rows(database, table, enough) == enough else Method.PARTITIONED
    )


def clear_partitioned(database: Database, table: WatchedTable, safe: int) -> int:
    """Clears by partitioned DML; a lower bound of how many rows."""
    # assumes: stream-excludes-transaction
    rows = database.execute_partitioned_dml(
        *table.sql.bind(clearing_statement(table), bind_safe(safe)),
        exclude_txn_from_change_streams=True,
        request_options=CLEARING,
    )
    return int(rows)
