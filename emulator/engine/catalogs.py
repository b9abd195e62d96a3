"""Answers of INFORMATION_SCHEMA: filled once for each version of the schema, and remembered.

Nothing but the schema and the parameters goes into them, so a query that is asked again within one
version (by readers that look for schema changes, at ever new timestamps) has its answer ready.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping

import apsw

from emulator.catalog.database import VIEW_COLUMNS, fill, open_catalog
from emulator.engine.privileges import Rights
from emulator.engine.query_stats import QueryStats
from emulator.engine.results import collect_rows, rows_in_memory
from emulator.engine.state import SchemaState
from emulator.engine.view_rules import view_columns
from emulator.sql.functions.text import RANDOM
from emulator.sql.statements import CompiledQuery
from emulator.storage.sqlite import StorageReader
from emulator.values.columns import View
from emulator.values.requests import ResultRows, Stats, Stored
from spanner_schema.model.schema import Schema
from spanner_schema.syntax.views import list_views

SCHEMAS_MAX = 4
ANSWERS_MAX = 64
ROWS_MAX = 20_000
"""An answer of more rows is not remembered."""

DRAWS = ("random()", *RANDOM)
"""What gives another answer each time, as SQLite text."""
SYSTEM = "SPANNER_SYS."

Row = tuple[Stored, ...]
Key = tuple[str, tuple[tuple[str, str, Stored], ...]]


class Catalog:
    """The catalog of one schema. Thread-safe."""

    def __init__(self, schema: Schema, database: str) -> None:
        self._schema = schema
        self._database = database
        self._lock = threading.Lock()
        self._answers: OrderedDict[Key, list[Row]] = OrderedDict()
        self._filled: set[str] = set()
        self._connection = open_catalog()

    def rows(self, statement: CompiledQuery, values: Mapping[str, Stored]) -> ResultRows:
        """The answer to a query over INFORMATION_SCHEMA, from memory where it was asked before."""
        # 1, 1.0 and TRUE are equal in Python, but not in an answer.
        key = (
            statement.sql,
            tuple((name, type(value).__name__, value) for name, value in sorted(values.items())),
        )
        with self._lock:
            answer = self._answers.get(key)
            if answer is not None:
                self._answers.move_to_end(key)
            else:
                answer = self._ask(statement, values)
                self._remember(key, answer)
        return rows_in_memory(statement.columns, answer, Stats())

    def _ask(self, statement: CompiledQuery, values: Mapping[str, Stored]) -> list[Row]:
        """The rows from SQLite; tables that no query has read before are filled first."""
        missing = [name for name in statement.catalog if name not in self._filled]
        if missing:
            views_read = user_views(self._schema, missing)
            fill(self._connection, self._schema, missing, views_read, catalog=self._database)
            self._filled.update(missing)
        return fetch_rows(self._connection, self._schema, statement, values)

    def _remember(self, key: Key, answer: list[Row]) -> None:
        """Keeps an answer that will be the same the next time."""
        if len(answer) > ROWS_MAX or any(name in key[0] for name in DRAWS):
            return
        self._answers[key] = answer
        if len(self._answers) > ANSWERS_MAX:
            self._answers.popitem(last=False)


class Catalogs:
    """The catalogs of the schemas that were asked for last. Thread-safe."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._catalogs: OrderedDict[tuple[int, Rights | None], Catalog] = OrderedDict()

    def rows(
        self,
        state: SchemaState,
        statement: CompiledQuery,
        values: Mapping[str, Stored],
        stats: QueryStats,
        rights: Rights | None = None,
    ) -> ResultRows:
        """A query over INFORMATION_SCHEMA or SPANNER_SYS, without the database's file.

        It sees what ``rights`` are for; None: everything.
        """
        if any(name.startswith(SYSTEM) for name in statement.catalog):
            return system_rows(state.schema, statement, values, stats)
        return self._catalog(state, rights).rows(statement, values)

    def _catalog(self, state: SchemaState, rights: Rights | None) -> Catalog:
        limited = None if rights is None or rights.reads_whole_catalog else rights
        key = (state.since, limited)
        with self._lock:
            catalog = self._catalogs.pop(key, None)
            if catalog is None:
                schema = state.schema
                seen = limited.limit_schema(schema) if limited else schema
                catalog = Catalog(seen, self._database)
            self._catalogs[key] = catalog
            if len(self._catalogs) > SCHEMAS_MAX:
                self._catalogs.popitem(last=False)
        return catalog


def system_rows(
    schema: Schema, statement: CompiledQuery, values: Mapping[str, Stored], stats: QueryStats
) -> ResultRows:
    """A query that reads statistics: they are never the same."""
    connection = open_catalog()
    try:
        views_read = user_views(schema, statement.catalog)
        fill(connection, schema, statement.catalog, views_read, stats.table)
        return rows_in_memory(
            statement.columns, fetch_rows(connection, schema, statement, values), Stats()
        )
    finally:
        connection.close()


def fetch_rows(
    connection: apsw.Connection,
    schema: Schema,
    statement: CompiledQuery,
    values: Mapping[str, Stored],
) -> list[Row]:
    """The rows of a query over a filled catalog."""
    reader = StorageReader(connection, [0])
    return list(collect_rows(reader, statement.sql, values, statement.columns, schema).rows)


def user_views(schema: Schema, names: Collection[str]) -> dict[str, View]:
    """The columns of the database's own views, where a table is read that has them."""
    if VIEW_COLUMNS not in names:
        return {}
    return {view.name: view_columns(schema, view) for view in list_views(schema)}
