"""DDL text -> steps, in both dialects."""

from __future__ import annotations

from collections.abc import Callable, Collection

from spanner_schema.model.errors import DdlSyntaxError
from spanner_schema.model.schema import Dialect
from spanner_schema.model.steps import Step
from spanner_schema.syntax.clauses import OTHER_KINDS, read_drop, read_other_statement
from spanner_schema.syntax.googlesql import statements as googlesql
from spanner_schema.syntax.googlesql.reserved import RESERVED
from spanner_schema.syntax.postgres import statements as postgres
from spanner_schema.syntax.reader import TokenReader
from spanner_schema.syntax.tokens import locate, split_statements

Read = Callable[[TokenReader], Step]
CREATE: dict[Dialect, Read] = {
    Dialect.GOOGLESQL: googlesql.read_create,
    Dialect.POSTGRESQL: postgres.read_create,
}
ALTER: dict[Dialect, Read] = {
    Dialect.GOOGLESQL: googlesql.read_alter,
    Dialect.POSTGRESQL: postgres.read_alter,
}


def parse_statement(
    text: str,
    dialect: Dialect = Dialect.GOOGLESQL,
    type_names: Collection[str] = (),
    *,
    strict: bool = False,
) -> Step:
    """Parses one DDL statement; a semicolon may follow it.

    ``type_names`` are the types of the database's proto bundle; ``strict`` refuses what Spanner
    refuses and no schema of Spanner has. Raises DdlSyntaxError with line, column and what was
    expected, and InvalidDefinitionError.
    """
    statements = split_statements(text, dialect)
    if not statements:
        raise DdlSyntaxError(1, 1, "a statement", "nothing")
    if len(statements) > 1:
        position = locate(text, statements[1][1])
        raise DdlSyntaxError(*position, "the end of the statement", "another one")
    reserved = RESERVED if strict and dialect is Dialect.GOOGLESQL else ()
    reader = TokenReader(statements[0][0], dialect, type_names, reserved)
    step = read_statement(reader, dialect)
    reader.expect_end()
    return step


def read_statement(reader: TokenReader, dialect: Dialect) -> Step:
    """Any statement, by its first word."""
    if reader.accept("CREATE"):
        return CREATE[dialect](reader)
    if reader.accept("ALTER"):
        return ALTER[dialect](reader)
    if reader.accept("DROP"):
        step = read_drop(reader)
        if dialect is Dialect.POSTGRESQL:
            postgres.read_drop_behavior(reader)
        return step
    if any(reader.peek(word) for word in OTHER_KINDS):
        return read_other_statement(reader)
    return reader.fail("CREATE, ALTER, DROP, GRANT, REVOKE, RENAME or ANALYZE")


def parse_script(text: str, dialect: Dialect = Dialect.GOOGLESQL) -> list[Step]:
    """Parses statements separated by semicolons. Raises DdlSyntaxError."""
    return [parse_statement(statement, dialect) for statement, _ in split_statements(text, dialect)]
