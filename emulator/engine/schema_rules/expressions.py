"""The expressions of a schema: generated columns, DEFAULT and CHECK."""

from __future__ import annotations

from collections.abc import Iterator

from ddl.rules.refusals import COMMIT_TIMESTAMP
from emulator.engine.schema_rules.change import SchemaChange
from emulator.engine.schema_rules.expression_text import (
    list_words,
    refuse_depth,
    refuse_volatile_functions,
)
from emulator.errors import SpannerError, failed_precondition, invalid_argument
from emulator.sql.compile import compile_expression, locate_error
from emulator.sql.types import drop_length
from emulator.values.types import BOOL
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import Check, Column, Schema, Table
from spanner_schema.syntax.functions import list_called_functions, read_function
from spanner_schema.syntax.protos import list_bundle_types
from spanner_schema.syntax.references import find_referenced_columns
from spanner_schema.syntax.spelling import normalize
from spanner_schema.syntax.tokens import TokenKind, tokenize

COMMIT_DEFAULTS = {
    TypeCode.TIMESTAMP: COMMIT_TIMESTAMP,
    TypeCode.INT64: "PENDING_COMMIT_TIMESTAMP_INT64()",
}
UNKNOWN_FUNCTION = "Function not found: "
GOOGLESQL_ONLY = frozenset(
    {
        *("ASCII", "CHR", "UNICODE", "INITCAP", "INSTR", "LEFT", "RIGHT", "SOUNDEX", "TRANSLATE"),
        *("REGEXP_INSTR", "REGEXP_SUBSTR", "CONTAINS_SUBSTR", "CBRT", "CSCH", "COTH", "SECH"),
        *("RAND", "RANGE_BUCKET", "SESSION_USER", "DATETIME", "TIME", "LAST_DAY", "TYPEOF"),
    }
)
"""Functions of GoogleSQL that Spanner does not have."""


def check_expressions(change: SchemaChange) -> None:
    """Checks the expressions that are new, or that stand over columns that changed."""
    for old, table in change.tables():
        for column in table.columns:
            before = old.column(column.name) if old is not None else None
            check_column_expression(change.after, table, column, before)
        refuse_cycles(change.after, table)
        known = {check.label for check in old.checks} if old is not None else set()
        for check in table.checks:
            if check.label not in known:
                check_check(change.after, table, check)
    refuse_changes_under_checks(change)


def check_column_expression(
    schema: Schema, table: Table, column: Column, before: Column | None
) -> None:
    """Checks DEFAULT or the generated expression of a column, if it is new."""
    if column.default is not None:
        if before is None or (before.default, before.type) != (column.default, column.type):
            check_default(schema, table, column)
        refuse_other_commit_default(column)
    if column.generated is not None:
        refuse_commit_timestamp_source(schema, table, column)
        if column.default is not None:
            raise failed_precondition(
                f"Column {table.name}.{column.name} with a DEFAULT value cannot be a generated"
                " column and vice versa."
            )
        if before is None or before.generated != column.generated:
            check_generated(schema, table, column)
        if column.not_null and not column.stored:
            raise invalid_argument(
                f"Generated column `{table.name}.{column.name}` that are not marked as STORED"
                " cannot be specified as NOT NULL."
            )


def check_default(schema: Schema, table: Table, column: Column) -> None:
    """A DEFAULT draws on nothing of its row, and has the type of its column."""
    text = column.default or ""
    if normalize(text) in COMMIT_DEFAULTS.values():
        return
    try:
        names = check_expression(text, table, schema, column.type, "column default", may_vary=True)
        if names:
            raise invalid_argument(
                f"Default value expression of column `{column.name}` has a reference to another"
                " column. Default expressions referencing other columns are not supported."
            )
    except SpannerError as error:
        raise SpannerError(
            error.code,
            f"Error parsing the default value of column `{table.name}`.`{column.name}`: "
            f"{error.message}",
        ) from error


def refuse_other_commit_default(column: Column) -> None:
    """The commit timestamp is the default of a commit-timestamp column, and of no other."""
    own = normalize(column.default) in COMMIT_DEFAULTS.values()
    if column.allow_commit_timestamp and not own:
        raise failed_precondition(
            "The only default value expression permitted for commit timestamp column"
            f" `{column.name}` is {COMMIT_DEFAULTS.get(column.type.code, COMMIT_TIMESTAMP)}."
        )
    if own and not column.allow_commit_timestamp:
        raise failed_precondition(
            f"Cannot use default value expression {COMMIT_TIMESTAMP} on column `{column.name}`"
            " without the allow_commit_timestamp column option."
        )


def check_generated(schema: Schema, table: Table, column: Column) -> None:
    """A generated column follows from its row alone, and has the type of its expression."""
    try:
        check_expression(
            column.generated or "", table, schema, column.type, "stored generated columns"
        )
    except SpannerError as error:
        raise SpannerError(
            error.code,
            f"Error parsing the definition of generated column `{table.name}`.`{column.name}`: "
            f"{error.message}",
        ) from error


def check_check(schema: Schema, table: Table, check: Check) -> None:
    """A CHECK follows from its row alone, is a condition, and is about columns that are written."""
    try:
        names = check_expression(check.expression, table, schema, BOOL, "check constraints")
    except SpannerError as error:
        raise SpannerError(
            error.code,
            f"Error parsing expression '{check.expression}' from check constraint"
            f" '{check.name or '<unnamed>'}' in table '{table.name}': {error.message}",
        ) from error
    if not any(depends_on_written(schema, table, name) for name in names):
        raise invalid_argument(
            f"Check constraint `{table.name}`.`{check.label}` does not use any non generated"
            f" column. Expression: '{check.expression}'. A check constraint expression requires at"
            " least one non-generated column as dependency."
        )
    for name in names:
        refuse_commit_timestamp(table.column(name))


def refuse_commit_timestamp(column: Column | None) -> None:
    """No CHECK is about a commit timestamp."""
    if column is not None and column.allow_commit_timestamp:
        raise invalid_argument(
            f"Column `{column.name}` has option commit_timestamp, which is not supported in check"
            " constraint."
        )


def refuse_commit_timestamp_source(schema: Schema, table: Table, column: Column) -> None:
    """No generated column is made of a commit timestamp."""
    for name in find_referenced_columns(column.generated or "", table, schema.dialect):
        source = table.column(name)
        if source is not None and source.allow_commit_timestamp:
            raise failed_precondition(
                f"Cannot use commit timestamp column `{source.name}` as a dependency of a"
                " materialized generated column."
            )


def depends_on_written(schema: Schema, table: Table, name: str) -> bool:
    """Whether a column is written, or generated from one that is."""
    column = table.column(name)
    if column is None or column.generated is None:
        return column is not None
    return any(depends_on_written(schema, table, each) for each in sources(schema, table, column))


def sources(schema: Schema, table: Table, column: Column) -> tuple[str, ...]:
    """The columns of which a generated column is made."""
    if column.generated is None:
        return ()
    return compile_expression(column.generated, table, schema).columns


def check_expression(
    text: str, table: Table, schema: Schema, target: Type, use: str, *, may_vary: bool = False
) -> tuple[str, ...]:
    """Checks an expression; returns the columns that it names. Raises SpannerError."""
    tokens = list(tokenize(text, schema.dialect))
    words = set(list_words(tokens))
    for number, token in enumerate(tokens):
        if token.text == "@" and tokens[number + 1].kind is TokenKind.WORD:
            raise invalid_argument(f"Query parameter '{tokens[number + 1].text}' not found")
    if "SELECT" in words:
        raise invalid_argument(f"Cannot use non-scalar expressions inside {use}.")
    if any(word.startswith("PENDING_COMMIT_TIMESTAMP") for word in words):
        raise invalid_argument(
            "The PENDING_COMMIT_TIMESTAMP() function may only be used as a value for INSERT or"
            " UPDATE of an appropriately typed column. It cannot be used in SELECT, or as the input"
            " to any other scalar expression."
        )
    try:
        columns = compile_expression(text, table, schema, drop_length(target)).columns
    except SpannerError as error:
        message = error.message
        if message.removeprefix(UNKNOWN_FUNCTION).upper() in GOOGLESQL_ONLY:
            message = f"Unsupported built-in function: {message.removeprefix(UNKNOWN_FUNCTION)}"
        raise locate_error(SpannerError(error.code, message), f"({text})") from error
    if not may_vary:
        refuse_volatile_functions(tokens, use)
        for item in list_called_functions(schema, [text]):
            body = read_function(item.text, list_bundle_types(schema)).body or ""
            refuse_volatile_functions(list(tokenize(body, schema.dialect)), use)
    refuse_depth(text, schema)
    return columns


def refuse_cycles(schema: Schema, table: Table) -> None:
    """No generated column is made of itself."""
    done: set[str] = set()
    for column in table.columns:
        follow_sources(schema, table, column, [], done)


def follow_sources(
    schema: Schema, table: Table, column: Column, path: list[str], done: set[str]
) -> None:
    """Walks to what a column is made of; raises when it comes to a column of its path again."""
    if column.generated is None or column.name in done:
        return
    if column.name in path:
        raise failed_precondition(
            "Cycle detected while analysing generated column, which include objects"
            f" ({','.join(path)})"
        )
    for name in sources(schema, table, column):
        source = table.column(name)
        if source is not None:
            follow_sources(schema, table, source, [*path, column.name], done)
    done.add(column.name)


def refuse_changes_under_checks(change: SchemaChange) -> None:
    """A column of a CHECK stays, with its type."""
    for table, column in change.dropped_columns():
        for check in checks_over(change.before, table, column):
            raise failed_precondition(
                f"Cannot drop column `{column.name}` on which there is a dependent check"
                f" constraint: {check.label}."
            )
    for table, old, _, column in change.altered_columns():
        for check in checks_over(change.before, table, old):
            if drop_length(old.type) != drop_length(column.type):
                raise invalid_argument(
                    f"Cannot change the data type of column `{column.name}`, which is used by check"
                    f" constraint `{check.label}`."
                )
            refuse_commit_timestamp(column)


def checks_over(schema: Schema, table: Table, column: Column) -> Iterator[Check]:
    """The CHECKs of a table that name a column."""
    for check in table.checks:
        if column.name in compile_expression(check.expression, table, schema).columns:
            yield check
