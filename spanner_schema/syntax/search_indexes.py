"""Search indexes: what CREATE and ALTER SEARCH INDEX say. A schema keeps them as text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from spanner_schema.model.errors import InvalidDefinitionError, SchemaError
from spanner_schema.model.names import same_name
from spanner_schema.model.schema import Dialect, KeyPart, Schema
from spanner_schema.syntax.clauses import Options, read_not_null_columns, read_option_list
from spanner_schema.syntax.googlesql.parts import read_options
from spanner_schema.syntax.reader import TokenReader
from spanner_schema.syntax.render import SPELLINGS

KIND = "SEARCH INDEX"
ALTER = f"ALTER {KIND}"
INCLUDED = {Dialect.GOOGLESQL: ("STORING", "STORED"), Dialect.POSTGRESQL: ("INCLUDE", "INCLUDE")}
"""The words before stored columns: in CREATE, and before COLUMN in ALTER."""


@dataclass(frozen=True, slots=True)
class SearchIndex:
    """A search index; ``columns`` are of TOKENLIST, ``options`` as they are written."""

    name: str
    table: str
    columns: tuple[str, ...]
    storing: tuple[str, ...] = ()
    partition_by: tuple[KeyPart, ...] = ()
    order_by: tuple[KeyPart, ...] = ()
    where_not_null: tuple[str, ...] = ()
    interleave_in: str | None = None
    options: Options = ()
    dialect: Dialect = Dialect.GOOGLESQL

    @property
    def text(self) -> str:
        """The statement that creates the index."""
        spelling = SPELLINGS[self.dialect]
        parts = [
            f"CREATE SEARCH INDEX {spelling.quote_name(self.name)}",
            f"ON {spelling.quote_name(self.table)}({spelling.quote_columns(self.columns)})",
        ]
        if self.storing:
            parts.append(f"{spelling.stored_columns} ({spelling.quote_columns(self.storing)})")
        for words, keys in (("PARTITION BY", self.partition_by), ("ORDER BY", self.order_by)):
            if keys:
                parts.append(f"{words} {', '.join(map(spelling.write_key_part, keys))}")
        return " ".join(parts) + self._write_end()

    def _write_end(self) -> str:
        """WHERE, INTERLEAVE IN and the options, in the order of the dialect."""
        spelling = SPELLINGS[self.dialect]
        where = spelling.write_not_null_filter(self.where_not_null)
        pairs = ", ".join(f"{name} = {value}" for name, value in self.options)
        parent = spelling.quote_name(self.interleave_in or "")
        if self.dialect is Dialect.POSTGRESQL:
            interleave = f" INTERLEAVE IN {parent}" if self.interleave_in else ""
            return interleave + where + (f" WITH ({pairs})" if pairs else "")
        interleave = f", INTERLEAVE IN {parent}" if self.interleave_in else ""
        return where + interleave + (f" OPTIONS ({pairs})" if pairs else "")


@lru_cache(maxsize=1_000)
def read_search_index(text: str, dialect: Dialect = Dialect.GOOGLESQL) -> SearchIndex:
    """Reads a whole CREATE SEARCH INDEX statement. Raises DdlSyntaxError, InvalidDefinitionError,
    SchemaError."""
    reader = TokenReader(text, dialect)
    reader.expect("CREATE", "SEARCH", "INDEX")
    name = reader.read_path("an index name")
    reader.expect("ON")
    table = reader.read_path("a table name")
    columns = read_token_columns(reader, name)
    storing = reader.read_names() if reader.accept(INCLUDED[dialect][0]) else ()
    partition_by = read_key(reader) if reader.accept("PARTITION", "BY") else ()
    order_by = read_key(reader) if reader.accept("ORDER", "BY") else ()
    index = SearchIndex(name, table, columns, storing, partition_by, order_by, dialect=dialect)
    index = read_end(reader, index)
    reader.accept(";")
    reader.expect_end()
    return index


def read_end(reader: TokenReader, index: SearchIndex) -> SearchIndex:
    """WHERE, INTERLEAVE IN and the options."""
    if reader.dialect is Dialect.POSTGRESQL:
        parent = reader.read_path("a table name") if reader.accept("INTERLEAVE", "IN") else None
        where = read_not_null_columns(reader) if reader.accept("WHERE") else ()
        options = read_option_list(reader) if reader.accept("WITH") else ()
    else:
        where = read_not_null_columns(reader) if reader.accept("WHERE") else ()
        interleaved = reader.accept(",", "INTERLEAVE", "IN")
        parent = reader.read_path("a table name") if interleaved else None
        options = read_options(reader) if reader.peek("OPTIONS") else ()
    return replace(index, where_not_null=where, interleave_in=parent, options=options)


def read_token_columns(reader: TokenReader, index: str) -> tuple[str, ...]:
    """(a, b): columns without an order."""
    reader.expect("(")
    names: list[str] = []
    while not reader.accept(")"):
        name = reader.read_name("a column name")
        if reader.peek("ASC") or reader.peek("DESC") or reader.peek("NULLS"):
            if reader.dialect is Dialect.POSTGRESQL:
                raise SchemaError(
                    "Ordering is not supported for tokenlist columns in <CREATE SEARCH INDEX>"
                    " statement."
                )
            raise InvalidDefinitionError(
                f"Token key {name} in search index {index} does not support order."
            )
        names.append(name)
        if not reader.peek(")"):
            reader.expect(",")
    return tuple(names)


def read_key(reader: TokenReader) -> tuple[KeyPart, ...]:
    """a, b DESC: without parentheses; a comma before INTERLEAVE IN ends the list."""
    parts: list[KeyPart] = []
    while not parts or (not reader.peek(",", "INTERLEAVE", "IN") and reader.accept(",")):
        name = reader.read_name("a column name")
        descending = reader.accept("DESC")
        if not descending:
            reader.accept("ASC")
        parts.append(KeyPart(name, descending))
    return tuple(parts)


def read_altered_name(text: str, dialect: Dialect) -> str:
    """The index that an ALTER SEARCH INDEX names."""
    reader = TokenReader(text, dialect)
    reader.expect("ALTER", "SEARCH", "INDEX")
    return reader.read_path("an index name")


def alter_search_index(index: SearchIndex, text: str) -> SearchIndex:
    """The index after ALTER SEARCH INDEX i ADD | DROP [a stored] COLUMN c. Raises
    DdlSyntaxError, InvalidDefinitionError."""
    reader = TokenReader(text, index.dialect)
    reader.expect("ALTER", "SEARCH", "INDEX")
    reader.read_path("an index name")
    adds = reader.accept("ADD")
    if not adds:
        reader.expect("DROP")
    stored = reader.accept(INCLUDED[index.dialect][1])
    reader.expect("COLUMN")
    column = reader.read_name("a column name")
    reader.accept(";")
    reader.expect_end()
    names = change_names(index, index.storing if stored else index.columns, column, adds=adds)
    return replace(index, storing=names) if stored else replace(index, columns=names)


def change_names(
    index: SearchIndex, names: tuple[str, ...], column: str, *, adds: bool
) -> tuple[str, ...]:
    """The columns with another one, or without one of them."""
    rest = tuple(name for name in names if not same_name(name, column))
    if adds:
        return (*names, column)
    if rest == names:
        raise InvalidDefinitionError(f"Column {column} is not a column of index {index.name}.")
    return rest


def list_search_indexes(schema: Schema) -> list[SearchIndex]:
    """Those of a schema."""
    return [
        read_search_index(item.text, schema.dialect)
        for item in schema.verbatim
        if item.kind == KIND
    ]
