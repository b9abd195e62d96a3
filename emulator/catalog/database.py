"""INFORMATION_SCHEMA: what a schema says of itself, as tables of an SQLite in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import apsw

from ddl.schema import Schema
from emulator import errors
from emulator.catalog import constraints, objects, tables
from emulator.catalog.views import VIEWS, Row, View
from emulator.sql.functions import register
from emulator.sql.types import quote_name

CONTENTS: dict[str, Callable[[Schema], Iterator[Row]]] = {
    f"INFORMATION_SCHEMA.{name}": fill
    for name, fill in {
        "SCHEMATA": tables.schemata,
        "DATABASE_OPTIONS": tables.database_options,
        "TABLES": tables.tables,
        "COLUMNS": tables.columns,
        "COLUMN_OPTIONS": tables.column_options,
        "INDEXES": tables.indexes,
        "INDEX_COLUMNS": tables.index_columns,
        "TABLE_CONSTRAINTS": constraints.table_constraints,
        "KEY_COLUMN_USAGE": constraints.key_column_usage,
        "CONSTRAINT_TABLE_USAGE": constraints.constraint_table_usage,
        "CONSTRAINT_COLUMN_USAGE": constraints.constraint_column_usage,
        "CHECK_CONSTRAINTS": constraints.check_constraints,
        "REFERENTIAL_CONSTRAINTS": constraints.referential_constraints,
        "VIEWS": objects.view_rows,
        "SEQUENCES": objects.sequence_rows,
        "SEQUENCE_OPTIONS": objects.sequence_option_rows,
        "CHANGE_STREAMS": objects.change_streams,
        "CHANGE_STREAM_OPTIONS": objects.change_stream_options,
        "CHANGE_STREAM_TABLES": objects.change_stream_tables,
        "CHANGE_STREAM_COLUMNS": objects.change_stream_columns,
    }.items()
}


def connection(
    schema: Schema,
    wanted: Sequence[str],
    user_views: Mapping[str, View] | None = None,
    system: Callable[[str], Iterable[Row]] | None = None,
) -> apsw.Connection:
    """A new SQLite in memory that holds these views, filled.

    ``user_views`` are the columns of the database's own views, by their names. ``system`` gives
    the rows of a table of SPANNER_SYS.
    """
    database = apsw.Connection(":memory:")
    register(database)
    for name in wanted:
        columns = VIEWS[name]
        listed = ", ".join(quote_name(column) for column, _ in columns)
        database.execute(f"CREATE TABLE {quote_name(name)} ({listed})")
        if name in CONTENTS:
            found = list(CONTENTS[name](schema))
        elif system is not None and name.startswith("SPANNER_SYS."):
            found = list(system(name))
        else:
            raise errors.unimplemented(name)
        marks = ", ".join("?" * len(columns))
        database.executemany(f"INSERT INTO {quote_name(name)} VALUES ({marks})", found)
        if name == "INFORMATION_SCHEMA.COLUMNS":
            rows = list(tables.user_view_columns(user_views or {}))
            database.executemany(f"INSERT INTO {quote_name(name)} VALUES ({marks})", rows)
    return database
