"""The rows of INFORMATION_SCHEMA about schemas, tables, columns and indexes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from emulator.catalog.managed_indexes import all_managed_indexes
from emulator.values.columns import View
from emulator.values.system_tables import VIEWS, Row
from spanner_schema.model.column_types import Type
from spanner_schema.model.names import split_name
from spanner_schema.model.schema import Column, Index, KeyPart, Schema, Table
from spanner_schema.syntax.protos import KIND as PROTO_BUNDLE
from spanner_schema.syntax.render import render_type
from spanner_schema.syntax.search_indexes import SearchIndex, list_search_indexes
from spanner_schema.syntax.vector_indexes import VectorIndex, list_vector_indexes


def yes_or_no(value: bool) -> str:
    """YES or NO, as INFORMATION_SCHEMA writes a BOOL."""
    return "YES" if value else "NO"


def schemata(schema: Schema) -> Iterator[Row]:
    """The default schema, INFORMATION_SCHEMA, SPANNER_SYS and the named ones."""
    bundle = next((item.text for item in schema.verbatim if item.kind == PROTO_BUNDLE), None)
    for name in ("", "INFORMATION_SCHEMA", "SPANNER_SYS", *schema.named_schemas):
        yield "", name, None, None if name else bundle


def database_options(schema: Schema) -> Iterator[Row]:
    """database_dialect and what ALTER DATABASE set."""
    dialect = {"googlesql": "GOOGLE_STANDARD_SQL"}.get(schema.dialect.value, "POSTGRESQL")
    yield "", "", "database_dialect", "STRING", dialect
    for name, value in schema.options.items():
        yield "", "", name, "STRING", value.strip("'\"")


def tables(schema: Schema) -> Iterator[Row]:
    """User tables, then the views of INFORMATION_SCHEMA."""
    for table in schema.tables:
        owner, name = split_name(table.name)
        parent, action, kind = None, None, None
        if table.interleave is not None:
            parent = split_name(table.interleave.parent)[1]
            kind = "IN PARENT" if table.interleave.enforced else "IN"
            action = table.interleave.on_delete.value if table.interleave.enforced else None
        policy = table.row_deletion_policy
        rule = f"OLDER_THAN({policy.column}, INTERVAL {policy.days} DAY)" if policy else None
        yield "", owner, name, "BASE TABLE", parent, action, "COMMITTED", kind, rule
    for _, synonym in list_synonyms(schema):
        yield "", *split_name(synonym), "SYNONYM", None, None, None, None, None
    for item in schema.verbatim:
        if item.kind == "VIEW":
            yield "", *split_name(item.name), "VIEW", None, None, None, None, None
    for name in VIEWS:
        yield "", *split_name(name), "VIEW", None, None, None, None, None


def list_synonyms(schema: Schema) -> Iterator[tuple[str, str]]:
    """Each table that has a synonym, and the synonym."""
    return ((table.name, synonym) for table in schema.tables for synonym in table.synonyms)


def table_synonyms(schema: Schema) -> Iterator[Row]:
    """The synonyms of tables."""
    for table, synonym in list_synonyms(schema):
        yield "", *split_name(table), "", *split_name(synonym)


def columns(schema: Schema) -> Iterator[Row]:
    """The columns of user tables, then those of the views."""
    for table in schema.tables:
        for number, column in enumerate(table.columns, 1):
            yield "", *split_name(table.name), *column_row(column, number)
    for name, listed in VIEWS.items():
        for number, (column_name, type_) in enumerate(listed, 1):
            column = Column(column_name, type_)
            row = column_row(column, number)
            yield "", *name.split(".", maxsplit=1), *row[:10], None, *row[11:]


def user_view_columns(user_views: Mapping[str, View]) -> Iterator[Row]:
    """The columns of the database's own views."""
    for name, listed in user_views.items():
        for number, (column_name, type_) in enumerate(listed, 1):
            yield "", *split_name(name), *column_row(Column(column_name, type_), number)


def information_type(type_: Type) -> str:
    """A type as SPANNER_TYPE shows it: as in DDL, but for messages and enums."""
    if type_.proto_name is not None:
        return f"{type_.code.value}<{type_.proto_name}>"
    if type_.element is not None and type_.element.proto_name is not None:
        return f"ARRAY<{information_type(type_.element)}>"
    return render_type(type_)


def spanner_type(column: Column) -> str:
    """The type of a column, as ``information_type``."""
    return information_type(column.type)


def column_row(column: Column, number: int) -> Row:
    """A row of COLUMNS, from the column's name on."""
    identity = column.identity
    skip = identity.skip_range if identity and identity.skip_range else (None, None)
    start = identity.start_counter if identity else None
    return (
        column.name,
        number,
        column.default,
        None,
        yes_or_no(not column.not_null),
        spanner_type(column),
        "ALWAYS" if column.generated is not None else "NEVER",
        column.generated,
        yes_or_no(column.stored) if column.generated is not None else None,
        int(column.hidden),
        "COMMITTED",
        yes_or_no(identity is not None),
        "BY DEFAULT" if identity else None,
        "BIT_REVERSED_POSITIVE_SEQUENCE" if identity else None,
        None if start is None else str(start),
        None if skip[0] is None else str(skip[0]),
        None if skip[1] is None else str(skip[1]),
        column.on_update,
    )


def column_options(schema: Schema) -> Iterator[Row]:
    """allow_commit_timestamp and other options."""
    for table in schema.tables:
        for column in table.columns:
            where = ("", *split_name(table.name), column.name)
            if column.allow_commit_timestamp:
                yield *where, "allow_commit_timestamp", "BOOL", "TRUE"
            for name, value in column.options:
                yield *where, name, "STRING", value.strip("'\"")


def primary_key(table: Table) -> Index:
    """The primary key as an index."""
    return Index("PRIMARY_KEY", table.name, table.primary_key, unique=True)


def all_indexes(schema: Schema) -> Iterator[tuple[Table, Index, str]]:
    """Every index with its table and INDEX_TYPE, the primary keys first."""
    for table in schema.tables:
        yield table, primary_key(table), "PRIMARY_KEY"
    for table, index in all_managed_indexes(schema):
        yield table, index, "INDEX"
    for index in schema.indexes:
        indexed = schema.table(index.table)
        if indexed is not None:
            yield indexed, index, "INDEX"
    for vectors in list_vector_indexes(schema):
        indexed = schema.table(vectors.table)
        if indexed is not None:
            yield indexed, vector_index(vectors), "VECTOR"
    for tokens in list_search_indexes(schema):
        indexed = schema.table(tokens.table)
        if indexed is not None:
            yield indexed, search_index(tokens), "SEARCH"


def search_index(index: SearchIndex) -> Index:
    """A search index as the views show it: its keys are the tokens."""
    return Index(
        index.name,
        index.table,
        tuple(map(KeyPart, index.columns)),
        index.storing,
        where_not_null=index.where_not_null,
        interleave_in=index.interleave_in,
    )


def vector_index(index: VectorIndex) -> Index:
    """A vector index as the views show it."""
    return Index(
        index.name,
        index.table,
        tuple(map(KeyPart, index.columns)),
        index.storing,
        where_not_null=(index.not_null,) if index.not_null is not None else (),
    )


def indexes(schema: Schema) -> Iterator[Row]:
    """Primary keys and secondary indexes."""
    managed = {index.name for _, index in all_managed_indexes(schema)}
    searched = {index.name: index for index in list_search_indexes(schema)}
    for table, index, kind in all_indexes(schema):
        state = None if kind == "PRIMARY_KEY" else "READ_WRITE"
        where = " AND ".join(f"{name} IS NOT NULL" for name in index.where_not_null) or None
        yield (
            "",
            *split_name(table.name),
            split_name(index.name)[1],
            kind,
            split_name(index.interleave_in)[1] if index.interleave_in else "",
            int(index.unique),
            int(index.null_filtered),
            state,
            int(index.name in managed),
            where,
            *search_keys(searched.get(index.name)),
        )


def search_keys(index: SearchIndex | None) -> tuple[str | None, str | None]:
    """PARTITION BY and ORDER BY of a search index, as arrays; None of other indexes."""
    if index is None:
        return None, None
    ordered = [part.column + (" DESC" if part.descending else "") for part in index.order_by]
    return json.dumps([part.column for part in index.partition_by]), json.dumps(ordered)


def index_columns(schema: Schema, show: Callable[[Column], str] = spanner_type) -> Iterator[Row]:
    """Key parts with their order; stored columns have none. ``show`` writes a column's type."""
    for table, index, kind in all_indexes(schema):
        ascending = None if kind in {"VECTOR", "SEARCH"} else "ASC"
        parts = [
            (p.column, n, "DESC" if p.descending else ascending)
            for n, p in enumerate(index.parts, 1)
        ]
        stored = [(name, None, None) for name in index.storing]
        for name, number, order in [*parts, *stored]:
            column = table.column(name)
            if column is None:
                continue
            filtered = index.null_filtered or name in index.where_not_null
            nullable = yes_or_no(not column.not_null and not (filtered and number is not None))
            yield (
                "",
                *split_name(table.name),
                split_name(index.name)[1],
                kind,
                column.name,
                number,
                order,
                nullable,
                show(column),
            )
