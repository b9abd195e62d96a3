"""INFORMATION_SCHEMA: the description of a schema, as tables of a SQLite database in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import apsw

from emulator.catalog import constraints, models, objects, property_graphs, routines, tables
from emulator.catalog.postgres import POSTGRES_CONTENTS, user_view_columns
from emulator.catalog.privileges import GOOGLESQL_PRIVILEGES
from emulator.sql.functions import register
from emulator.values.columns import View
from emulator.values.postgres_tables import POSTGRES_VIEWS
from emulator.values.sqlite_text import quote_name
from emulator.values.system_tables import VIEWS, Row
from spanner_schema.model.column_types import Type
from spanner_schema.model.schema import Dialect, Schema

CONTENTS: dict[str, Callable[[Schema], Iterator[Row]]] = {
    f"INFORMATION_SCHEMA.{name}": fill
    for name, fill in {
        "SCHEMATA": tables.schemata,
        "DATABASE_OPTIONS": tables.database_options,
        "TABLES": tables.tables,
        "TABLE_SYNONYMS": tables.table_synonyms,
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
        "PLACEMENTS": objects.placement_rows,
        "PLACEMENT_OPTIONS": objects.placement_option_rows,
        "PROPERTY_GRAPHS": property_graphs.property_graph_rows,
        "MODELS": models.model_rows,
        "MODEL_OPTIONS": models.model_option_rows,
        "MODEL_COLUMNS": models.model_column_rows,
        "MODEL_COLUMN_OPTIONS": models.model_column_option_rows,
        "LOCALITY_GROUP_OPTIONS": objects.locality_group_option_rows,
        "SPANNER_STATISTICS": objects.statistics_rows,
        "CHANGE_STREAMS": objects.change_streams,
        "CHANGE_STREAM_OPTIONS": objects.change_stream_options,
        "CHANGE_STREAM_TABLES": objects.change_stream_tables,
        "CHANGE_STREAM_COLUMNS": objects.change_stream_columns,
        "ROLES": routines.role_rows,
        "ROUTINES": routines.routine_rows,
        "PARAMETERS": routines.parameter_rows,
        "COLUMN_COLUMN_USAGE": routines.column_column_usage,
        **GOOGLESQL_PRIVILEGES,
    }.items()
}


SYSTEM, CATALOG = "SPANNER_SYS.", "CATALOG"
VIEW_COLUMNS = "INFORMATION_SCHEMA.COLUMNS"
"""The table that also lists the columns of the database's own views."""


def open_catalog() -> apsw.Connection:
    """A new SQLite in memory, for the tables of a catalog."""
    database = apsw.Connection(":memory:")
    register(database)
    return database


def fill(
    database: apsw.Connection,
    schema: Schema,
    names: Iterable[str],
    user_views: Mapping[str, View],
    system: Callable[[str], Iterable[Row]] | None = None,
    catalog: str = "",
) -> None:
    """Creates and fills tables of the catalog.

    ``user_views`` are the columns of the database's own views, by their names. ``system`` gives
    the rows of a table of SPANNER_SYS; ``catalog`` is what the PostgreSQL dialect calls the
    catalog, the database. A table about what this server does not have is empty.
    """
    postgres = schema.dialect is Dialect.POSTGRESQL
    contents = POSTGRES_CONTENTS if postgres else CONTENTS
    list_columns = user_view_columns if postgres else tables.user_view_columns
    for name in names:
        columns = POSTGRES_VIEWS[name] if postgres else VIEWS[name]
        listed = ", ".join(quote_name(column) for column, _ in columns)
        database.execute(f"CREATE TABLE {quote_name(name)} ({listed})")
        if name in contents:
            rows = list(contents[name](schema))
        else:
            rows = list(system(name)) if system is not None and name.startswith(SYSTEM) else []
        if name == VIEW_COLUMNS:
            rows += list_columns(user_views)
        if postgres:
            rows = [name_catalog(columns, row, catalog) for row in rows]
        marks = ", ".join("?" * len(columns))
        with database:
            database.executemany(f"INSERT INTO {quote_name(name)} VALUES ({marks})", rows)


def name_catalog(columns: Iterable[tuple[str, Type]], row: Row, catalog: str) -> Row:
    """A row in which the catalog, which is without a name in GoogleSQL, has one."""
    return tuple(
        catalog if value == "" and CATALOG in name.upper() else value
        for (name, _), value in zip(columns, row, strict=True)
    )
