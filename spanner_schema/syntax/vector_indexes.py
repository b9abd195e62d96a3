"""Vector indexes: what CREATE VECTOR INDEX says. A schema keeps them as text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from spanner_schema.model.errors import InvalidDefinitionError
from spanner_schema.model.names import join_name, same_name, split_name
from spanner_schema.model.schema import Dialect, Schema
from spanner_schema.syntax.clauses import read_option_list
from spanner_schema.syntax.googlesql.parts import read_options
from spanner_schema.syntax.reader import TokenReader
from spanner_schema.syntax.render import SPELLINGS

KIND = "VECTOR INDEX"
ALTER = f"ALTER {KIND}"


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """A vector index; the first of its columns is the embedding. ``options`` as they are written;
    ``optional`` says IF NOT EXISTS."""

    name: str
    table: str
    columns: tuple[str, ...]
    storing: tuple[str, ...]
    not_null: str | None
    options: tuple[tuple[str, str], ...]
    optional: bool = False
    dialect: Dialect = Dialect.GOOGLESQL

    @property
    def text(self) -> str:
        """The statement that creates the index."""
        spelling = SPELLINGS[self.dialect]
        postgres = self.dialect is Dialect.POSTGRESQL
        name, table = spelling.quote_name(self.name), spelling.quote_name(self.table)
        if postgres:
            # An index is in the schema of its table, and is called without it.
            name = spelling.quote_name(split_name(self.name)[1])
        columns = spelling.quote_columns(self.columns)
        kind, method = ("INDEX", " USING scann ") if postgres else (KIND, "")
        text = f"CREATE {kind} {name} ON {table}{method}({columns})"
        if self.storing:
            text += f" {spelling.stored_columns} ({spelling.quote_columns(self.storing)})"
        where = spelling.write_not_null_filter((self.not_null,) if self.not_null else ())
        pairs = ", ".join(f"{name} = {value}" for name, value in self.options)
        options = f" {'WITH' if postgres else 'OPTIONS'} ({pairs})" if pairs else ""
        return text + (options + where if postgres else where + options)


@lru_cache(maxsize=1_000)
def read_vector_index(text: str, dialect: Dialect = Dialect.GOOGLESQL) -> VectorIndex:
    """Reads a whole CREATE VECTOR INDEX statement, in PostgreSQL CREATE INDEX ... USING scann.
    Raises DdlSyntaxError."""
    reader = TokenReader(text, dialect)
    postgres = dialect is Dialect.POSTGRESQL
    reader.expect("CREATE", *(() if postgres else ("VECTOR",)), "INDEX")
    optional = reader.accept("IF", "NOT", "EXISTS")
    name = reader.read_path()
    reader.expect("ON")
    table = reader.read_path()
    if postgres:
        reader.expect("USING", "SCANN")
        name = name if "." in name else join_name(split_name(table)[0], name)
    columns = reader.read_names()
    storing = reader.read_names() if reader.accept("INCLUDE" if postgres else "STORING") else ()
    options = read_option_list(reader) if postgres and reader.accept("WITH") else ()
    not_null = None
    if reader.accept("WHERE"):
        not_null = reader.read_name()
        reader.expect("IS", "NOT", "NULL")
    if not postgres and reader.peek("OPTIONS"):
        options = read_options(reader)
    reader.accept(";")
    reader.expect_end()
    return VectorIndex(name, table, columns, storing, not_null, options, optional, dialect)


def read_altered_name(text: str) -> str:
    """The index that an ALTER VECTOR INDEX names."""
    reader = TokenReader(text)
    reader.expect("ALTER", "VECTOR", "INDEX")
    return reader.read_path("an index name")


def alter_vector_index(index: VectorIndex, text: str) -> VectorIndex:
    """The index after ALTER VECTOR INDEX i ADD | DROP STORED COLUMN c | SET OPTIONS (...). Raises
    DdlSyntaxError, InvalidDefinitionError."""
    reader = TokenReader(text)
    reader.expect("ALTER", "VECTOR", "INDEX")
    reader.read_path("an index name")
    if reader.accept("SET"):
        options = dict(index.options) | dict(read_options(reader))
        kept = tuple((name, value) for name, value in options.items() if value.upper() != "NULL")
        after = replace(index, options=kept)
    else:
        adds = reader.accept("ADD")
        if not adds:
            reader.expect("DROP")
        reader.expect("STORED", "COLUMN")
        after = store_column(index, reader.read_name("a column name"), adds=adds)
    reader.accept(";")
    reader.expect_end()
    return after


def store_column(index: VectorIndex, column: str, *, adds: bool) -> VectorIndex:
    """The index with another stored column, or without one. Raises InvalidDefinitionError."""
    if adds:
        return replace(index, storing=(*index.storing, column))
    rest = tuple(name for name in index.storing if not same_name(name, column))
    if rest == index.storing:
        raise InvalidDefinitionError(
            f"Column {column} in index {index.name} is not a stored column. Only stored columns may"
            " be dropped from indices."
        )
    return replace(index, storing=rest)


def list_vector_indexes(schema: Schema) -> list[VectorIndex]:
    """Those of a schema."""
    return [
        read_vector_index(item.text, schema.dialect)
        for item in schema.verbatim
        if item.kind == KIND
    ]
