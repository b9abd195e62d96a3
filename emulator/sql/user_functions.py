"""Functions that the schema defines: a call stands for the body, in which the arguments have their
values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from sqlglot import exp

from emulator import errors
from emulator.limits import QUERY_CHARACTERS_MAX
from emulator.sql.aggregates import has_aggregate
from emulator.sql.coerce import coerce
from emulator.sql.compiler import Compiler
from emulator.sql.functions.text import RANDOM
from emulator.sql.googlesql.statement_trees import read_expression
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed, name_of
from emulator.values.sqlite_text import quote_name
from spanner_schema.syntax.functions import Function, find_function, read_function
from spanner_schema.syntax.protos import list_bundle_types

SIMPLE = re.compile(r"""(?:"(?:[^"]|"")*"\.)?"(?:[^"]|"")*"|:\w+|NULL|-?[\d.]+|'(?:[^']|'')*'""")
"""What costs nothing to be written twice: a column, a parameter, a constant."""
VOLATILE = ("random()", "next_value_(", *RANDOM)


def parse_body(body: str, type_names: tuple[str, ...]) -> exp.Expr:
    """The tree of a function's body. Raises INVALID_ARGUMENT, UNIMPLEMENTED for an unknown form."""
    return read_expression(body, type_names)


read_body = lru_cache(maxsize=1_000)(parse_body)
"""The same tree for the same text: nothing changes it."""


def call_function(
    compiler: Compiler, name: str, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed | None:
    """A call of a function of the schema; None where there is none of this name."""
    item = find_function(context.schema, name)
    if item is None:
        return None
    function = read_function(item.text, list_bundle_types(context.schema))
    given = [compiler.compile(each, scope, context) for each in node.expressions]
    items = fit_arguments(compiler, function, given, context)
    context.functions[item.name.casefold()] = None
    tree = read_body(function.body or "", list_bundle_types(context.schema))
    bound = any(needs_binding(each, n, function, tree) for n, each in enumerate(items))
    aggregated = any(has_aggregate(each) or each.find(exp.Window) for each in node.expressions)
    if not bound or context.of_schema or (aggregated and not tree.find(exp.Query)):
        return expand(compiler, function, tree, items, context)
    refuse_unbindable(items, function, aggregated=aggregated)
    alias = context.alias()
    names = [f"a{number}" for number in range(len(items))]
    inner = [
        replace(each, sql=f"{quote_name(alias)}.{quote_name(column)}")
        for each, column in zip(items, names, strict=True)
    ]
    result = expand(compiler, function, tree, inner, context)
    values = ", ".join(f"{i.sql} AS {quote_name(n)}" for i, n in zip(items, names, strict=True))
    return replace(
        result, sql=f"(SELECT {result.sql} FROM (SELECT {values}) AS {quote_name(alias)})"
    )


def fit_arguments(
    compiler: Compiler, function: Function, given: Sequence[Typed], context: Context
) -> list[Typed]:
    """The arguments as the types that the function takes; those left out have their defaults."""
    parameters = function.parameters
    fitting: list[Typed | None] = []
    if len(given) <= len(parameters):
        fitting = [coerce(i, p.type.type, context) for i, p in zip(given, parameters, strict=False)]
        for parameter in parameters[len(given) :]:
            default = None
            if parameter.default is not None:
                tree = read_body(parameter.default, list_bundle_types(context.schema))
                item = compiler.compile(tree, Scope(), context)
                default = coerce(item, parameter.type.type, context)
            fitting.append(default)
    items = [each for each in fitting if each is not None]
    if len(items) != len(parameters) or len(given) > len(parameters):
        types = ", ".join(name_of(each.type) for each in given)
        takes = ", ".join(name_of(each.type.type) for each in parameters)
        raise errors.invalid_argument(
            f"No matching signature for function {function.name.upper()} for argument types:"
            f" {types}. Supported signature: {function.name.upper()}({takes})"
        )
    return items


def needs_binding(item: Typed, number: int, function: Function, tree: exp.Expr) -> bool:
    """Whether an argument must be computed once, before the body: it is used twice, or names of
    the body's queries could hide what it is about."""
    if SIMPLE.fullmatch(item.sql) and not item.sql.startswith('"'):
        return False
    name = function.parameters[number].name.casefold()
    uses = sum(each.parts[0].name.casefold() == name for each in tree.find_all(exp.Column))
    is_column = SIMPLE.fullmatch(item.sql) is not None
    return bool(uses) and (tree.find(exp.Query) is not None or (uses > 1 and not is_column))


def refuse_unbindable(items: Sequence[Typed], function: Function, *, aggregated: bool) -> None:
    """What SQLite would compute over other rows, or once for all rows, in a query of its own."""
    if aggregated:
        raise errors.unimplemented(
            f"An aggregate as an argument of the function {function.name}, which has a query,"
        )
    if any(word in item.sql for word in VOLATILE for item in items):
        raise errors.unimplemented(
            f"A value of chance as an argument of the function {function.name}, which uses it twice"
            " or has a query,"
        )


def expand(
    compiler: Compiler,
    function: Function,
    tree: exp.Expr,
    items: Sequence[Typed],
    context: Context,
) -> Typed:
    """The body, given as a tree, over arguments. Raises INVALID_ARGUMENT for a body of another
    type than the function declares."""
    name = function.name.replace("`", "").casefold()
    if name in context.open_functions:
        raise errors.failed_precondition(
            f"The definition of FUNCTION {function.name} is recursive."
        )
    if context.of_schema and tree.find(exp.Query):
        raise errors.invalid_argument(
            f"The function {function.name} has a query, which an expression of a table may not have"
        )
    arguments = {
        parameter.name.casefold(): replace(
            item, literal=None, parts=None, parameter=None, column=parameter.name
        )
        for parameter, item in zip(function.parameters, items, strict=True)
    }
    context.open_functions.append(name)
    outside, context.with_queries = context.with_queries, {}
    try:
        body = compiler.compile(tree, Scope(locals=arguments), context)
    finally:
        context.open_functions.pop()
        context.with_queries = outside
    if len(body.sql) > QUERY_CHARACTERS_MAX:
        raise errors.invalid_argument(
            f"The function {function.name} is too large once the functions that it calls are"
            " inlined"
        )
    if function.returns is None:
        return replace(body, literal=None, parts=None, parameter=None, column="")
    result = coerce(body, function.returns.type, context)
    if result is None:
        raise errors.invalid_argument(
            f"Function declared to return {name_of(function.returns.type)} but the function body"
            f" produces incompatible type {name_of(body.type)}"
        )
    return replace(result, sql=f"({result.sql})", literal=None, parts=None, column="")
