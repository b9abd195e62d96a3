"""The product's own tables in a Spanner database: their names, and how they are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from google.api_core.exceptions import AlreadyExists, GoogleAPICallError
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database

from ddl.names import join_name, split_name
from ddl.render import render_step
from ddl.schema import Column, Dialect, KeyPart, Table, Type, TypeCode
from ddl.steps import AddColumn, CreateTable
from watcher.consumers.positions.reader import RowReader
from watcher.errors import WatcherError
from watcher.spanner.dialects import Bound, SqlDialect, find_dialect
from watcher.spanner.failures import FailureKind, classify_error

DDL_SECONDS_MAX = 600
KEY_CHARACTERS_MAX = 256
"""Of the name of a consumer, and of a table."""

Columns = frozenset[tuple[str, str]]
"""Pairs of table and column."""


@dataclass(frozen=True, slots=True)
class OwnTable:
    """A table of the product's own. ``added`` are columns that earlier releases did not make."""

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    added: tuple[Column, ...] = ()

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


def text(name: str, length: int | None = None, not_null: bool = False) -> Column:
    """A column of text."""
    return Column(name, Type(TypeCode.STRING, length), not_null=not_null)


def key(name: str, length: int = KEY_CHARACTERS_MAX) -> Column:
    """A column of a primary key."""
    return text(name, length, not_null=True)


def number(name: str, code: TypeCode = TypeCode.INT64) -> Column:
    """A column of numbers."""
    return Column(name, Type(code))


def time(name: str, not_null: bool = False, commit: bool = False) -> Column:
    """A column of times."""
    type_ = Type(TypeCode.TIMESTAMP)
    return Column(name, type_, not_null=not_null, allow_commit_timestamp=commit)


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


def members_table(positions_table: str) -> str:
    """The table of the instances that share consumers."""
    return positions_table.removesuffix("Positions") + "Members"


def divisions_table(positions_table: str) -> str:
    """The table that says how the tables of shared consumers are divided."""
    return positions_table.removesuffix("Positions") + "Divisions"


def own_tables(positions_table: str) -> tuple[str, ...]:
    """Every table of the product's own that goes with a table of positions."""
    return tuple(table.name for table in define_tables(positions_table))


def define_tables(positions_table: str) -> tuple[OwnTable, ...]:
    """The tables that go with a table of positions."""
    updated_at = time("UpdatedAt", not_null=True, commit=True)
    return (
        OwnTable(
            positions_table,
            (key("Consumer"), key("WatchedTable"), time("Position", not_null=True), updated_at),
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
            (key("Consumer"), key("WatchedTable"), text("Progress", not_null=True)),
            ("Consumer", "WatchedTable"),
        ),
        OwnTable(
            cleared_table(positions_table),
            (key("WatchedTable"), time("ClearedTo", not_null=True), updated_at),
            ("WatchedTable",),
        ),
        OwnTable(
            members_table(positions_table),
            (key("Consumer"), key("Member", 36), time("LeaseUntil", not_null=True)),
            ("Consumer", "Member"),
        ),
        OwnTable(
            divisions_table(positions_table),
            (key("Consumer"), key("WatchedTable"), text("Division", not_null=True), updated_at),
            ("Consumer", "WatchedTable"),
        ),
    )


def create_own_tables(database: Database, positions_table: str) -> None:
    """Makes what is missing of the product's own tables, in one schema update; several instances at
    once may try.

    Raises WatcherError when they may not be made, and what may go away by itself as it came.
    """
    tables = define_tables(positions_table)
    known = read_columns(database, [table.name for table in tables])
    dialect = find_dialect(database).dialect
    statements = [each for table in tables for each in table.statements(known, dialect)]
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
        rows = snapshot.execute_sql(*select_columns(find_dialect(database), names))
        return frozenset((row[0], row[1]) for row in rows)


def select_columns(sql: SqlDialect, names: Sequence[str]) -> Bound:
    """The query for pairs of table and column. The tables are in one schema, as those that go with
    a table of positions are."""
    schema, _ = split_name(names[0])
    query = (
        "SELECT @place || TABLE_NAME, COLUMN_NAME FROM INFORMATION_SCHEMA.COLUMNS"  # noqa: S608 (our own text)
        f" WHERE TABLE_SCHEMA = @schema AND {sql.is_any('TABLE_NAME', '@names')}"
    )
    values = {
        "place": (join_name(schema, ""), param_types.STRING),
        "schema": (schema or sql.default_schema, param_types.STRING),
        "names": ([split_name(name)[1] for name in names], param_types.Array(param_types.STRING)),
    }
    return sql.bind(query, values)


def select_of_consumer(
    sql: SqlDialect, table: str, columns: Sequence[str], consumer: str, more: str = ""
) -> Bound:
    """Columns of the rows that a consumer has in one of the product's own tables."""
    text = (
        f"SELECT {sql.quote_all(columns)} FROM {sql.quote(table)}"  # noqa: S608 (quoted)
        f" WHERE {sql.quote('Consumer')} = @consumer{more}"
    )
    return sql.bind(text, {"consumer": (consumer, param_types.STRING)})


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
