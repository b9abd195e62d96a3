"""Which columns a statement reads, asked of SQLite itself: for the privileges of roles."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace

import apsw
import apsw.ext

from emulator.catalog.database import open_catalog
from emulator.engine.privileges import Reads
from emulator.engine.view_rules import view_columns
from emulator.sql.compile import compile_statement
from emulator.sql.statements import CompiledQuery, Delete, Insert, Statement
from emulator.values.sqlite_text import quote_name
from spanner_schema.model.column_types import Type
from spanner_schema.model.schema import Column, Index, Schema, Table
from spanner_schema.syntax.views import list_views, read_view

STATEMENTS_MAX = 2_000


class StatementReads:
    """The tables of a schema without rows, in a SQLite of their own. Thread-safe.

    A view with the rights of its definer is a table here: who reads it needs no privilege for what
    it reads.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = hide_definers_views(schema)
        self._lock = threading.Lock()
        self._known: dict[object, Reads] = {}
        self._connection = open_catalog()
        for table in self._schema.tables:
            columns = ", ".join(quote_name(column.name) for column in table.columns)
            self._connection.execute(f"CREATE TABLE {quote_name(table.name)}({columns})")

    def find(self, text: str, types: Mapping[str, Type]) -> Reads:
        """What a valid statement reads; a table whose rows are only counted has no columns."""
        key = (text, tuple(sorted(types.items())))
        reads = self._known.get(key)
        if reads is None:
            if len(self._known) >= STATEMENTS_MAX:
                self._known.clear()
            statement = compile_statement(text, self._schema, types, table_text)
            with self._lock:
                reads = self._known[key] = self._find(statement)
        return reads

    def _find(self, statement: Statement) -> Reads:
        if isinstance(statement, CompiledQuery) and statement.catalog:
            return {}
        found: dict[str, set[str]] = {}
        for sql in list_reads(statement):
            for table, column in list_columns_read(self._connection, sql):
                found.setdefault(table, set()).update({column} - {""})
        known = {table.name.casefold() for table in self._schema.tables}
        return {name: frozenset(columns) for name, columns in found.items() if name in known}


def list_columns_read(connection: apsw.Connection, sql: str) -> frozenset[tuple[str, str]]:
    """The SQLite tables and columns that a statement reads, in lower case, asked of SQLite itself;
    an empty column stands for rows that are only counted."""
    info = apsw.ext.query_info(connection, sql, actions=True)
    return frozenset(
        (action.table_name.casefold(), action.column_name.casefold())
        for action in info.actions or ()
        if action.action_name == "SQLITE_READ"
        and action.table_name is not None
        and action.column_name is not None
    )


def table_text(table: Table, index: Index | None, alias: str) -> str:
    """A table in a FROM clause; which index reads it makes no difference."""
    return f"{quote_name(table.name)} AS {quote_name(alias)}"


def list_reads(statement: Statement) -> Iterator[str]:
    """The queries in a statement, as SQLite text."""
    if isinstance(statement, CompiledQuery):
        yield statement.sql
        return
    if isinstance(statement, Insert):
        yield statement.rows_sql
        conflict, alias, read = statement.on_conflict, statement.table.rpartition(".")[2], []
        if conflict is not None and conflict.assignments is not None:
            read = [*(sql for _, sql in conflict.assignments), conflict.where_sql]
            alias = statement.table
    else:
        alias, read = statement.alias, [statement.where_sql]
        if not isinstance(statement, Delete):
            read += [sql for _, sql in statement.assignments]
    yield from (f"SELECT {sql} FROM {name_target(statement.table, alias)}" for sql in read)
    returning = statement.returning
    if returning is not None:
        alias = statement.table if isinstance(statement, Insert) else alias
        for sql in returning.expressions:
            yield f"SELECT {sql} FROM {name_target(statement.table, alias)}"


def name_target(table: str, alias: str) -> str:
    """The table that DML writes, by the name that its expressions use."""
    return f"{quote_name(table)} AS {quote_name(alias)}"


def hide_definers_views(schema: Schema) -> Schema:
    """The schema with a table in place of each view that has the rights of its definer."""
    hidden = [
        view
        for view in list_views(schema)
        if read_view(view.text, schema.dialect).security == "DEFINER"
    ]
    if not hidden:
        return schema
    tables = [
        Table(
            view.name, tuple(Column(name, type_) for name, type_ in view_columns(schema, view)), ()
        )
        for view in hidden
    ]
    kept = tuple(item for item in schema.verbatim if item not in hidden)
    return replace(schema, tables=(*schema.tables, *tables), verbatim=kept)
