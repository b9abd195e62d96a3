"""The compiler's front: one statement, or one expression of the schema."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from ddl.dialect import parse_expression, parse_query
from ddl.errors import DdlSyntaxError
from ddl.schema import Index, Schema, Table, Type, TypeCode
from emulator import errors
from emulator.errors import SpannerError
from emulator.limits import QUERY_CHARACTERS_MAX
from emulator.sql import hints
from emulator.sql.dml import DmlCompiler, table_scope
from emulator.sql.long_lists import fold_long_lists
from emulator.sql.queries import QueryCompiler
from emulator.sql.scope import Context, Scope
from emulator.sql.sequences import refuse_in_conditions
from emulator.sql.statements import CompiledQuery, Expression, Statement, TableSource
from emulator.sql.types import Columns, drop_length
from emulator.values.requests import ResultColumn
from emulator.values.sqlite_text import quote_name
from emulator.values.system_tables import VIEWS
from emulator.values.types import STRING

QUERIES = QueryCompiler()
DML = DmlCompiler(QUERIES)
NO_LISTS: Mapping[str, tuple[str, Type]] = {}
NAME_NOT_FOUND = re.compile(r"(?:Table not found|Unrecognized name): ([\w.]+)")
STATEMENT_HINTS = {
    "USE_ADDITIONAL_PARALLELISM",
    "OPTIMIZER_VERSION",
    "OPTIMIZER_STATISTICS_PACKAGE",
    "ALLOW_DISTRIBUTED_MERGE",
    "LOCK_SCANNED_RANGES",
    "SCAN_METHOD",
    "EXECUTION_METHOD",
    "ALLOW_TIMESTAMP_PREDICATE_PUSHDOWN",
    "PDML_MAX_PARALLELISM",
    "JOIN_METHOD",
    "FORCE_JOIN_ORDER",
    "HASH_JOIN_BUILD_SIDE",
    "BATCH_MODE",
    "USE_UNENFORCED_FOREIGN_KEY",
}


def compile_statement(
    sql: str, schema: Schema, types: Mapping[str, Type], source: TableSource
) -> Statement:
    """Compiles a query or DML statement; an error about a name gives its line and column.

    As ``compile_parsed``. Where a long list does not fit as an array, its items may fit one by one.
    """
    folded = fold_long_lists(sql)
    if folded.lists:
        try:
            return compile_parsed(folded.text, schema, types, source, folded.lists)
        except SpannerError:
            return compile_whole(sql, schema, types, source)
    return compile_whole(sql, schema, types, source)


def compile_whole(
    sql: str, schema: Schema, types: Mapping[str, Type], source: TableSource
) -> Statement:
    """As ``compile_statement``, with every item of a list by itself."""
    try:
        return compile_parsed(sql, schema, types, source)
    except SpannerError as error:
        raise locate_error(error, sql) from error


def locate_error(error: SpannerError, sql: str) -> SpannerError:
    """The error with line, column and a mark under the name that was not found."""
    missing = NAME_NOT_FOUND.fullmatch(error.message)
    place = missing and re.search(rf"(?<![\w`]){re.escape(missing[1])}(?!\w)", sql)
    if not place:
        return error
    lines = sql[: place.start()].split("\n")
    line = sql.split("\n")[len(lines) - 1]
    column = len(lines[-1]) + 1
    where = f"[at {len(lines)}:{column}]\n{line}\n{'^':>{column}}"
    return SpannerError(error.code, f"{error.message} {where}")


def compile_parsed(
    sql: str,
    schema: Schema,
    types: Mapping[str, Type],
    source: TableSource,
    lists: Mapping[str, tuple[str, Type]] = NO_LISTS,
) -> Statement:
    """Compiles a query or DML statement. ``lists`` are long lists that were taken out of it.

    ``types`` are the declared parameters. A parameter without a declared type takes the one that
    its place asks for, and STRING where nothing says (as Spanner reads an untyped JSON string).
    Raises INVALID_ARGUMENT for what is wrong, UNIMPLEMENTED for what is not supported.
    """
    if len(sql) > QUERY_CHARACTERS_MAX:
        raise errors.invalid_argument(
            f"Query string length of {len(sql)} exceeds maximum allowed length of"
            f" {QUERY_CHARACTERS_MAX}"
        )
    try:
        parsed = parse_query(sql)
    except DdlSyntaxError as error:
        raise errors.invalid_argument(f"Syntax error: {error}") from error
    hints.check_hints(parsed.hints, STATEMENT_HINTS)
    context = Context(schema, source, types, VIEWS, lists)
    tree = parsed.tree
    refuse_in_conditions(tree)
    if isinstance(tree, exp.Insert):
        return DML.insert(parsed, context)
    if isinstance(tree, exp.Update):
        return DML.update(parsed, context)
    if isinstance(tree, exp.Delete):
        return DML.delete(parsed, context)
    if not isinstance(tree, exp.Query):
        raise errors.invalid_argument(f"Statement not supported: {sql.split(maxsplit=1)[0]}")
    text, columns = QUERIES.query(tree, None, context)
    refuse_structs(columns)
    if context.uses_commit:
        raise errors.invalid_argument(
            "The PENDING_COMMIT_TIMESTAMP() function may only be used as a value for INSERT or"
            " UPDATE of an appropriately typed column"
        )
    if context.catalog and context.tables:
        raise errors.unimplemented("a query over both INFORMATION_SCHEMA and tables")
    return CompiledQuery(
        text,
        tuple(ResultColumn(each.name, each.type) for each in columns),
        context.bindings(STRING),
        tuple(context.tables),
        tuple(context.catalog),
        context.draws,
        tuple(context.views),
    )


def refuse_structs(columns: Columns) -> None:
    """Spanner returns structs inside arrays only."""
    if any(each.type.code is TypeCode.STRUCT for each in columns):
        raise errors.unimplemented(
            "A struct value cannot be returned as a column value: select its fields, or"
            " ARRAY(SELECT AS STRUCT ...); STRUCT as a result column"
        )


def compile_expression(sql: str, table: Table, schema: Schema) -> Expression:
    """Compiles an expression of a table's definition; its columns come out unqualified."""
    try:
        tree = parse_expression(sql)
    except DdlSyntaxError as error:
        raise errors.invalid_argument(f"Syntax error in {sql!r}: {error}") from error
    context = Context(schema, refuse_tables, {}, {})
    alias = "$t"
    scope: Scope = table_scope(table, alias)
    typed = QUERIES.expressions.compile(tree, scope, context)
    qualifier = quote_name(alias) + "."
    named = [c.name for c in table.columns if qualifier + quote_name(c.name) in typed.sql]
    return Expression(
        typed.sql.replace(qualifier, ""),
        drop_length(typed.type or STRING),
        tuple(named),
        context.bindings(STRING),
        context.draws,
    )


def refuse_tables(table: Table, index: Index | None, alias: str) -> str:
    """Expressions of a schema have no subqueries."""
    raise errors.invalid_argument(f"An expression of the schema may not read table {table.name}")
