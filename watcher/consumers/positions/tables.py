"""The product's own tables in a Spanner database: how they are made, and which are there."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from google.api_core.exceptions import AlreadyExists, GoogleAPICallError, PermissionDenied
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.names import TABLE_NAME_CHARACTERS_MAX, split_name
from spanner_schema.model.schema import Column, Dialect, KeyPart, Table
from spanner_schema.model.steps import AddColumn, CreateTable, redefine_column
from spanner_schema.syntax.render import render_step
from watcher.consumers.positions.own_names import (
    audit_table,
    backfills_table,
    check_positions_table,
    check_spelling,
    cleared_table,
    consumers_table,
    divisions_table,
    errors_table,
    members_table,
)
from watcher.consumers.positions.reader import RowReader
from watcher.model.errors import ConfigurationError, WatcherError
from watcher.model.log_events.running import OWN_TABLE_NOT_MADE, OWN_TABLES_NARROW
from watcher.spanner.dialects import Bound, SqlDialect, find_dialect
from watcher.spanner.failures import FailureKind, classify_error

LOG = logging.getLogger("watcher")
LENGTH = re.compile(r"\((\d+)\)")
DDL_SECONDS_MAX = 600
KEY_CHARACTERS_MAX = 256
"""Of the name of a consumer."""
WATCHED = "WatchedTable"
"""The column with the name of a table. Earlier releases made it one character too short for the
longest name in a named schema."""

Columns = frozenset[tuple[str, str]]
"""Pairs of table and column."""


@dataclass(frozen=True, slots=True)
class OwnTable:
    """A table of the product's own. ``added`` are columns that earlier releases did not make.
    Without one that is ``optional`` consumers work."""

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    added: tuple[Column, ...] = ()
    optional: bool = False

    def statements(self, known: Columns, dialect: Dialect) -> list[str]:
        """The DDL for what is missing, given the columns that exist."""
        if not any(table == self.name for table, _ in known):
            key = tuple(map(KeyPart, self.primary_key))
            table = Table(self.name, (*self.columns, *self.added), key)
            return [render_step(CreateTable(table, if_not_exists=True), dialect)]
        return [
            render_step(AddColumn(self.name, column, if_not_exists=True), dialect)
            for column in self.added
            if (self.name, column.name) not in known
        ]

    def check_is_ours(self, known: Columns) -> None:
        """Raises ConfigurationError for a table that has the name and not the columns."""
        there = {column for table, column in known if table == self.name}
        missing = [column.name for column in self.columns if column.name not in there]
        if there and missing:
            raise ConfigurationError(
                f"table {self.name} exists and is not one of spanner-watcher's: it has no column"
                f" {', '.join(missing)}; choose another name for the table of positions"
            )


def text(name: str, length: int | None = None, not_null: bool = False) -> Column:
    """A column of text."""
    return Column(name, Type(TypeCode.STRING, length), not_null=not_null)


def key(name: str, length: int = KEY_CHARACTERS_MAX) -> Column:
    """A column of a primary key."""
    return text(name, length, not_null=True)


def watched_table() -> Column:
    """The name of a table, in a primary key."""
    return key(WATCHED, TABLE_NAME_CHARACTERS_MAX)


def number(name: str, code: TypeCode = TypeCode.INT64) -> Column:
    """A column of numbers."""
    return Column(name, Type(code))


def time(name: str, not_null: bool = False, commit: bool = False) -> Column:
    """A column of times."""
    type_ = Type(TypeCode.TIMESTAMP)
    return Column(name, type_, not_null=not_null, allow_commit_timestamp=commit)


def own_tables(positions_table: str) -> tuple[str, ...]:
    """Every table of the product's own that goes with a table of positions."""
    return tuple(table.name for table in define_tables(positions_table))


def define_tables(positions_table: str) -> tuple[OwnTable, ...]:
    """The tables that go with a table of positions."""
    updated_at = time("UpdatedAt", not_null=True, commit=True)
    return (
        OwnTable(
            positions_table,
            (key("Consumer"), watched_table(), time("Position", not_null=True), updated_at),
            ("Consumer", "WatchedTable"),
            added=(time("PlannedEnd"),),
        ),
        OwnTable(
            consumers_table(positions_table),
            (
                key("Consumer"),
                text("State", 32, not_null=True),
                text("Command", 16),
                text("Owner", 64),
                time("LeaseUntil"),
                number("Windows"),
                number("DeliveredRows"),
                number("RowsPerSecond", TypeCode.FLOAT64),
                number("DeadLetters"),
                updated_at,
            ),
            ("Consumer",),
            added=(text("Selection"), text("Reason")),
        ),
        OwnTable(
            errors_table(positions_table),
            (
                key("Consumer"),
                key("ErrorId", 36),
                text("Kind", 64, not_null=True),
                text("Message", not_null=True),
                time("OccurredAt", not_null=True, commit=True),
            ),
            ("Consumer", "ErrorId"),
        ),
        OwnTable(
            backfills_table(positions_table),
            (key("Consumer"), watched_table(), text("Progress", not_null=True)),
            ("Consumer", "WatchedTable"),
        ),
        OwnTable(
            cleared_table(positions_table),
            (watched_table(), time("ClearedTo", not_null=True), updated_at),
            ("WatchedTable",),
        ),
        OwnTable(
            members_table(positions_table),
            (key("Consumer"), key("Member", 36), time("LeaseUntil", not_null=True)),
            ("Consumer", "Member"),
            added=(text("Settings"),),
        ),
        OwnTable(
            divisions_table(positions_table),
            (key("Consumer"), watched_table(), text("Division", not_null=True), updated_at),
            ("Consumer", "WatchedTable"),
        ),
        OwnTable(
            audit_table(positions_table),
            (
                key("Consumer"),
                key("AuditId", 36),
                time("At", not_null=True, commit=True),
                text("Who"),
                text("Action", 64),
                text("Details"),
                text("Result"),
            ),
            ("Consumer", "AuditId"),
            optional=True,
        ),
    )


def create_own_tables(database: Database, positions_table: str) -> None:
    """Makes what is missing of the product's own tables, in one schema update; several instances at
    once may try.

    Raises ConfigurationError for a table of somebody else's that has one of their names,
    WatcherError when they may not be made, and what may go away by itself as it came.
    """
    sql = find_dialect(database)
    with database.snapshot() as snapshot:
        found = find_own_columns(snapshot, sql, positions_table)
    known = frozenset((each.table, each.name) for each in found)
    statements = list_missing(known, positions_table, sql.dialect)
    if statements:
        try:
            change_own_tables(database, positions_table, statements)
        except WatcherError as error:
            if not is_complete(known, positions_table, sql.dialect):
                raise
            OWN_TABLE_NOT_MADE.log(LOG, error=error)
    narrow = [each.table for each in found if each.is_narrow]
    if narrow:
        widen_names(database, narrow, sql.dialect)


def list_missing(
    known: Columns, positions_table: str, dialect: Dialect, optional: bool = True
) -> list[str]:
    """The statements that make what is missing of the product's own tables."""
    tables = [each for each in define_tables(positions_table) if optional or not each.optional]
    return [each for table in tables for each in table.statements(known, dialect)]


def is_complete(known: Columns, positions_table: str, dialect: Dialect) -> bool:
    """Whether the product's own tables have everything that consumers need, whatever room for
    names."""
    return not list_missing(known, positions_table, dialect, optional=False)


def change_own_tables(database: Database, positions_table: str, statements: Sequence[str]) -> None:
    """Runs DDL for the own tables. Raises as ``create_own_tables``."""
    try:
        database.update_ddl(list(statements)).result(DDL_SECONDS_MAX)
    except AlreadyExists:
        return
    except GoogleAPICallError as error:
        if classify_error(error) is FailureKind.RETRY:
            raise
        raise WatcherError(
            f"cannot create the tables of {positions_table}: {error.message}"
        ) from error


def widen_names(database: Database, narrow: Sequence[str], dialect: Dialect) -> None:
    """Makes room for the longest names of tables in what an earlier release has made. Who may not
    change the schema leaves that to others."""
    steps = [redefine_column(name, watched_table(), dialect) for name in narrow]
    try:
        statements = [render_step(step, dialect) for step in steps]
        database.update_ddl(statements).result(DDL_SECONDS_MAX)
    except PermissionDenied:
        OWN_TABLES_NARROW.log(LOG, characters=TABLE_NAME_CHARACTERS_MAX)


@dataclass(frozen=True, slots=True)
class FoundColumn:
    """A column that is there. ``spelled`` is the name of its table as it is in its schema."""

    table: str
    spelled: str
    name: str
    type: str

    @property
    def is_narrow(self) -> bool:
        """Whether it has no room for the longest names of tables, which it is for."""
        length = LENGTH.search(self.type) if self.name == WATCHED else None
        return length is not None and int(length[1]) < TABLE_NAME_CHARACTERS_MAX


def read_own_columns(database: Database, positions_table: str) -> Columns:
    """The columns that the own tables have now: none where nobody has watched, and fewer where an
    older release has. Raises ConfigurationError for a table of somebody else's."""
    with database.snapshot() as snapshot:
        found = find_own_columns(snapshot, find_dialect(database), positions_table)
    return frozenset((each.table, each.name) for each in found)


def find_own_columns(
    reader: RowReader, sql: SqlDialect, positions_table: str
) -> tuple[FoundColumn, ...]:
    """As ``read_own_columns``, by whoever reads."""
    check_positions_table(positions_table, sql.dialect)
    tables = define_tables(positions_table)
    found = tuple(list_columns(reader, sql, [table.name for table in tables]))
    for each in found:
        if each.table == positions_table:
            check_spelling(positions_table, each.spelled)
    known = frozenset((each.table, each.name) for each in found)
    for table in tables:
        table.check_is_ours(known)
    return found


def read_columns(database: Database, names: Sequence[str]) -> Columns:
    """The columns that the tables have now, which are named as in ``names``, in one schema."""
    with database.snapshot() as snapshot:
        found = list_columns(snapshot, find_dialect(database), names)
        return frozenset((each.table, each.name) for each in found)


def list_columns(reader: RowReader, sql: SqlDialect, names: Sequence[str]) -> Iterator[FoundColumn]:
    """The columns of tables of one schema."""
    schema, _ = split_name(names[0])
    query = (
        "SELECT TABLE_NAME, COLUMN_NAME, SPANNER_TYPE FROM INFORMATION_SCHEMA.COLUMNS"  # noqa: S608 (our own text)
        f" WHERE LOWER(TABLE_SCHEMA) = @schema AND {sql.is_any('LOWER(TABLE_NAME)', '@names')}"
    )
    spelled = {split_name(name)[1].lower(): name for name in names}
    values = {
        "schema": ((schema or sql.default_schema).lower(), param_types.STRING),
        "names": (list(spelled), param_types.Array(param_types.STRING)),
    }
    for actual, column, type_ in reader.execute_sql(*sql.bind(query, values)):
        yield FoundColumn(spelled[actual.lower()], actual, column, type_)


def select_of_consumer(
    sql: SqlDialect, table: str, columns: Sequence[str], consumer: str, more: str = ""
) -> Bound:
    """Columns of the rows that a consumer has in one of the product's own tables."""
    text = (
        f"SELECT {sql.quote_all(columns)} FROM {sql.quote(table)}"  # noqa: S608 (quoted)
        f" WHERE {sql.quote('Consumer')} = @consumer{more}"
    )
    return sql.bind(text, {"consumer": (consumer, param_types.STRING)})


def list_names(database: Database, positions_table: str) -> set[str]:
    """As ``read_names``, without a transaction; nobody where nobody has watched."""
    columns = read_own_columns(database, positions_table)
    with database.snapshot(multi_use=True) as snapshot:
        return read_names(snapshot, positions_table, find_dialect(database), columns)


def read_names(
    reader: RowReader, positions_table: str, sql: SqlDialect, columns: Columns | None = None
) -> set[str]:
    """The names of all consumers that have a state or a position. What an older release has not
    made (``columns`` None: everything is there) is empty."""
    names: set[str] = set()
    for table in (positions_table, consumers_table(positions_table)):
        if columns is None or (table, "Consumer") in columns:
            query = f"SELECT DISTINCT {sql.quote('Consumer')} FROM {sql.quote(table)}"  # noqa: S608
            names |= {row[0] for row in reader.execute_sql(query)}
    return names
