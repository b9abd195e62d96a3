"""Positions in a table of a Spanner database: the place that several machines share."""

from __future__ import annotations

from collections.abc import Sequence

from google.api_core.exceptions import AlreadyExists, GoogleAPICallError
from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, KeySet, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from watcher.errors import LeaseLostError, WatcherError
from watcher.failures import Kind, kind_of
from watcher.positions.tables import consumers_table, create_own_tables
from watcher.positions.values import TABLE, Move, Position, moved
from watcher.sql import quoted
from watcher.stream import micros_of, moment_of


def check_owner(
    transaction: Transaction, positions_table: str, consumer: str, owner: str | None
) -> None:
    """Raises LeaseLostError unless this instance holds the consumer's lease; ``owner`` None has
    none to be checked. In the transaction of the write that it fences."""
    if owner is None:
        return
    rows = transaction.execute_sql(
        f"SELECT Owner FROM {quoted(consumers_table(positions_table))}"  # noqa: S608 (quoted)
        " WHERE Consumer = @consumer",
        params={"consumer": consumer},
        param_types={"consumer": param_types.STRING},
    )
    if [row[0] for row in rows] != [owner]:
        raise LeaseLostError(
            f"another instance has taken over the consumer '{consumer}', or it was unregistered;"
            " this one stops"
        )


def create_table(database: Database, name: str, columns: str, primary_key: str) -> None:
    """Creates a table of ours unless it is there. Raises WatcherError when it may not, and what
    may go away by itself as it came."""
    with database.snapshot() as snapshot:
        found = snapshot.execute_sql(
            "SELECT COUNT(*) FROM INFORMATION_SCHEMA.TABLES"
            " WHERE TABLE_SCHEMA = '' AND TABLE_NAME = @name",
            params={"name": name},
            param_types={"name": param_types.STRING},
        )
        if next(iter(found))[0]:
            return
    statement = f"CREATE TABLE IF NOT EXISTS {quoted(name)} ({columns}) PRIMARY KEY ({primary_key})"
    try:
        database.update_ddl([statement]).result(600)
    except AlreadyExists:
        return
    except GoogleAPICallError as error:
        if kind_of(error) is Kind.RETRY:
            raise
        raise WatcherError(f"cannot create the table {name}: {error.message}") from error


class SpannerPositions:
    """Positions in a table of a Spanner database, which is made when it is not there."""

    def __init__(self, database: Database, table: str = TABLE) -> None:
        self._database = database
        self._name = table
        self._sql_name = quoted(table)

    @property
    def database(self) -> Database:
        """The database that keeps the positions."""
        return self._database

    @property
    def table(self) -> str:
        """The name of the table of positions."""
        return self._name

    def create(self) -> None:
        """Creates the table; none is no error. Several at once may try."""
        create_own_tables(self._database, self._name)

    def load(self, consumer: str, table: str) -> Position | None:
        """As ``Positions.load``."""
        micros = self.of(consumer).get(table)
        return None if micros is None else Position(consumer, table, micros)

    def save(self, position: Position, expected: int | None) -> None:
        """As ``Positions.save``."""
        self.save_all([Move(position, expected)])

    def save_all(self, moves: Sequence[Move], owner: str | None = None) -> None:
        """As ``Positions.save_all``; one read-write transaction."""
        if not moves:
            return
        consumer = moves[0].position.consumer
        rows = [
            (m.position.consumer, m.position.table, moment_of(m.position.micros), COMMIT_TIMESTAMP)
            for m in moves
        ]

        def work(transaction: Transaction) -> None:
            if owner is not None:
                check_owner(transaction, self._name, consumer, owner)
            kept = self._read(transaction, consumer)
            if owner is not None and all(
                kept.get((consumer, m.position.table)) == m.position.micros for m in moves
            ):
                return  # a commit of ours whose answer was lost, tried again
            moved(kept, moves)
            transaction.insert_or_update(
                self._name, ("Consumer", "WatchedTable", "Position", "UpdatedAt"), rows
            )

        self._database.run_in_transaction(work)

    def _read(self, transaction: Transaction, consumer: str) -> dict[tuple[str, str], int]:
        rows = transaction.execute_sql(
            f"SELECT WatchedTable, Position FROM {self._sql_name}"  # noqa: S608 (quoted)
            " WHERE Consumer = @consumer",
            params={"consumer": consumer},
            param_types={"consumer": param_types.STRING},
        )
        return {(consumer, row[0]): micros_of(row[1]) for row in rows}

    def of(self, consumer: str) -> dict[str, int]:
        """As ``Positions.of``."""
        with self._database.snapshot() as snapshot:
            rows = snapshot.execute_sql(
                f"SELECT WatchedTable, Position FROM {self._sql_name}"  # noqa: S608 (quoted)
                " WHERE Consumer = @consumer",
                params={"consumer": consumer},
                param_types={"consumer": param_types.STRING},
            )
            return {row[0]: micros_of(row[1]) for row in rows}

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

    def forget(self, consumer: str) -> int:
        """Takes a consumer off: clearing does not wait for it any more. How many tables it had."""
        kept = self.of(consumer)
        keys = KeySet(keys=[[consumer, table] for table in kept])
        with self._database.batch() as batch:
            batch.delete(self._name, keys)
        return len(kept)

    def every(self) -> tuple[Position, ...]:
        """As ``Positions.every``, by consumer and table."""
        with self._database.snapshot() as snapshot:
            rows = snapshot.execute_sql(
                f"SELECT Consumer, WatchedTable, Position FROM {self._sql_name}"  # noqa: S608
                " ORDER BY Consumer, WatchedTable"
            )
            return tuple(Position(row[0], row[1], micros_of(row[2])) for row in rows)
