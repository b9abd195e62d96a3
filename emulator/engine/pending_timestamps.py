"""Commit timestamps that DML has written before they are known: nothing may read them."""

from __future__ import annotations

from dataclasses import dataclass, field

import apsw

from emulator.engine.refusals import future_timestamp, pending_read
from emulator.engine.state import SchemaState
from emulator.engine.write_plans import PENDING_TEXT, Moment
from emulator.errors import SpannerError, invalid_argument
from emulator.sql.statements import Delete, Insert, Returning, Update
from emulator.storage.sqlite import current_table
from emulator.values.sqlite_text import quote_name
from spanner_schema.model.schema import Column, Table


@dataclass(slots=True)
class PendingTimestamps:
    """Those of a transaction.

    ``columns`` are (table, column), in lower case. ``strict``: nothing reads a table that has one.
    """

    connection: apsw.Connection
    state: SchemaState
    strict: bool = False
    columns: set[tuple[str, str]] = field(default_factory=set)

    def add(self, table: Table, columns: set[Column]) -> None:
        """These columns hold a commit timestamp that is not known yet."""
        self.columns |= {(table.name.casefold(), c.name.casefold()) for c in columns}

    def refuse_returned(self, returning: Returning, table: Table) -> None:
        """THEN RETURN cannot show a commit timestamp that is not known yet."""
        for column in commit_columns(table):
            waits = (table.name.casefold(), column.name.casefold()) in self.columns
            if waits and any(quote_name(column.name) in text for text in returning.expressions):
                raise misplaced_pending_timestamp()

    def refuse_future(self, table: Table, column: Column, moment: Moment) -> None:
        """An explicit timestamp must not lie in the future."""
        name = quote_name(column.name)
        row = self.connection.execute(
            f'SELECT {name} FROM {current_table(table.name)} WHERE "$ts" = ? AND {name} > ? '
            f"AND {name} <> ? LIMIT 1",
            (moment.micros, moment.now, PENDING_TEXT),
        ).fetchone()
        if row is not None:
            raise future_timestamp(str(row[0]))

    def is_key_column(self, table: str, column: str) -> bool:
        """Whether a column is part of its table's key: no row can be found before it is known."""
        owner = self.state.schema.table(table)
        return owner is not None and column in {p.column.casefold() for p in owner.primary_key}

    def refuse_target(self, statement: Insert | Update | Delete) -> None:
        """An UPDATE or DELETE reads its table, and an INSERT the tables of its query."""
        if not self.strict:
            return
        if isinstance(statement, Insert):
            self.refuse_query(statement.rows_sql)
            return
        read = {name.casefold() for name in (statement.table, *statement.tables)}
        for table, _ in sorted(self.columns):
            if table in read:
                raise pending_read(table)

    def refuse_query(self, sql: str) -> None:
        """A query must not read a commit timestamp that is not known yet."""
        if not self.columns:
            return
        read = self.state.columns_read(self.connection, sql)
        tables = {name for name, _ in read}
        for table, column in sorted(self.columns):
            whole = self.is_key_column(table, column) and f"t${table}" in tables
            if self.strict and f"t${table}" in tables:
                raise pending_read(table)
            if whole or (f"t${table}", column) in read:
                raise pending_read(f"{table}.{column}")


def commit_columns(table: Table) -> list[Column]:
    """The columns that may hold commit timestamps."""
    return [c for c in table.columns if c.allow_commit_timestamp]


def misplaced_pending_timestamp() -> SpannerError:
    """PENDING_COMMIT_TIMESTAMP() would be read."""
    return invalid_argument(
        "The PENDING_COMMIT_TIMESTAMP() function may only be used as a value for INSERT or UPDATE "
        "of an appropriately typed column. It cannot be used in SELECT, or as the input to any "
        "other scalar expression."
    )
