"""Changes as rows of PostgreSQL's tables.

A window is copied into a temporary table (COPY), and goes from there into the table by one INSERT
... ON CONFLICT and, where rows were deleted, a DELETE. PostgreSQL 15 is the first one whose unique
keys take NULL for equal to NULL, as Spanner's do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from spanner_schema.model.column_types import TypeCode
from watcher.captures import TableRows
from watcher.model.change import Change
from watcher.model.errors import (
    DeliveryError,
    SinkUnavailableError,
    UnavailableError,
    first_line,
)
from watcher.process.extras import require_extras
from watcher.replica.copies import DELETED_COLUMN, STAMP_COLUMN
from watcher.settings.destinations import PostgresDestination, PostgresOptions
from watcher.settings.secret_values import reveal_all
from watcher.settings.watcher import WatchConfig
from watcher.sinks.postgresql_csv import write_csv
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
    from psycopg import Connection, Error

STAGE = "spanner_watcher_rows"
VERSION_MIN = 150_000
CONNECT_SECONDS = 10
ROWS_PER_COPY = 20_000
NAMES = {
    TypeCode.JSON: "json",
    TypeCode.PG_JSONB: "json",
    TypeCode.UUID: "uuid",
    TypeCode.NUMERIC: "numeric",
    TypeCode.PG_NUMERIC: "numeric",
}
"""JSON is not jsonb, which refuses some of Spanner's documents."""
ARROW_NAMES = {
    pa.bool_(): "boolean",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.binary(): "bytea",
    pa.date32(): "date",
    pa.decimal128(38, 9): "numeric",
    pa.timestamp("us", tz="UTC"): "timestamp with time zone",
}
TEMPORARY = ("08", "40", "53", "55", "57", "58")
"""Classes of SQLSTATE that may go away: connections, conflicts, resources, locks, operators."""

ABOUT_VALUES = "22"
"""The class of SQLSTATE whose messages quote values."""


@cache
def load_psycopg() -> ModuleType:
    """The client, which only this sink needs. Raises MissingExtraError."""
    require_extras("postgresql")
    return import_module("psycopg")


class PostgresStore(TableStore):
    """A ``TableStore`` over one connection, which is made anew when it is lost."""

    mark = "%s"
    from_micros = "timestamptz 'epoch' + %s * interval '1 microsecond'"
    names = NAMES
    arrow_names = ARROW_NAMES
    binary = frozenset({"bytea", "bytea[]"})

    def __init__(self, destination: PostgresDestination, options: PostgresOptions) -> None:
        """Connects to nobody yet. Raises MissingExtraError."""
        self._client = load_psycopg()
        self._destination = destination
        self._options = options
        self._connection: Connection[Any] | None = None

    def connect(self) -> None:
        """Raises UnavailableError when the server does not answer, or does not let this user in."""
        try:
            self._require()
        except self._client.Error as error:
            raise UnavailableError(
                f"{self._destination} does not answer ({describe(error)}): check delivery.to, the"
                " user and the password"
            ) from error

    # As ``TableStore``.

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """As ``TableStore.transaction``."""
        try:
            with self._require().transaction():
                yield
        except self._client.Error as error:
            self._explain(error)

    def make_state(self, target: Target) -> None:
        """As ``TableStore.make_state``; instances take turns."""
        self.run("SELECT pg_advisory_xact_lock(hashtext('spanner_watcher'))")
        self._create_schema(target[0])
        if self.read_columns(target) is None:
            self.run(
                f"CREATE TABLE {quote_target(target)} (source text NOT NULL,"
                " consumer text NOT NULL, epoch bigint NOT NULL, position timestamp with time zone,"
                " PRIMARY KEY (source, consumer))"
            )

    def read_columns(self, target: Target) -> Mapping[str, str] | None:
        """As ``TableStore.read_columns``."""
        rows = self.run(
            "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
            " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
            quote_target(target),
        )
        return dict(rows) or None

    def create(self, columns: Columns) -> None:
        """As ``TableStore.create``: the key is unique, and may be NULL. A table without a key has
        one row at most."""
        self._create_schema(columns.target[0])
        table = quote_target(columns.target)
        written = [f"{quote(name)} {type_}" for name, type_ in columns.types.items()]
        if columns.key:
            written.append(f"UNIQUE NULLS NOT DISTINCT ({list_names(columns.key)})")
        self.run(f"CREATE TABLE {table} ({', '.join(written)})")
        if not columns.key:
            self.run(f"CREATE UNIQUE INDEX ON {table} ((true))")

    def add_columns(self, target: Target, types: Mapping[str, str]) -> None:
        """As ``TableStore.add_columns``."""
        added = [f"ADD COLUMN {quote(name)} {type_}" for name, type_ in types.items()]
        self.run(f"ALTER TABLE {quote_target(target)} {', '.join(added)}")

    def merge(self, columns: Columns, rows: pa.Table) -> None:
        """As ``TableStore.merge``."""
        names = [name for name in rows.column_names if name != DELETED_COLUMN]
        table, listed = quote_target(columns.target), list_names(names)
        self.run(
            f"CREATE TEMPORARY TABLE {STAGE} ON COMMIT DROP AS SELECT {listed},"  # noqa: S608 (quoted)
            f" true AS {quote(DELETED_COLUMN)} FROM {table} WITH NO DATA"
        )
        self._copy(rows.select([*names, DELETED_COLUMN]))
        kept = ", ".join(f"{quote(name)} = excluded.{quote(name)}" for name in names)
        conflict = list_names(columns.key) or "(true)"
        self.run(
            f"INSERT INTO {table} AS t ({listed}) SELECT {listed} FROM {STAGE}"  # noqa: S608 (quoted)
            f" WHERE NOT {quote(DELETED_COLUMN)} ON CONFLICT ({conflict}) DO UPDATE SET {kept}"
            f" WHERE {is_older('excluded')}"
        )
        for pattern in list_null_patterns(rows, columns.key):
            self.run(
                f"DELETE FROM {table} AS t USING {STAGE} AS s WHERE s.{quote(DELETED_COLUMN)}"  # noqa: S608 (quoted)
                f" AND {is_older('s')}{pattern}"
            )
        self.run(f"DROP TABLE {STAGE}")

    def refuse(self, change: Change) -> str | None:
        """As ``TableStore.refuse``: PostgreSQL's texts have no character of the code 0."""
        for name, value in {**change.key, **(change.new_values or {})}.items():
            values = value if isinstance(value, list | tuple) else [value]
            if any(isinstance(each, str) and "\0" in each for each in values):
                return f"column {name} has a NUL character, which PostgreSQL does not store"
        return None

    def takes(self, rows: TableRows) -> bool:
        """As ``TableStore.takes``."""
        return not any(has_nul(column) for column in rows.batch.columns)

    def close(self) -> None:
        """As ``TableStore.close``."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # The connection.

    def _require(self) -> Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> Connection[Any]:
        options = self._options
        given = {"connect_timeout": str(CONNECT_SECONDS), "application_name": "spanner-watcher"}
        given |= dict(self._destination.parameters)
        given |= {name: str(value) for name, value in reveal_all(options.properties).items()}
        if options.password is not None:
            given["password"] = str(options.password.reveal())
        connection: Connection[Any] = self._client.connect(
            self._destination.address,
            autocommit=True,
            prepare_threshold=None,  # poolers give each transaction another connection
            client_encoding="utf8",
            **given,
        )
        if connection.info.server_version < VERSION_MIN:
            connection.close()
            raise UnavailableError(
                f"{self._destination} is older than PostgreSQL 15, the first one with keys that may"
                " be NULL once: use a newer server"
            )
        return connection

    def _create_schema(self, schema: str) -> None:
        """Only where it is missing: the right to create schemas is seldom given."""
        if not self.run("SELECT 1 FROM pg_namespace WHERE nspname = %s", schema):
            self.run(f"CREATE SCHEMA {quote(schema)}")

    def run(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """As ``TableStore.run``."""
        assert self._connection is not None, "statements are inside a transaction"
        cursor = self._connection.execute(sql.encode(), values or None)
        return cursor.fetchall() if cursor.description is not None else []

    def _copy(self, rows: pa.Table) -> None:
        assert self._connection is not None, "statements are inside a transaction"
        statement = f"COPY {STAGE} FROM STDIN (FORMAT csv, ENCODING 'UTF8')"
        with self._connection.cursor().copy(statement.encode()) as copy:
            for batch in rows.combine_chunks().to_batches(max_chunksize=ROWS_PER_COPY):
                copy.write(write_csv(batch))

    def _explain(self, error: Error) -> NoReturn:
        """The error of a transaction in words that say what to do."""
        state = error.sqlstate
        lost = isinstance(error, self._client.OperationalError) and state is None
        connection = self._connection
        if lost or (connection is not None and connection.broken) or (state or "")[:2] in TEMPORARY:
            self.close()
            raise SinkUnavailableError(
                f"{self._destination} did not take a window ({describe(error)})"
            ) from error
        raise DeliveryError(
            f"{self._destination} refused a window ({state}: {describe(error)}): change the table,"
            " or the rights of this user, and restart; nothing of the window is written"
        ) from error


def is_older(newer: str) -> str:
    """The condition that a row of ``t`` is no newer than another one."""
    stamp = quote(STAMP_COLUMN)
    return f"(t.{stamp} IS NULL OR t.{stamp} <= {newer}.{stamp})"


def list_null_patterns(rows: pa.Table, key: Sequence[str]) -> list[str]:
    """For each set of key columns that are NULL in rows that are deleted, the condition under which
    ``t`` has the key of ``s``: one that an index serves."""
    deleted = rows.filter(rows.column(DELETED_COLUMN))
    if not deleted.num_rows:
        return []
    if not key:
        return [""]
    nulls = pa.table([pc.is_null(deleted.column(name)) for name in key], list(key))
    patterns = nulls.group_by(list(key)).aggregate([]).to_pylist()
    return ["".join(compare_key(name, pattern[name]) for name in key) for pattern in patterns]


def compare_key(name: str, null: bool) -> str:
    """One column of such a condition."""
    column = quote(name)
    if null:
        return f" AND t.{column} IS NULL AND s.{column} IS NULL"
    return f" AND t.{column} = s.{column}"


def has_nul(column: pa.Array) -> bool:
    """Whether a text of a column has a NUL character."""
    if pa.types.is_list(column.type):
        return has_nul(column.flatten())
    return pa.types.is_string(column.type) and bool(
        pc.any(pc.match_substring(column, "\0")).as_py()
    )


def describe(error: Error) -> str:
    """An error without values of rows: its first line, unless it is about a value."""
    if (error.sqlstate or "").startswith(ABOUT_VALUES):
        return type(error).__name__
    return first_line(error)


def open_sink(config: WatchConfig, destination: PostgresDestination) -> TableSink:
    """As ``queues.open_queue``."""
    store = PostgresStore(destination, config.delivery.postgresql)
    store.connect()
    return TableSink(destination, store, config)
