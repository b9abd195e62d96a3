"""The user's functions follow what they read, and tables and views the functions that they call: a
schema in which one of them is invalid is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from emulator.errors import SpannerError, failed_precondition, invalid_argument
from emulator.sql.compile import compile_expression, compile_function
from emulator.storage.history import table_source
from emulator.values.types import BOOL
from spanner_schema.model import steps
from spanner_schema.model.column_types import Type
from spanner_schema.model.names import same_name
from spanner_schema.model.schema import Schema, Table, Verbatim
from spanner_schema.syntax.functions import (
    KIND,
    find_calls,
    find_function,
    list_called_functions,
    list_functions,
    read_function,
)
from spanner_schema.syntax.protos import list_bundle_types

TABLES = table_source((), counted=False)


@dataclass(frozen=True, slots=True)
class TableExpression:
    """An expression of a table: of what kind of object and of which it is, its text, and the type
    that it has to have."""

    kind: str
    name: str
    text: str
    table: Table
    target: Type | None


def check_uses(after: Schema, step: steps.Step) -> None:
    """Refuses a step after which a function, or an expression of a table, calls what is not there.

    Raises FAILED_PRECONDITION.
    """
    if isinstance(step, steps.DropVerbatim) and step.kind == KIND:
        refuse_drop_of_used_function(after, step.name)
    if isinstance(step, steps.CreateVerbatim) and step.item.kind == KIND:
        check_callers(after, step.item.name)


def check_function(before: Schema, after: Schema, step: steps.Step, item: Verbatim) -> set[str]:
    """What views and functions a function reads, in lower case. Raises SpannerError for a step that
    makes it invalid."""
    defined = (
        isinstance(step, steps.CreateVerbatim)
        and step.item.kind == KIND
        and same_name(step.item.name, item.name)
    )
    try:
        if defined:
            refuse_form(after, item)
        return {*compile_function(after, item, TABLES)} - {item.name.casefold()}
    except SpannerError as error:
        raise explain(before, step, item, error, defined=defined) from error


def name_kind(kind: str) -> str:
    """What messages call a kind of objects."""
    return "UDF" if kind == KIND else kind


def refuse_form(schema: Schema, item: Verbatim) -> None:
    """What the definition of a function may not have. Raises INVALID_ARGUMENT."""
    function = read_function(item.text, list_bundle_types(schema))
    seen: set[str] = set()
    for parameter in function.parameters:
        if parameter.type.sized:
            raise invalid_argument("Parameterized types are not supported in function arguments")
        if parameter.name.casefold() in seen:
            raise invalid_argument(f"Duplicate argument name {parameter.name}")
        seen.add(parameter.name.casefold())
    if function.returns is not None and function.returns.sized:
        raise invalid_argument("Parameterized types are not supported in function signatures")


def explain(
    before: Schema, step: steps.Step, item: Verbatim, error: SpannerError, *, defined: bool
) -> SpannerError:
    """Spanner's error for a step that makes a function invalid."""
    if defined and find_function(before, item.name) is not None:
        if "is recursive" in error.message:
            return failed_precondition(
                f"Cannot replace FUNCTION `{item.name}` because new definition is recursive."
            )
        return failed_precondition(
            f"Cannot replace FUNCTION `{item.name}` because new definition is invalid with the"
            f" following diagnostic message:\n\n{error.message}"
        )
    if defined:
        return SpannerError(
            error.code, f"Error analyzing the definition of function `{item.name}`: {error.message}"
        )
    match step:
        case steps.DropTable(name) | steps.DropIndex(name) | steps.DropVerbatim(_, name):
            kind = {steps.DropTable: "TABLE", steps.DropIndex: "INDEX"}.get(type(step))
            kind = name_kind(step.kind) if isinstance(step, steps.DropVerbatim) else kind
        case steps.DropColumn(_, name):
            kind = "column"
        case steps.CreateVerbatim(changed):
            return becomes_invalid(changed, f"function `{item.name}`", error)
        case _:
            return failed_precondition(
                f"The new definition causes the definition of function `{item.name}` to become"
                f" invalid with the following diagnostic message: {error.message}"
            )
    return failed_precondition(
        f"Cannot drop {kind} `{name}` on which there is a dependent function: {item.name}."
    )


def becomes_invalid(changed: Verbatim, what: str, error: SpannerError) -> SpannerError:
    """The error for a new definition that something else cannot follow."""
    kind = name_kind(changed.kind)
    return failed_precondition(
        f"Cannot alter {kind} `{changed.name}`. The new definition causes the definition of {what}"
        f" to become invalid with the following diagnostic message: {error.message}"
    )


def refuse_drop_of_used_function(schema: Schema, name: str) -> None:
    """A function that a table or a function calls cannot be dropped; views are judged as views."""
    dropped = f"Cannot drop UDF `{name}` on which there is a dependent"
    for item in list_functions(schema):
        body = read_function(item.text, list_bundle_types(schema)).body or ""
        if name.casefold() in find_calls(body):
            raise failed_precondition(f"{dropped} function: {item.name}.")
    for each in list_table_expressions(schema):
        if name.casefold() in find_calls(each.text):
            raise failed_precondition(f"{dropped} {each.kind}: {each.name}.")


def check_callers(schema: Schema, name: str) -> None:
    """The expressions of tables that call a function are valid with its new definition."""
    item = find_function(schema, name)
    for each in list_table_expressions(schema) if item is not None else ():
        if item not in list_called_functions(schema, [each.text]):
            continue
        try:
            compile_expression(each.text, each.table, schema, each.target)
        except SpannerError as error:
            assert item is not None
            raise becomes_invalid(item, f"{each.kind} `{each.name}`", error) from error


def list_table_expressions(schema: Schema) -> Iterator[TableExpression]:
    """The expressions of columns and CHECKs of every table."""
    for table in schema.tables:
        for column in table.columns:
            name = f"{table.name}.{column.name}"
            for text in filter(None, (column.default, column.on_update, column.generated)):
                yield TableExpression("column", name, text, table, column.type)
        for check in table.checks:
            yield TableExpression("check constraint", check.label, check.expression, table, BOOL)
