"""What every probe works with: a database, its tables, and ways to write into them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.cloud.spanner_v1 import KeySet, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from watcher.overview.probe.tables import KEY, VALUE, ProbeNames
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.dialects import SqlDialect
from watcher.spanner.queries import QueryClient
from watcher.spanner.timestamps import to_datetime, to_micros
from watcher.tables.values import WatchedTable

OLD_KEY = 1


@dataclass(frozen=True, slots=True)
class Observation:
    """What a probe saw, and whether that is what the ledger says."""

    holds: bool
    seen: str


class CannotTryError(Exception):
    """A probe cannot say whether an assumption holds here; the text is why."""


@dataclass(frozen=True, slots=True)
class ProbeContext:
    """A database with the tables of a probe. ``rows`` and ``marked`` are how they are watched."""

    database: Database
    address: DatabaseAddress
    names: ProbeNames
    sql: SqlDialect
    rows: WatchedTable
    marked: WatchedTable
    queries: QueryClient
    history: int = 0
    """A timestamp at which the tables that are changed had a row, of key ``OLD_KEY``."""
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def take_key(self) -> int:
        """A key that no probe has used."""
        return next(self._numbers)

    def write(self, change: Callable[[Any], object]) -> int:
        """Commits mutations; the commit timestamp."""
        with self.database.batch() as batch:
            change(batch)
        return to_micros(batch.committed)

    def insert(self, key: int, value: str = "first", table: str | None = None) -> int:
        """Inserts a row; the commit timestamp."""
        name = table or self.rows.name
        return self.write(lambda batch: batch.insert(name, (KEY, VALUE), [(key, value)]))

    def update(self, key: int, value: str) -> int:
        """Updates a row of ``rows`` by mutation; the commit timestamp."""
        return self.write(lambda batch: batch.update(self.rows.name, (KEY, VALUE), [(key, value)]))

    def run_dml(self, text: str, values: Mapping[str, object]) -> int:
        """Runs a DML statement alone; the commit timestamp. Integers and texts can be bound."""
        used: list[Transaction] = []

        def work(transaction: Transaction) -> None:
            used.append(transaction)
            transaction.execute_update(*self.bind(text, values))

        self.database.run_in_transaction(work)
        committed = used[-1].committed
        assert committed is not None, "the client has committed"
        return to_micros(committed)

    def bind(self, text: str, values: Mapping[str, object]) -> tuple[Any, ...]:
        """A statement as the client takes it."""
        types = {int: param_types.INT64, str: param_types.STRING}
        return self.sql.bind(
            text, {name: (each, types[type(each)]) for name, each in values.items()}
        )

    def read(
        self, columns: Sequence[str], key: int, at: int | None = None, table: str | None = None
    ) -> list[Any] | None:
        """A row, strongly or at a timestamp; None where there is none."""
        options = {} if at is None else {"read_timestamp": to_datetime(at)}
        with self.database.snapshot(**options) as snapshot:
            rows = snapshot.read(table or self.rows.name, columns, KeySet(keys=[[key]]))
            return next(iter(rows), None)

    def read_timestamp(self, key: int, table: WatchedTable | None = None) -> int | None:
        """The commit timestamp that a row of ``rows``, or of another table, holds, in
        microseconds."""
        watched = table or self.rows
        row = self.read((watched.timestamp_column,), key, table=watched.name)
        return to_micros(row[0]) if row is not None and row[0] is not None else None
