"""Clears the rows that the index names, key by key, in ordinary transactions of bounded size.

Rows are cleared by mutations, after a read of their keys in the same transaction: a read of keys is
a point lookup whatever the key is, and finds rows with NULL in their key. ``WHERE STRUCT(a, b) IN
UNNEST(@keys)`` finds none of those, and Spanner may scan for it; a range of timestamps would be
found by the index, but the rows of one commit cannot be parted by it, so that its size has no
bound. Change sets have one id, never NULL, that need not be their key: they go by ``IN UNNEST``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from google.cloud.spanner_v1 import KeySet, RequestOptions, Type, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.clearing.methods import CLEARING, ClearingLoad, round_up_micros
from watcher.consumers.clearing.statements import (
    clearing_statement,
    delete_named_sets,
    key_columns,
    page_of_shard,
)
from watcher.model.window import BEGINNING
from watcher.spanner.dialects import Values
from watcher.spanner.timestamps import to_datetime
from watcher.spanner.transactions import run_optimistically
from watcher.tables.values import ShardValue, WatchedTable

ROWS_PER_TRANSACTION = 500
"""An application that changes one of them meanwhile aborts the transaction: few rows, few times.
Spanner allows 80,000 mutations a commit, so a row may count 160: its key columns, one or two more,
and the entries of indexes that change with them."""


@dataclass(frozen=True, slots=True)
class IndexPage:
    """Entries of an index: the timestamp, then the key. ``key_type`` is of its first column."""

    entries: Sequence[Sequence[Any]]
    key_type: Type | None


@dataclass(frozen=True, slots=True)
class ByIndex:
    """Clears a table up to ``safe``, in microseconds since 1970, ``limit`` rows a transaction."""

    database: Database
    table: WatchedTable
    safe: int
    limit: int = ROWS_PER_TRANSACTION

    def clear(self, load: ClearingLoad) -> int:
        """Clears the shards that have something to be cleared; how many rows there were."""
        clearing_statement(self.table)  # refuses what cannot be cleared
        return sum(
            self._clear_page(page)
            for each in load.shards
            for page in self._read_pages(each.shard, load.shard_type)
        )

    def _read_pages(self, shard: ShardValue | None, shard_type: Type) -> Iterator[IndexPage]:
        """The entries of a shard. Each page is cleared before the next is read: the entries that it
        has in common with the one before, at one timestamp, have left."""
        low: datetime = to_datetime(BEGINNING)
        while True:
            page = self._read_page(shard, shard_type, low)
            if page.entries:
                yield page
                low = page.entries[-1][0]
            if len(page.entries) < self.limit:
                return

    def _read_page(self, shard: ShardValue | None, shard_type: Type, low: datetime) -> IndexPage:
        values: dict[str, tuple[object, object]] = {
            "safe": (to_datetime(self.safe), param_types.TIMESTAMP),
            "low": (low, param_types.TIMESTAMP),
            "limit": (self.limit, param_types.INT64),
        }
        if self.table.shard_column is not None:
            values["shard"] = (shard, shard_type)
        with self.database.snapshot() as snapshot:
            text = page_of_shard(self.table)
            bound = self.table.sql.bind(text, values)
            rows = snapshot.execute_sql(*bound, request_options=CLEARING)
            entries = list(rows)
            return IndexPage(entries, rows.fields[1].type_ if entries else None)

    def _clear_page(self, page: IndexPage) -> int:
        def clear(transaction: Transaction) -> int:
            if self.table.change_sets is not None:
                return self._delete_sets(transaction, page)
            return self._clear_rows(transaction, page)

        return run_optimistically(
            self.database,
            clear,
            exclude_txn_from_change_streams=True,
            commit_request_options=RequestOptions(priority=CLEARING.priority),
        )

    def _clear_rows(self, transaction: Transaction, page: IndexPage) -> int:
        """Writes NULL into the timestamp, or TRUE into Processed and the timestamp as it is: an
        explicit value keeps ON UPDATE from overwriting it."""
        table = self.table
        keys, timestamp = key_columns(table), table.timestamp_column
        columns = (*keys, timestamp)
        key_set = KeySet(keys=[list(entry[1:]) for entry in page.entries])
        read = transaction.read(table.name, columns, key_set, request_options=CLEARING)
        rows = [row for row in read if self._is_safe(row[-1])]
        if table.processed_column is None:
            values = [(*row[:-1], None) for row in rows]
        else:
            columns, values = (*columns, table.processed_column), [(*row, True) for row in rows]
        if values:
            transaction.update(table.name, columns, values)
        return len(values)

    def _is_safe(self, timestamp: Any) -> bool:
        """As ``timestamp <= @safe``."""
        return timestamp is not None and round_up_micros(timestamp) <= self.safe

    def _delete_sets(self, transaction: Transaction, page: IndexPage) -> int:
        values: Values = {
            "safe": (to_datetime(self.safe), param_types.TIMESTAMP),
            "ids": ([entry[1] for entry in page.entries], param_types.Array(page.key_type)),
        }
        text = delete_named_sets(self.table)
        bound = self.table.sql.bind(text, values)
        rows = transaction.execute_update(*bound, request_options=CLEARING)
        return int(rows)
