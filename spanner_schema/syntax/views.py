"""What CREATE VIEW says: name, rights and query."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from spanner_schema.model.schema import Dialect, Schema, Verbatim, find
from spanner_schema.syntax.postgres.spelling import quote_part
from spanner_schema.syntax.reader import TokenReader

KIND = "VIEW"


@dataclass(frozen=True, slots=True)
class View:
    """A view. ``security`` is INVOKER, DEFINER, or None where the clause is missing."""

    name: str
    security: str | None
    query: str
    replaces: bool = False

    @property
    def text(self) -> str:
        """The statement that creates the view."""
        return f"CREATE VIEW {self.name} SQL SECURITY {self.security} AS {self.query}"


@lru_cache(maxsize=1_000)
def read_view(text: str, dialect: Dialect = Dialect.GOOGLESQL) -> View:
    """Reads a whole CREATE VIEW statement. Raises DdlSyntaxError."""
    reader = TokenReader(text, dialect)
    reader.expect("CREATE")
    replaces = reader.accept("OR", "REPLACE")
    reader.expect("VIEW")
    start = reader.token.start
    path = reader.read_path("a view name")
    name = text[start : reader.token.start].strip()
    if dialect is Dialect.POSTGRESQL:
        name = ".".join(map(quote_part, path.split(".")))
    security = None
    if reader.accept("SQL", "SECURITY"):
        security = "DEFINER" if reader.accept("DEFINER") else "INVOKER"
        if security == "INVOKER":
            reader.expect("INVOKER")
    reader.expect("AS")
    return View(name, security, reader.read_rest().rstrip("; \t\r\n"), replaces)


def list_views(schema: Schema) -> list[Verbatim]:
    """The views of a schema, in the order in which they can be created."""
    return [item for item in schema.verbatim if item.kind == KIND]


def find_view(schema: Schema, name: str) -> Verbatim | None:
    """The view of this name (without regard to case), or None."""
    return find(tuple(list_views(schema)), name)
