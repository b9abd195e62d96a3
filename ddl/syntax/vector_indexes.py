"""Vector indexes: what CREATE VECTOR INDEX says. A schema keeps them as text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ddl.model.schema import Dialect, Schema
from ddl.syntax.googlesql.parts import read_options
from ddl.syntax.reader import TokenReader
from ddl.syntax.render import SPELLINGS

KIND = "VECTOR INDEX"


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

    @property
    def text(self) -> str:
        """The statement that creates the index."""
        spelling = SPELLINGS[Dialect.GOOGLESQL]
        parts = [
            f"CREATE VECTOR INDEX {spelling.quote_name(self.name)}",
            f"ON {spelling.quote_name(self.table)}({spelling.quote_columns(self.columns)})",
        ]
        if self.storing:
            parts.append(f"STORING ({spelling.quote_columns(self.storing)})")
        if self.not_null is not None:
            parts.append(f"WHERE {spelling.quote_column(self.not_null)} IS NOT NULL")
        if self.options:
            pairs = (f"{name} = {value}" for name, value in self.options)
            parts.append(f"OPTIONS ({', '.join(pairs)})")
        return " ".join(parts)


@lru_cache(maxsize=1_000)
def read_vector_index(text: str) -> VectorIndex:
    """Reads a whole CREATE VECTOR INDEX statement of GoogleSQL. Raises DdlSyntaxError."""
    reader = TokenReader(text)
    reader.expect("CREATE", "VECTOR", "INDEX")
    optional = reader.accept("IF", "NOT", "EXISTS")
    name = reader.read_path()
    reader.expect("ON")
    table = reader.read_path()
    columns = reader.read_names()
    storing = reader.read_names() if reader.accept("STORING") else ()
    not_null = None
    if reader.accept("WHERE"):
        not_null = reader.read_name()
        reader.expect("IS", "NOT", "NULL")
    options = read_options(reader) if reader.peek("OPTIONS") else ()
    reader.expect_end()
    return VectorIndex(name, table, columns, storing, not_null, options, optional)


def list_vector_indexes(schema: Schema) -> list[VectorIndex]:
    """Those of a schema."""
    return [read_vector_index(item.text) for item in schema.verbatim if item.kind == KIND]
