"""The rows of information_schema in the PostgreSQL dialect: names of types, schema public."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ddl.render import render_type
from ddl.schema import Column, Dialect, Schema, Table, Type, TypeCode
from emulator.catalog import tables
from emulator.values.columns import View
from emulator.values.postgres_tables import POSTGRES_VIEWS
from emulator.values.system_tables import Row

PUBLIC = "public"
COMMIT_TIMESTAMP = "spanner.commit_timestamp"


def split_name(name: str) -> tuple[str, str]:
    """A name as schema and object."""
    schema, last = tables.split_name(name)
    return schema or PUBLIC, last


def schemata(schema: Schema) -> Iterator[Row]:
    """The schemas."""
    for name in (PUBLIC, "information_schema", "spanner_sys", *schema.named_schemas):
        yield "", name, None


def table_rows(schema: Schema) -> Iterator[Row]:
    """User tables and views, then the tables of information_schema."""
    for catalog, owner, *rest in tables.tables(schema):
        if owner not in {"INFORMATION_SCHEMA", "SPANNER_SYS"}:
            name, kind, parent, action, state, interleave, _ = rest
            table = schema.table(".".join(filter(None, (str(owner), str(name)))))
            policy = table.row_deletion_policy if table is not None else None
            rule = None
            if policy is not None:
                rule = f"INTERVAL '{policy.interval or f'{policy.days} days'}' ON {policy.column}"
            yield catalog, owner or PUBLIC, name, kind, parent, action, state, interleave, rule
    for view in POSTGRES_VIEWS:
        owner, name = view.lower().split(".")
        yield "", owner, name, "VIEW", None, None, None, None, None


def column_rows(schema: Schema) -> Iterator[Row]:
    """The columns of user tables, then those of information_schema."""
    for table in schema.tables:
        for number, column in enumerate(table.columns, 1):
            yield "", *split_name(table.name), *column_row(column, number)
    for view, columns in POSTGRES_VIEWS.items():
        owner, name = view.lower().split(".")
        for number, (column_name, type_) in enumerate(columns, 1):
            row = column_row(Column(column_name, type_), number)
            yield "", owner, name, *row[:-1], None


def user_view_columns(user_views: Mapping[str, View]) -> Iterator[Row]:
    """The columns of the database's own views."""
    for name, listed in user_views.items():
        for number, (column_name, type_) in enumerate(listed, 1):
            yield "", *split_name(name), *column_row(Column(column_name, type_), number)


def column_row(column: Column, number: int) -> Row:
    """A row of columns, from the column's name on."""
    type_, generated = column.type, column.generated is not None
    return (
        column.name,
        number,
        column.default,
        tables.yes_or_no(not column.not_null),
        "ARRAY" if type_.element is not None else spell(Type(type_.code)),
        type_.length if type_.code is TypeCode.STRING else None,
        tables.yes_or_no(column.identity is not None),
        "ALWAYS" if generated else "NEVER",
        column.generated,
        tables.yes_or_no(column.stored) if generated else None,
        COMMIT_TIMESTAMP if column.allow_commit_timestamp else spell(type_),
        "COMMITTED",
    )


def spell(type_: Type) -> str:
    """A type as the dialect writes it."""
    return render_type(type_, Dialect.POSTGRESQL)


def index_rows(schema: Schema) -> Iterator[Row]:
    """Primary keys and secondary indexes."""
    for catalog, owner, *rest in tables.indexes(schema):
        table, index, kind, parent, unique, filtered, state, managed, where = rest
        flags = [tables.yes_or_no(bool(flag)) for flag in (unique, filtered or where)]
        owned = tables.yes_or_no(bool(managed))
        yield catalog, owner or PUBLIC, table, index, kind, parent, *flags, state, owned, where


def index_column_rows(schema: Schema) -> Iterator[Row]:
    """Key parts with their order; stored columns have none."""
    for (
        catalog,
        owner,
        table_name,
        index,
        kind,
        name,
        number,
        order,
        nullable,
        _,
    ) in tables.index_columns(schema):
        table = owner_of(schema, str(owner), str(table_name))
        column = table.column(str(name)) if table is not None else None
        type_ = spell(column.type) if column is not None else None
        if column is not None and column.allow_commit_timestamp:
            type_ = COMMIT_TIMESTAMP
        place = (catalog, owner or PUBLIC, table_name, index, kind)
        yield *place, name, number, order, nullable, type_


def owner_of(schema: Schema, owner: str, name: str) -> Table | None:
    """The table of a row."""
    return schema.table(f"{owner}.{name}" if owner else name)


POSTGRES_CONTENTS: dict[str, Callable[[Schema], Iterator[Row]]] = {
    "INFORMATION_SCHEMA.SCHEMATA": schemata,
    "INFORMATION_SCHEMA.DATABASE_OPTIONS": tables.database_options,
    "INFORMATION_SCHEMA.TABLES": table_rows,
    "INFORMATION_SCHEMA.COLUMNS": column_rows,
    "INFORMATION_SCHEMA.INDEXES": index_rows,
    "INFORMATION_SCHEMA.INDEX_COLUMNS": index_column_rows,
}
