"""Rows of INFORMATION_SCHEMA, as texts -> the schema that they describe."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.errors import DdlSyntaxError
from spanner_schema.model.names import join_name
from spanner_schema.model.schema import (
    ChangeStream,
    ChangeStreamTable,
    Column,
    Dialect,
    Index,
    Interleave,
    KeyPart,
    OnDelete,
    Schema,
    Table,
)
from spanner_schema.syntax.clauses import read_not_null_columns
from spanner_schema.syntax.googlesql import types
from spanner_schema.syntax.postgres import types as postgres_types
from spanner_schema.syntax.reader import TokenReader
from spanner_schema.syntax.tokens import TokenKind

Row = tuple[str | None, ...]
Name = tuple[str | None, ...]
PRIMARY_KEY = "PRIMARY_KEY"
INDEX_TYPES = ("INDEX", "LOCAL", "GLOBAL")
"""What secondary indexes are called; the last two in the PostgreSQL dialect."""


def build_schema(texts: Iterable[str], dialect: Dialect = Dialect.GOOGLESQL) -> Schema:
    """The schema that the texts of ``schema_reader.render_lines`` describe. Tables, indexes
    and change streams are in the order of their names; columns that are written but cannot be read
    yet, indexes under backfill and those that Spanner manages are left out."""
    rows: dict[str, list[Row]] = defaultdict(list)
    for text in texts:
        kind, *values = parse_fields(text)
        rows[kind or ""].append(tuple(values))
    tables = tuple(sorted(build_tables(rows, dialect), key=lambda table: table.name))
    by_name = {table.name: table for table in tables}
    return Schema(
        dialect,
        tables=tables,
        indexes=tuple(sorted(build_indexes(rows, by_name), key=lambda index: index.name)),
        change_streams=tuple(sorted(build_streams(rows, by_name), key=lambda stream: stream.name)),
    )


def parse_fields(text: str) -> Row:
    """The values of a row: ``-`` is NULL, any other begins with its length and a colon."""
    values: list[str | None] = []
    offset = 0
    while offset < len(text):
        if text[offset] == "-":
            values.append(None)
            offset += 1
            continue
        colon = text.index(":", offset)
        end = colon + 1 + int(text[offset:colon])
        values.append(text[colon + 1 : end])
        offset = end
    return tuple(values)


def group_rows(rows: Iterable[Row], width: int) -> dict[Name, list[Row]]:
    """Rows by the name that their first columns make; the rest of each."""
    groups: dict[Name, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[:width]].append(row[width:])
    return groups


def is_yes(value: str | None) -> bool:
    """True for YES and TRUE: Spanner's views write one or the other."""
    return (value or "").upper() in ("YES", "TRUE")


def is_ready(state: str | None, ready: str) -> bool:
    """True for what has no state, or is in the last one of its backfill."""
    return not state or state == ready


def build_tables(rows: Mapping[str, list[Row]], dialect: Dialect) -> Iterable[Table]:
    """The tables that can be written."""
    columns = group_rows(rows["column"], 2)
    options = group_rows(rows["column option"], 3)
    keys = group_rows(rows["index column"], 4)
    names = {join_name(row[0], row[1] or "") for row in rows["table"]}
    for schema, name, parent, on_delete, kind, state in rows["table"]:
        if not is_ready(state, "COMMITTED"):
            continue
        ordered = sorted(columns[schema, name], key=lambda row: int(row[1] or 0))
        yield Table(
            join_name(schema, name or ""),
            tuple(
                build_column(row, options[schema, name, row[0]], dialect)
                for row in ordered
                if is_ready(row[-1], "COMMITTED")
            ),
            build_key_parts(keys[schema, name, PRIMARY_KEY, PRIMARY_KEY]),
            build_interleave(resolve_sibling(schema, parent, names), on_delete, kind),
        )


def build_column(row: Row, options: list[Row], dialect: Dialect) -> Column:
    """A column with its options."""
    name, _, type_, nullable, generated, stored, hidden, _ = row
    values = {option or "": render_option(kind, value) for option, kind, value in options}
    option = values.pop("allow_commit_timestamp", "").lower() == "true"
    column_type, commit = read_type(type_ or "", dialect)
    return Column(
        name or "",
        column_type,
        not_null=not is_yes(nullable),
        generated=unwrap_expression(generated) if generated is not None else None,
        stored=generated is not None and is_yes(stored),
        hidden=is_yes(hidden),
        allow_commit_timestamp=commit or option,
        options=tuple(sorted(values.items())),
    )


@lru_cache(maxsize=4_096)
def read_type(text: str, dialect: Dialect) -> tuple[Type, bool]:
    """A type from its text, and whether it is that of commit timestamps; an unknown one is a STRUCT
    of that name: no column is one, and it is not readable."""
    reader = TokenReader(text)
    try:
        type_ = READ_TYPE[dialect](reader)
        reader.expect_end()
    except DdlSyntaxError:
        return Type(TypeCode.STRUCT, proto_name=text), False
    return type_


READ_TYPE: Mapping[Dialect, Callable[[TokenReader], tuple[Type, bool]]] = {
    Dialect.GOOGLESQL: lambda reader: (types.read_type(reader), False),
    Dialect.POSTGRESQL: postgres_types.read_type,
}


def unwrap_expression(expression: str) -> str:
    """An expression without the parentheses around all of it."""
    if not expression.startswith("("):
        return expression
    reader = TokenReader(expression)
    inner = reader.read_parenthesized()
    return inner if reader.token.kind is TokenKind.END else expression


def render_option(kind: str | None, value: str | None) -> str:
    """The value of an option as DDL writes it."""
    text = value or ""
    if kind == "BOOL":
        return text.lower()
    return text if kind != "STRING" or text[:1] in ("'", '"') else f"'{text}'"


def resolve_sibling(schema: str | None, name: str | None, names: set[str]) -> str:
    """The table that a table or an index is interleaved in. Spanner gives only its name: it is
    in the same named schema where that has a table of the name."""
    own = join_name(schema, name or "")
    return own if own in names else name or ""


def build_interleave(parent: str, on_delete: str | None, kind: str | None) -> Interleave | None:
    """INTERLEAVE IN [PARENT], if the table is interleaved."""
    if not parent:
        return None
    action = OnDelete.CASCADE if on_delete == OnDelete.CASCADE.value else OnDelete.NO_ACTION
    return Interleave(parent, action, enforced=kind != "IN")


def build_key_parts(columns: list[Row]) -> tuple[KeyPart, ...]:
    """The key columns of an index in their order; stored columns have none."""
    keys = [row for row in columns if row[1] is not None]
    ordered = sorted(keys, key=lambda row: int(row[1] or 0))
    return tuple(KeyPart(row[0] or "", row[2] == "DESC") for row in ordered)


def build_indexes(rows: Mapping[str, list[Row]], tables: Mapping[str, Table]) -> Iterable[Index]:
    """The secondary indexes that can be read."""
    columns = group_rows(rows["index column"], 4)
    for row in rows["index"]:
        schema, table, name, type_, parent, unique, null_filtered, state, managed, where = row
        indexed = tables.get(join_name(schema, table or ""))
        ready = is_ready(state, "READ_WRITE")
        if type_ not in INDEX_TYPES or is_yes(managed) or not ready or indexed is None:
            continue
        listed = columns[schema, table, name, type_]
        filtered = () if is_yes(null_filtered) else find_filter_columns(indexed, listed, where)
        yield Index(
            join_name(schema, name or ""),
            indexed.name,
            build_key_parts(listed),
            storing=tuple(sorted(row[0] or "" for row in listed if row[1] is None)),
            unique=is_yes(unique),
            null_filtered=is_yes(null_filtered),
            where_not_null=filtered,
            interleave_in=resolve_sibling(schema, parent, set(tables)) or None,
        )


def find_filter_columns(table: Table, columns: list[Row], where: str | None) -> tuple[str, ...]:
    """The columns of WHERE c IS NOT NULL AND ...: from the text where there is one, else the key
    columns that may be NULL in the table and not in the index."""
    if where:
        return read_not_null_columns(TokenReader(where.replace("(", " ").replace(")", " ")))
    names = (row[0] or "" for row in columns if row[1] is not None and row[3] == "NO")
    return tuple(name for name in names if (c := table.column(name)) and not c.not_null)


def build_streams(
    rows: Mapping[str, list[Row]], tables: Mapping[str, Table]
) -> Iterable[ChangeStream]:
    """The change streams."""
    watched = group_rows(rows["watched table"], 2)
    columns = group_rows(rows["watched column"], 4)
    options = group_rows(rows["stream option"], 2)
    for schema, name, for_all in rows["change stream"]:
        watches = []
        for table_schema, table, whole in watched[schema, name]:
            full = join_name(table_schema, table or "")
            named = {row[0] for row in columns[schema, name, table_schema, table]}
            existing = tables.get(full)
            listed = [c.name for c in existing.columns if c.name in named] if existing else ()
            watches.append(ChangeStreamTable(full, None if is_yes(whole) else tuple(listed)))
        stream_options = (
            (option or "", render_option(kind, value))
            for option, kind, value in options[schema, name]
        )
        yield ChangeStream(
            join_name(schema, name or ""),
            tuple(sorted(watches, key=lambda each: each.table)),
            is_yes(for_all),
            tuple(sorted(stream_options)),
        )
