"""Changes as rows of the tables in a file of DuckDB: one MERGE of Arrow columns for each table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from spanner_schema.model.column_types import TypeCode
from watcher.model.errors import (
    DeliveryError,
    FileInUseError,
    SinkUnavailableError,
    first_line,
)
from watcher.process.extras import require_extras
from watcher.replica.copies import DELETED_COLUMN, STAMP_COLUMN
from watcher.settings.destinations import DuckDbDestination, DuckDbOptions
from watcher.settings.secret_values import reveal_all
from watcher.settings.watcher import WatchConfig
from watcher.sinks.table_sink import TableSink
from watcher.sinks.table_store import (
    Columns,
    TableStore,
    Target,
    list_names,
    quote,
    quote_target,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, Error

STAGE = "spanner_watcher_rows"
LOCKED = "Could not set lock on file"
NAMES = {TypeCode.JSON: "JSON", TypeCode.PG_JSONB: "JSON", TypeCode.UUID: "UUID"}
ARROW_NAMES = {
    pa.bool_(): "BOOLEAN",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
    pa.decimal128(38, 9): "DECIMAL(38, 9)",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP WITH TIME ZONE",
}


@cache
def load_duckdb() -> ModuleType:
    """The library, which only this sink needs. Raises MissingExtraError."""
    require_extras("duckdb")
    return import_module("duckdb")


class DuckDbStore(TableStore):
    """A ``TableStore`` over a file, which is this process's from the first transaction on."""

    mark = "?"
    from_micros = "make_timestamptz(?)"
    names = NAMES
    arrow_names = ARROW_NAMES
    binary = frozenset({"BLOB", "BLOB[]"})

    def __init__(self, destination: DuckDbDestination, options: DuckDbOptions) -> None:
        """Opens nothing yet. Raises MissingExtraError."""
        self._library = load_duckdb()
        self._destination = destination
        self._options = options
        self._connection: DuckDBPyConnection | None = None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """As ``TableStore.transaction``. Raises FileInUseError where another process has the
        file."""
        try:
            connection = self._require()
            connection.begin()
            try:
                yield
            except BaseException:
                self._roll_back(connection)
                raise
            connection.commit()
        except self._library.Error as error:
            self._explain(error)

    def make_state(self, target: Target) -> None:
        """As ``TableStore.make_state``."""
        self.run(f"CREATE SCHEMA IF NOT EXISTS {quote(target[0])}")
        self.run(
            f"CREATE TABLE IF NOT EXISTS {quote_target(target)} (source VARCHAR, consumer VARCHAR,"
            " epoch BIGINT, position TIMESTAMP WITH TIME ZONE, PRIMARY KEY (source, consumer))"
        )

    def read_columns(self, target: Target) -> Mapping[str, str] | None:
        """As ``TableStore.read_columns``."""
        rows = self.run(
            "SELECT column_name, data_type FROM duckdb_columns()"
            " WHERE database_name = current_database()"
            " AND lower(schema_name) = lower(?) AND lower(table_name) = lower(?)",
            *target,
        )
        return dict(rows) or None

    def create(self, columns: Columns) -> None:
        """As ``TableStore.create``: without an index, which DuckDB would keep in memory, and whose
        keys may not be NULL."""
        self.run(f"CREATE SCHEMA IF NOT EXISTS {quote(columns.target[0])}")
        written = ", ".join(f"{quote(name)} {type_}" for name, type_ in columns.types.items())
        self.run(f"CREATE TABLE {quote_target(columns.target)} ({written})")

    def add_columns(self, target: Target, types: Mapping[str, str]) -> None:
        """As ``TableStore.add_columns``."""
        for name, type_ in types.items():
            self.run(f"ALTER TABLE {quote_target(target)} ADD COLUMN {quote(name)} {type_}")

    def merge(self, columns: Columns, rows: pa.Table) -> None:
        """As ``TableStore.merge``."""
        names = [name for name in rows.column_names if name != DELETED_COLUMN]
        stamp, deleted = quote(STAMP_COLUMN), quote(DELETED_COLUMN)
        same = [f"t.{quote(name)} IS NOT DISTINCT FROM s.{quote(name)}" for name in columns.key]
        kept = ", ".join(f"{quote(name)} = s.{quote(name)}" for name in names)
        connection = self._require()
        connection.register(STAGE, rows)  # in place of what a window that failed has left
        self.run(
            f"MERGE INTO {quote_target(columns.target)} AS t USING {STAGE} AS s"  # noqa: S608 (quoted)
            f" ON {' AND '.join(same) or 'true'}"
            f" WHEN MATCHED AND t.{stamp} > s.{stamp} THEN DO NOTHING"
            f" WHEN MATCHED AND s.{deleted} THEN DELETE"
            f" WHEN MATCHED THEN UPDATE SET {kept}"
            f" WHEN NOT MATCHED AND NOT s.{deleted} THEN"
            f" INSERT ({list_names(names)}) VALUES ({list_names(names, 's.')})"
        )
        connection.unregister(STAGE)

    def fold(self, name: str) -> str:
        """As ``TableStore.fold``: DuckDB ignores case."""
        return name.casefold()

    def close(self) -> None:
        """As ``TableStore.close``."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # The connection.

    def _require(self) -> DuckDBPyConnection:
        if self._connection is None:
            given = reveal_all(self._options.properties)
            self._connection = self._library.connect(self._destination.path, config=given)
        return self._connection

    def run(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """As ``TableStore.run``."""
        return self._require().execute(sql, values or None).fetchall()

    def _roll_back(self, connection: DuckDBPyConnection) -> None:
        """Ends a transaction that has failed; one that DuckDB has ended itself is no news."""
        try:
            connection.rollback()
        except self._library.Error:
            self.close()

    def _describe(self, error: Error) -> str:
        """An error without values of rows: its first line, unless it is about a value."""
        library = self._library
        about_values = (library.ConversionException, library.ConstraintException, library.DataError)
        if isinstance(error, about_values):
            return type(error).__name__
        return first_line(error)

    def _explain(self, error: Error) -> NoReturn:
        """The error of a transaction in words that say what to do."""
        text, library = self._describe(error), self._library
        if LOCKED in text:
            raise FileInUseError(
                f"{self._destination} is open in another process, and DuckDB lets one at a time"
                f" have a file ({text}): end that one"
            ) from error
        if isinstance(error, library.IOException | library.TransactionException):
            self.close()
            raise SinkUnavailableError(
                f"{self._destination} did not take a window ({text})"
            ) from error
        raise DeliveryError(
            f"{self._destination} refused a window ({text}): change the table and restart; nothing"
            " of the window is written"
        ) from error


def open_sink(config: WatchConfig, destination: DuckDbDestination) -> TableSink:
    """As ``queues.open_queue``; the file is opened when the watcher has its lease."""
    return TableSink(destination, DuckDbStore(destination, config.delivery.duckdb), config)
