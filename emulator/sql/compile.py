"""The compiler's front: one statement, or one expression of the schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from emulator import errors
from emulator.errors import SpannerError
from emulator.limits import QUERY_CHARACTERS_MAX
from emulator.sql import hints
from emulator.sql.coerce import coerce
from emulator.sql.consumption import record, refuse_unread
from emulator.sql.dml import DmlCompiler, table_scope
from emulator.sql.googlesql import statement_trees as googlesql
from emulator.sql.grammar.places import find_name, mark_place
from emulator.sql.long_lists import fold_long_lists
from emulator.sql.parsed import Parsed
from emulator.sql.postgres import query_trees
from emulator.sql.postgres.casts import PostgresConversions
from emulator.sql.postgres.casts import assign as postgres_assign
from emulator.sql.postgres.expression_spelling import ExpressionSpelling, spell_or_keep
from emulator.sql.postgres.expressions import PostgresDml, PostgresQueries
from emulator.sql.postgres.sqlstates import find_sqlstate
from emulator.sql.queries import QueryCompiler
from emulator.sql.schema_texts import read_schema_expression
from emulator.sql.scope import Context, Scope
from emulator.sql.sequences import refuse_in_conditions
from emulator.sql.size_limits import check_size
from emulator.sql.statements import CompiledQuery, Expression, Statement, TableSource
from emulator.sql.token_calls import refuse_token_lists
from emulator.sql.types import Columns, Typed, drop_length, name_of
from emulator.sql.user_functions import expand, parse_body
from emulator.values.postgres_tables import POSTGRES_VIEWS
from emulator.values.requests import ResultColumn
from emulator.values.sqlite_text import quote_name
from emulator.values.system_tables import VIEWS
from emulator.values.types import STRING
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import Dialect, Index, Schema, Table, Verbatim
from spanner_schema.syntax.functions import read_function
from spanner_schema.syntax.protos import list_bundle_types

QUERIES = QueryCompiler()
DML = DmlCompiler(QUERIES)
POSTGRES_QUERIES = PostgresQueries()
POSTGRES_DML = PostgresDml(POSTGRES_QUERIES)
NAME_NOT_FOUND = re.compile(r"(?:Table not found|Type not found|Unrecognized name): ([\w.]+)")
FIRST_WORD = re.compile(r"\s*([A-Za-z_]+)\b")
OTHER_STATEMENTS = {
    *("ALTER", "ANALYZE", "BEGIN", "CALL", "CLONE", "COMMIT", "CREATE", "DECLARE", "DEFINE"),
    *("DESCRIBE", "DROP", "EXECUTE", "EXPLAIN", "EXPORT", "GRANT", "IF", "IMPORT"),
    *("LOAD", "LOOP", "MERGE", "MODULE", "RAISE", "RENAME", "REPEAT", "REVOKE", "ROLLBACK"),
    *("RUN", "SET", "SHOW", "START", "TRUNCATE", "UNDROP", "WHILE"),
}
"""The first words of GoogleSQL's statements that are neither queries nor DML."""

UNNAMED = re.compile(r"\$\d+\Z")
"""What a column without a name is called inside a statement."""
TYPE_MISMATCH = re.compile(r"Expected type .+; found .+")
NO_LISTS: Mapping[str, tuple[str, Type]] = {}
STATEMENT_HINTS = {
    "USE_ADDITIONAL_PARALLELISM",
    hints.OPTIMIZER_VERSION,
    "OPTIMIZER_STATISTICS_PACKAGE",
    "ALLOW_DISTRIBUTED_MERGE",
    "LOCK_SCANNED_RANGES",
    "SCAN_METHOD",
    "EXECUTION_METHOD",
    "ALLOW_TIMESTAMP_PREDICATE_PUSHDOWN",
    "PDML_MAX_PARALLELISM",
    hints.FORCE_INDEX,
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
    if schema.dialect is Dialect.POSTGRESQL:
        return compile_postgres(sql, schema, types, source)
    folded = fold_long_lists(sql)
    if folded.lists:
        try:
            return compile_parsed(folded.text, schema, types, source, folded.lists)
        except SpannerError:
            return compile_whole(sql, schema, types, source)
    return compile_whole(sql, schema, types, source)


def compile_postgres(
    sql: str, schema: Schema, types: Mapping[str, Type], source: TableSource
) -> Statement:
    """As ``compile_statement``, in the PostgreSQL dialect."""
    try:
        refuse_long_query(sql)
        parsed = query_trees.read_statement(sql, schema)
        return compile_read(parsed, sql, postgres_context(schema, source, types))
    except RecursionError as error:
        raise nested_too_deeply() from error
    except SpannerError as error:
        error.sqlstate = find_sqlstate(error.message)
        raise


def postgres_context(schema: Schema, source: TableSource, types: Mapping[str, Type]) -> Context:
    """The state of compiling a statement of the PostgreSQL dialect."""
    return Context(schema, source, types, POSTGRES_VIEWS, conversions=PostgresConversions())


def compile_whole(
    sql: str, schema: Schema, types: Mapping[str, Type], source: TableSource
) -> Statement:
    """As ``compile_statement``, with every item of a list by itself."""
    try:
        return compile_parsed(sql, schema, types, source)
    except SpannerError as error:
        raise locate_error(error, sql) from error
    except RecursionError as error:
        raise nested_too_deeply() from error


def nested_too_deeply() -> SpannerError:
    """Spanner, too, refuses statements beyond some depth of nesting."""
    return errors.invalid_argument("The statement is nested too deeply: write it with less depth")


def locate_error(error: SpannerError, sql: str) -> SpannerError:
    """The error with line, column and a mark under the name that was not found."""
    missing = NAME_NOT_FOUND.fullmatch(error.message)
    offset = find_name(sql, missing[1]) if missing else None
    if TYPE_MISMATCH.fullmatch(error.message):
        offset = len(sql) - len(sql.lstrip("( \t\n\r"))
    if offset is None:
        return error
    return SpannerError(error.code, f"{error.message} {mark_place(sql, offset)}")


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
    refuse_long_query(sql)
    refuse_other_statements(sql)
    parsed = googlesql.read_statement(sql, list_bundle_types(schema))
    return compile_read(parsed, sql, Context(schema, source, types, VIEWS, lists))


def refuse_long_query(sql: str) -> None:
    """Raises INVALID_ARGUMENT for a statement that is too long."""
    if len(sql) > QUERY_CHARACTERS_MAX:
        raise errors.invalid_argument(
            f"Query string length of {len(sql)} exceeds maximum allowed length of"
            f" {QUERY_CHARACTERS_MAX}"
        )


def compile_read(parsed: Parsed, sql: str, context: Context) -> Statement:
    """Compiles a statement that was read; nothing of it is passed over in silence."""
    hints.check_statement_hints(parsed.hints, STATEMENT_HINTS, context.schema)
    hints.check_keyword_hints(parsed.keyword_hints)
    tree = parsed.tree
    nodes = record(tree, *(parsed.returning or ()))
    check_size(nodes)
    statement = compile_tree(parsed, sql, context)
    refuse_unread(nodes)
    if parsed.asserted_rows is not None and not isinstance(statement, CompiledQuery):
        return replace(statement, asserted_rows=parsed.asserted_rows)
    return statement


def compile_tree(parsed: Parsed, sql: str, context: Context) -> Statement:
    """Compiles a statement that was read."""
    tree = parsed.tree
    refuse_in_conditions(tree)
    postgres = context.schema.dialect is Dialect.POSTGRESQL
    dml = POSTGRES_DML if postgres else DML
    if isinstance(tree, exp.Insert):
        return dml.insert(parsed, context)
    if isinstance(tree, exp.Update):
        return dml.update(parsed, context)
    if isinstance(tree, exp.Delete):
        return dml.delete(parsed, context)
    queries = POSTGRES_QUERIES if postgres else QUERIES
    text, columns = queries.query(tree, None, context)
    refuse_structs(columns)
    refuse_token_lists(each.type for each in columns)
    if context.uses_commit:
        raise errors.invalid_argument(
            "The PENDING_COMMIT_TIMESTAMP() function may only be used as a value for INSERT or"
            " UPDATE of an appropriately typed column"
        )
    if context.catalog and context.tables:
        raise errors.unimplemented("a query over both INFORMATION_SCHEMA and tables")
    return CompiledQuery(
        text,
        tuple(ResultColumn(UNNAMED.sub("", each.name), each.type) for each in columns),
        context.bindings(STRING),
        tuple(context.tables),
        tuple(context.catalog),
        context.draws,
        tuple(context.views),
        tuple(context.functions),
    )


def read_tree(sql: str, schema: Schema) -> exp.Expr:
    """The tree of a statement that has been compiled."""
    if schema.dialect is Dialect.POSTGRESQL:
        return query_trees.read_statement(sql, schema).tree
    return googlesql.read_statement(sql, list_bundle_types(schema)).tree


def refuse_other_statements(sql: str) -> None:
    """Raises INVALID_ARGUMENT for a statement that is neither a query nor DML."""
    word = FIRST_WORD.match(sql)
    if word and word[1].upper() == "GRAPH":
        raise errors.unimplemented("GRAPH, a query of a property graph,")
    if word and word[1].upper() in OTHER_STATEMENTS:
        raise errors.invalid_argument(f"Statement not supported: {word[1]}")


def refuse_structs(columns: Columns) -> None:
    """Spanner returns structs inside arrays only, and no array of them that may be NULL."""
    if any(each.type.code is TypeCode.STRUCT for each in columns):
        raise errors.unsupported(
            "Unsupported query shape: A struct value cannot be returned as a column value. "
            "Rewrite the query to flatten the struct fields in the result."
        )
    for each in columns:
        if is_array_of_structs(each.type) and each.typed.may_be_null:
            raise errors.unsupported(
                "Unsupported query shape: This query can return a null-valued array of struct,"
                f" which is not supported by Spanner. {name_of(each.type)} is the type that might"
                " contain null values. Use IFNULL/COALESCE to convert potentially null values to"
                " non-null values."
            )


def is_array_of_structs(type_: Type) -> bool:
    """Whether the elements of a type are structs."""
    return type_.element is not None and type_.element.code is TypeCode.STRUCT


def compile_expression(
    sql: str, table: Table, schema: Schema, target: Type | None = None
) -> Expression:
    """Compiles an expression of a table's definition; its columns come out unqualified.

    With a ``target`` it is converted to the type of the column that takes it.
    """
    tree = read_schema_expression(sql, schema)
    nodes = record(tree)
    postgres = schema.dialect is Dialect.POSTGRESQL
    context = Context(schema, refuse_tables, {}, {}, of_schema=True)
    if postgres:
        context = postgres_context(schema, refuse_tables, {})
    alias = "$t"
    scope: Scope = table_scope(table, alias)
    queries = POSTGRES_QUERIES if postgres else QUERIES
    typed = queries.expressions.compile(tree, scope, context)
    refuse_unread(nodes)
    if target is not None:
        typed = assign(typed, target, context)
    qualifier = quote_name(alias) + "."
    named = [c.name for c in table.columns if qualifier + quote_name(c.name) in typed.sql]
    return Expression(
        typed.sql.replace(qualifier, ""),
        drop_length(typed.type or STRING),
        tuple(named),
        context.bindings(STRING),
        context.draws,
    )


def compile_function(schema: Schema, item: Verbatim, source: TableSource) -> frozenset[str]:
    """What a function of the schema reads: views and functions, in lower case.

    Raises SpannerError for an invalid definition.
    """
    type_names = list_bundle_types(schema)
    function = read_function(item.text, type_names)
    context = Context(schema, source, {}, VIEWS)
    tree = parse_body(function.body or "", type_names)
    nodes = record(tree)
    check_size(nodes)
    values = [Typed("NULL", each.type.type) for each in function.parameters]
    expand(QUERIES.expressions, function, tree, values, context)
    refuse_unread(nodes)
    return frozenset({*context.views, *context.functions})


def spell_expression(sql: str, table: Table, schema: Schema, target: Type | None = None) -> str:
    """An expression of a table of the PostgreSQL dialect as Spanner tells it."""

    def spell() -> str:
        context = postgres_context(schema, refuse_tables, {})
        scope: Scope = table_scope(table, "$t")
        compiler = POSTGRES_QUERIES.expressions
        spelling = ExpressionSpelling(lambda n: compiler.compile(n, scope, context), context)
        return spelling.spell(read_schema_expression(sql, schema), target)

    return spell_or_keep(sql, spell)


def assign(typed: Typed, target: Type, context: Context) -> Typed:
    """A value as the type of its column. Raises INVALID_ARGUMENT if it does not convert."""
    converted = coerce(typed, target, context)
    if converted is None and context.conversions is not None:
        converted = postgres_assign(typed, target, context)
    if converted is None:
        raise errors.invalid_argument(
            f"Expected type {name_of(target)}; found {name_of(typed.type)}"
        )
    return converted


def refuse_tables(table: Table, index: Index | None, alias: str) -> str:
    """Expressions of a schema have no subqueries."""
    raise errors.invalid_argument(f"An expression of the schema may not read table {table.name}")
