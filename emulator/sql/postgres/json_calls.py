"""jsonb of the PostgreSQL dialect: what builds documents, and operators that change them."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.compiler import Call, Compiler
from emulator.sql.postgres import arithmetic, casts, matching
from emulator.sql.postgres.array_calls import no_function, operands
from emulator.sql.postgres.operator_trees import OPERATOR
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed
from emulator.values.types import BOOL, INT64, PG_JSONB, STRING, array

TEXTS = array(STRING)


def kind_of(item: Typed) -> str:
    """The name by which a function at run time knows the type of a value."""
    if item.type is None:
        return "STRING"
    if item.type.element is not None:
        return f"ARRAY {item.type.element.code.value}"
    return item.type.code.value


def compile_to_jsonb(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """to_jsonb(value)."""
    items = operands(compiler, node, scope, context)
    if len(items) != 1:
        raise no_function("to_jsonb", items)
    if casts.is_unknown(items[0]) or items[0].type is None:
        raise errors.invalid_argument(
            "could not determine polymorphic type because input has type unknown"
        )
    return Typed(f"pg_to_jsonb({items[0].sql}, '{kind_of(items[0])}')", PG_JSONB)


def compile_build(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """jsonb_build_array, jsonb_build_object: of values of any type, NULL is null."""
    items = operands(compiler, node, scope, context)
    listed = ", ".join(f"{item.sql}, '{kind_of(item)}'" for item in items)
    return Typed(f"pg_{node.name.lower()}({listed})", PG_JSONB)


def compile_exists_some(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """?| and ?&: names out of an array."""
    sign = node.name.removeprefix(OPERATOR)
    items = operands(compiler, node, scope, context)
    document = casts.coerce(items[0], PG_JSONB, context)
    names = casts.coerce(items[1], TEXTS, context)
    if document is None or names is None:
        raise matching.no_operator(sign, items)
    word = "any" if sign == "?|" else "all"
    return Typed(f"pg_jsonb_exists_{word}({document.sql}, {names.sql})", BOOL)


def compile_delete_path(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """jsonb #- text[]."""
    items = operands(compiler, node, scope, context)
    document = casts.coerce(items[0], PG_JSONB, context)
    path = casts.coerce(items[1], TEXTS, context)
    if document is None or path is None:
        raise matching.no_operator("#-", items)
    return Typed(f"pg_jsonb_delete_path({document.sql}, {path.sql})", PG_JSONB)


def delete_key(items: list[Typed], context: Context) -> Typed:
    """jsonb - text, jsonb - bigint."""
    document, key = items
    plain = key if key.type == INT64 else casts.coerce(key, STRING, context)
    if document.type != PG_JSONB or plain is None:
        raise matching.no_operator("-", items)
    return Typed(f"pg_jsonb_delete({document.sql}, {plain.sql})", PG_JSONB)


def compile_minus(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """- of jsonb, else of numbers and times."""
    items = operands(compiler, node, scope, context)
    if items[0].type == PG_JSONB:
        return delete_key(items, context)
    return arithmetic.arithmetic("-", items, context)


CALLS: dict[str, Call] = {
    "TO_JSONB": compile_to_jsonb,
    **dict.fromkeys(("JSONB_BUILD_ARRAY", "JSONB_BUILD_OBJECT"), compile_build),
    **dict.fromkeys((f"{OPERATOR}?|", f"{OPERATOR}?&"), compile_exists_some),
    f"{OPERATOR}#-": compile_delete_path,
    f"{OPERATOR}-": compile_minus,
}
