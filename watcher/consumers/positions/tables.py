"""The product's own tables in a Spanner database: their names, and how they are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from google.api_core.exceptions import AlreadyExists, GoogleAPICallError
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database

from watcher.errors import WatcherError
from watcher.spanner.failures import FailureKind, classify_error
from watcher.spanner.sql import quote_name

DDL_SECONDS_MAX = 600

Columns = frozenset[tuple[str, str]]
"""Pairs of table and column."""


@dataclass(frozen=True, slots=True)
class OwnTable:
    """A table of the product's own. ``added`` are columns that earlier releases did not make."""

    name: str
    columns: str
    primary_key: str
    added: tuple[tuple[str, str], ...] = ()

    def statements(self, known: Columns) -> list[str]:
        """The DDL for what is missing, given the columns that exist."""
        name = quote_name(self.name)
        if not any(table == self.name for table, _ in known):
            columns = ", ".join([self.columns, *(" ".join(pair) for pair in self.added)])
            key = f"PRIMARY KEY ({self.primary_key})"
            return [f"CREATE TABLE IF NOT EXISTS {name} ({columns}) {key}"]
        return [
            f"ALTER TABLE {name} ADD COLUMN IF NOT EXISTS {column} {type_}"
            for column, type_ in self.added
            if (self.name, column) not in known
        ]


def consumers_table(positions_table: str) -> str:
    """The table of leases and states that belongs to a table of positions."""
    return positions_table.removesuffix("Positions") + "Consumers"


def errors_table(positions_table: str) -> str:
    """The table of the errors that consumers met."""
    return consumers_table(positions_table).removesuffix("s") + "Errors"


def backfills_table(positions_table: str) -> str:
    """The table of backfills that are in progress."""
    return positions_table.removesuffix("Positions") + "Backfills"


def cleared_table(positions_table: str) -> str:
    """The table that says how far each watched table may have been cleared."""
    return positions_table.removesuffix("Positions") + "Cleared"


def own_tables(positions_table: str) -> tuple[str, ...]:
    """Every table of the product's own that goes with a table of positions."""
    return tuple(table.name for table in define_tables(positions_table))


def define_tables(positions_table: str) -> tuple[OwnTable, ...]:
    """The tables that go with a table of positions."""
    updated_at = "UpdatedAt TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true)"
    return (
        OwnTable(
            positions_table,
            "Consumer STRING(256) NOT NULL, WatchedTable STRING(256) NOT NULL,"
            f" Position TIMESTAMP NOT NULL, {updated_at}",
            "Consumer, WatchedTable",
            added=(("PlannedEnd", "TIMESTAMP"),),
        ),
        OwnTable(
            consumers_table(positions_table),
            "Consumer STRING(256) NOT NULL, State STRING(32) NOT NULL, Command STRING(16),"
            " Owner STRING(64), LeaseUntil TIMESTAMP, Windows INT64, DeliveredRows INT64,"
            f" RowsPerSecond FLOAT64, DeadLetters INT64, {updated_at}",
            "Consumer",
            added=(("Selection", "STRING(MAX)"), ("Reason", "STRING(MAX)")),
        ),
        OwnTable(
            errors_table(positions_table),
            "Consumer STRING(256) NOT NULL, ErrorId STRING(36) NOT NULL, Kind STRING(64) NOT NULL,"
            " Message STRING(MAX) NOT NULL,"
            " OccurredAt TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true)",
            "Consumer, ErrorId",
        ),
        OwnTable(
            backfills_table(positions_table),
            "Consumer STRING(256) NOT NULL, WatchedTable STRING(256) NOT NULL,"
            " Progress STRING(MAX) NOT NULL",
            "Consumer, WatchedTable",
        ),
        OwnTable(
            cleared_table(positions_table),
            f"WatchedTable STRING(256) NOT NULL, ClearedTo TIMESTAMP NOT NULL, {updated_at}",
            "WatchedTable",
        ),
    )


def create_own_tables(database: Database, positions_table: str) -> None:
    """Makes what is missing of the product's own tables, in one schema update; several instances at
    once may try.

    Raises WatcherError when they may not be made, and what may go away by itself as it came.
    """
    tables = define_tables(positions_table)
    known = read_columns(database, [table.name for table in tables])
    statements = [text for table in tables for text in table.statements(known)]
    if not statements:
        return
    try:
        database.update_ddl(statements).result(DDL_SECONDS_MAX)
    except AlreadyExists:
        return
    except GoogleAPICallError as error:
        if classify_error(error) is FailureKind.RETRY:
            raise
        raise WatcherError(
            f"cannot create the tables of {positions_table}: {error.message}"
        ) from error


def read_columns(database: Database, names: Sequence[str]) -> Columns:
    """The columns that the tables have now."""
    with database.snapshot() as snapshot:
        rows = snapshot.execute_sql(
            "SELECT TABLE_NAME, COLUMN_NAME FROM INFORMATION_SCHEMA.COLUMNS"
            " WHERE TABLE_SCHEMA = '' AND TABLE_NAME IN UNNEST(@names)",
            params={"names": list(names)},
            param_types={"names": param_types.Array(param_types.STRING)},
        )
        return frozenset((row[0], row[1]) for row in rows)
