"""Models of machine learning: what CREATE and ALTER MODEL say. A schema keeps them as text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from spanner_schema.model.schema import Column, Dialect, Schema
from spanner_schema.syntax.clauses import Options
from spanner_schema.syntax.googlesql.parts import read_column, read_options
from spanner_schema.syntax.reader import TokenReader
from spanner_schema.syntax.render import SPELLINGS

KIND = "MODEL"
ALTER = f"ALTER {KIND}"
INPUT, OUTPUT = "INPUT", "OUTPUT"


@dataclass(frozen=True, slots=True)
class Model:
    """A model: its columns of each kind, and ``options`` as they are written. ``optional`` says IF
    [NOT] EXISTS, ``replaces`` OR REPLACE."""

    name: str
    columns: tuple[tuple[str, tuple[Column, ...]], ...] = ()
    remote: bool = False
    options: Options = ()
    optional: bool = False
    replaces: bool = False

    @property
    def text(self) -> str:
        """The statement that creates the model."""
        spelling = SPELLINGS[Dialect.GOOGLESQL]
        lines = [f"CREATE {KIND} {spelling.quote_name(self.name)}"]
        for kind, columns in self.columns:
            lines += [f"{kind}(", *(f"  {write_column(each)}," for each in columns), ")"]
        lines += ["REMOTE"] if self.remote else []
        return "\n".join(lines) + write_options(self.options)


@lru_cache(maxsize=1_000)
def read_model(text: str) -> Model:
    """Reads a whole CREATE or ALTER MODEL statement. Raises DdlSyntaxError."""
    reader = TokenReader(text)
    alters = reader.accept("ALTER")
    if not alters:
        reader.expect("CREATE")
    replaces = not alters and reader.accept("OR", "REPLACE")
    reader.expect(KIND)
    optional = not replaces and reader.accept("IF", *(() if alters else ("NOT",)), "EXISTS")
    name = reader.read_path()
    columns: tuple[tuple[str, tuple[Column, ...]], ...] = ()
    if not alters and reader.peek(INPUT):
        columns = tuple((kind, read_columns(reader, kind)) for kind in (INPUT, OUTPUT))
    remote = not alters and reader.accept("REMOTE")
    if alters:
        reader.expect("SET")
    options = read_options(reader) if alters or reader.peek("OPTIONS") else ()
    reader.accept(";")
    reader.expect_end()
    return Model(name, columns, remote, options, optional, replaces)


def read_columns(reader: TokenReader, kind: str) -> tuple[Column, ...]:
    """INPUT (a INT64, ...) or OUTPUT (...)."""
    reader.expect(kind, "(")
    columns = [read_column(reader)]
    reader.expect_more()
    while not reader.accept(")"):
        columns.append(read_column(reader))
        reader.expect_more()
    return tuple(columns)


def write_column(column: Column) -> str:
    """A column of a model: a name and a type."""
    text = SPELLINGS[Dialect.GOOGLESQL].write_column(replace(column, options=()))
    return text + write_options(column.options)


def write_options(options: Options) -> str:
    """OPTIONS ( a = b ) with a blank before it, or nothing."""
    pairs = ", ".join(f"{name} = {value}" for name, value in options)
    return f" OPTIONS ( {pairs} )" if pairs else ""


def alter_model(model: Model, change: Model) -> Model:
    """The model after an ALTER: null removes an option."""
    options = dict(model.options) | dict(change.options)
    kept = tuple((name, value) for name, value in options.items() if value.upper() != "NULL")
    return replace(model, options=kept)


def list_models(schema: Schema) -> list[Model]:
    """Those of a schema."""
    return [read_model(item.text) for item in schema.verbatim if item.kind == KIND]
