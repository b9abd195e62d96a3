"""Where each consumer stands: the end of the last window that it delivered. The only state kept."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Protocol

from google.api_core.exceptions import AlreadyExists, GoogleAPICallError
from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from watcher.errors import PositionConflictError, WatcherError
from watcher.sql import quoted
from watcher.stream import micros_of, moment_of, timestamp_text

TABLE = "SpannerWatcherPositions"


@dataclass(frozen=True, slots=True)
class Position:
    """A consumer's place in the changes of one table; ``micros`` is the end of its last window."""

    consumer: str
    table: str
    micros: int


class Positions(Protocol):
    """Keeps positions. ``save`` compares and sets: who expects another position is refused."""

    def load(self, consumer: str, table: str) -> Position | None:
        """The position of a consumer, or None for one that is not registered."""
        ...

    def save(self, position: Position, expected: int | None) -> None:
        """Advances (or, with ``expected`` None, registers) a consumer.

        Raises PositionConflictError when the kept position is not the expected one.
        """
        ...

    def all(self, table: str) -> tuple[Position, ...]:
        """Every consumer of a table."""
        ...


def conflict(position: Position, expected: int | None, found: int | None) -> PositionConflictError:
    """The refusal of a position that somebody else has moved."""
    shown = [timestamp_text(m) if m is not None else "none" for m in (expected, found)]
    return PositionConflictError(
        f"consumer '{position.consumer}' of {position.table} was expected at {shown[0]} but stands"
        f" at {shown[1]}: does another instance with the same name run?"
    )


def check_forward(position: Position, expected: int | None) -> None:
    """A position never goes back."""
    if expected is not None and position.micros < expected:
        raise WatcherError(
            f"the position of '{position.consumer}' would go back from {timestamp_text(expected)}"
            f" to {timestamp_text(position.micros)}"
        )


class MemoryPositions:
    """Positions that end with the process; for tests and for reading without being remembered."""

    def __init__(self) -> None:
        self._positions: dict[tuple[str, str], Position] = {}
        self._lock = threading.Lock()

    def load(self, consumer: str, table: str) -> Position | None:
        """As ``Positions.load``."""
        with self._lock:
            return self._positions.get((consumer, table))

    def save(self, position: Position, expected: int | None) -> None:
        """As ``Positions.save``."""
        check_forward(position, expected)
        key = (position.consumer, position.table)
        with self._lock:
            kept = self._positions.get(key)
            found = kept.micros if kept else None
            if found != expected:
                raise conflict(position, expected, found)
            self._positions[key] = position

    def all(self, table: str) -> tuple[Position, ...]:
        """As ``Positions.all``."""
        with self._lock:
            return tuple(p for p in self._positions.values() if p.table == table)


class SpannerPositions:
    """Positions in a table of a Spanner database, which is made when it is not there."""

    def __init__(self, database: Database, table: str = TABLE) -> None:
        self._database = database
        self._name = table
        self._sql_name = quoted(table)

    def create(self) -> None:
        """Creates the table; none is no error. Several at once may try."""
        with self._database.snapshot() as snapshot:
            found = snapshot.execute_sql(
                "SELECT COUNT(*) FROM INFORMATION_SCHEMA.TABLES"
                " WHERE TABLE_SCHEMA = '' AND TABLE_NAME = @name",
                params={"name": self._name},
                param_types={"name": param_types.STRING},
            )
            if next(iter(found))[0]:
                return
        statement = (
            f"CREATE TABLE IF NOT EXISTS {self._sql_name} ("
            "Consumer STRING(256) NOT NULL, WatchedTable STRING(256) NOT NULL,"
            " Position TIMESTAMP NOT NULL,"
            " UpdatedAt TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true)"
            ") PRIMARY KEY (Consumer, WatchedTable)"
        )
        try:
            self._database.update_ddl([statement]).result(600)
        except AlreadyExists:
            return
        except GoogleAPICallError as error:
            raise WatcherError(
                f"cannot create the table {self._name} for positions: {error.message}"
            ) from error

    def load(self, consumer: str, table: str) -> Position | None:
        """As ``Positions.load``."""
        return next((p for p in self.all(table) if p.consumer == consumer), None)

    def save(self, position: Position, expected: int | None) -> None:
        """As ``Positions.save``; one read-write transaction."""
        check_forward(position, expected)

        def work(transaction: Transaction) -> None:
            found = self._read(transaction, position)
            if found != expected:
                raise conflict(position, expected, found)
            transaction.insert_or_update(
                self._name,
                ("Consumer", "WatchedTable", "Position", "UpdatedAt"),
                [
                    (
                        position.consumer,
                        position.table,
                        moment_of(position.micros),
                        COMMIT_TIMESTAMP,
                    )
                ],
            )

        self._database.run_in_transaction(work)

    def _read(self, transaction: Transaction, position: Position) -> int | None:
        rows = transaction.execute_sql(
            f"SELECT Position FROM {self._sql_name}"  # noqa: S608 (quoted)
            " WHERE Consumer = @consumer AND WatchedTable = @table",
            params={"consumer": position.consumer, "table": position.table},
            param_types={"consumer": param_types.STRING, "table": param_types.STRING},
        )
        return next((micros_of(row[0]) for row in rows), None)

    def all(self, table: str) -> tuple[Position, ...]:
        """As ``Positions.all``."""
        with self._database.snapshot() as snapshot:
            rows = snapshot.execute_sql(
                f"SELECT Consumer, Position FROM {self._sql_name}"  # noqa: S608 (quoted)
                " WHERE WatchedTable = @table ORDER BY Consumer",
                params={"table": table},
                param_types={"table": param_types.STRING},
            )
            return tuple(Position(row[0], table, micros_of(row[1])) for row in rows)
