"""The functions of the PostgreSQL dialect: what they take, what they give."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql import sequences
from emulator.sql.coercions import Reach, becomes
from emulator.sql.compiler import Call, Compiler
from emulator.sql.functions import GOOGLESQL, POSTGRESQL
from emulator.sql.functions.served import Signature, merge_signatures
from emulator.sql.postgres import array_calls, casts, json_calls, matching, operators
from emulator.sql.postgres.type_names import show_type
from emulator.sql.scope import Context, Scope
from emulator.sql.token_calls import POSTGRES_CALLS as TOKEN_CALLS
from emulator.sql.types import Typed
from emulator.values.sqlite_text import quote_text
from emulator.values.types import (
    BOOL,
    DATE,
    FLOAT64,
    INT64,
    INTERVAL,
    STRING,
    TIMESTAMP,
)
from spanner_schema.model.column_types import Type
from spanner_schema.syntax import sequences as ddl_sequences

UNSUPPORTED = """
spanner.ml_predict_row spanner.search spanner.search_ngrams
spanner.search_substring spanner.score spanner.score_ngrams spanner.snippet
spanner.debug_tokenlist
"""
"""Functions that Spanner has in this dialect and this server has not."""


SIGNATURES = merge_signatures(
    [module.SERVED.signatures for module in POSTGRESQL]
    + [module.SERVED.shared for module in GOOGLESQL]
)
CONSTANTS = {"CURRENT_SCHEMA": "public", "VERSION": "PostgreSQL 14.1"}


def compile_call(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """A function, or what is written like one."""
    special = CALLS.get(node.name)
    if special is not None:
        return special(compiler, node, scope, context)
    name = node.name.lower()
    if node.name not in SIGNATURES:
        if name in UNSUPPORTED.split():
            raise errors.unimplemented(f"the function {name}")
        shown = show_types([compiler.compile(each, scope, context) for each in node.expressions])
        raise errors.invalid_argument(f"function {name}({shown}) does not exist")
    items = [compiler.compile(each, scope, context) for each in node.expressions]
    return choose_overload(node.name, items, context)


def choose_overload(name: str, items: list[Typed], context: Context) -> Typed:
    """A call by the signature that needs the fewest conversions."""
    signature = find_signature(name, items)
    types = signature.argument_types(len(items))
    converted = [casts.coerce(i, t, context) for i, t in zip(items, types, strict=True)]
    listed = ", ".join(each.sql for each in converted if each is not None)
    return Typed(f"{signature.function}({listed})", signature.result)


def find_signature(name: str, items: list[Typed]) -> Signature:
    """The signature that needs the fewest conversions. Raises INVALID_ARGUMENT."""
    fitting = [each for each in SIGNATURES[name] if each.fits(len(items))]
    for signature in sorted(fitting, key=lambda each: count_conversions(each, items)):
        types = signature.argument_types(len(items))
        if all(may_be(item, type_) for item, type_ in zip(items, types, strict=True)):
            return signature
    raise errors.invalid_argument(f"function {name.lower()}({show_types(items)}) does not exist")


def show_types(items: list[Typed]) -> str:
    """The types of arguments as messages write them."""
    return ", ".join("unknown" if casts.is_unknown(i) else show_type(i.type) for i in items)


def may_be(item: Typed, type_: Type) -> bool:
    """Whether an argument becomes of a type by itself."""
    if item.type is None or casts.is_unknown(item) or item.type == type_:
        return True
    return becomes(item.type.code, type_.code, casts.POSTGRESQL, Reach.EXPRESSION)


def count_conversions(signature: Signature, items: list[Typed]) -> int:
    """How many arguments are of another type; a text without a type is a text first."""
    count = 0
    for item, type_ in zip(items, signature.argument_types(len(items)), strict=True):
        if item.type is None or casts.is_unknown(item):
            count += type_ != STRING
        else:
            count += 2 * (item.type != type_)
    return count


def compile_coalesce(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """COALESCE."""
    items = [compiler.compile(each, scope, context) for each in node.expressions]
    unified, type_ = casts.unify(items, context, "COALESCE")
    if len(unified) == 1:
        return Typed(unified[0].sql, type_)
    return Typed(f"coalesce({', '.join(each.sql for each in unified)})", type_)


def compile_nullif(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """NULLIF: the first, unless both are equal."""
    items = [compiler.compile(each, scope, context) for each in node.expressions]
    (left, right), type_ = matching.match(items, "=", context)
    test = matching.compare(left, "=", right, type_)
    first = items[0] if items[0].type is not None else left
    return Typed(f"CASE WHEN {test} THEN NULL ELSE {first.sql} END", first.type)


def compile_extreme(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """GREATEST and LEAST: NULLs do not count."""
    items = [compiler.compile(each, scope, context) for each in node.expressions]
    unified, type_ = casts.unify(items, context, node.name)
    sign = ">=" if node.name == "GREATEST" else "<="
    result = unified[0]
    for item in unified[1:]:
        test = matching.compare(result, sign, item, type_)
        result = Typed(
            f"CASE WHEN {item.sql} IS NULL OR {test} THEN {result.sql} ELSE {item.sql} END", type_
        )
    return Typed(f"({result.sql})", type_)


def compile_concat(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """concat and concat_ws: of values of any type."""
    items = [compiler.compile(each, scope, context) for each in node.expressions]
    if not items:
        raise errors.invalid_argument(f"function {node.name.lower()}() does not exist")
    texts = [concatenated_text(item, context) for item in items]
    listed = ", ".join(each.sql for each in texts if each is not None)
    return Typed(f"pg_{node.name.lower()}({listed})", STRING)


def concatenated_text(item: Typed, context: Context) -> Typed | None:
    """An argument of concat as text: a boolean is t or f there."""
    if item.type == BOOL:
        return Typed(f"CASE {item.sql} WHEN 1 THEN 't' WHEN 0 THEN 'f' END", STRING)
    return casts.assign(item, STRING, context)


APPROXIMATE = "APPROX_"
INTERVAL_PARTS = ("years", "months", "weeks", "days", "hours", "mins", "secs")


def compile_make_interval(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """make_interval, by place and by name; what is missing is 0."""
    given: dict[str, Typed] = {}
    for place, each in enumerate(node.expressions):
        named = isinstance(each, exp.Kwarg)
        name = each.this.name if named else (*INTERVAL_PARTS, "")[min(place, len(INTERVAL_PARTS))]
        if name not in INTERVAL_PARTS or name in given:
            raise errors.invalid_argument("function make_interval does not exist with these names")
        item = compiler.compile(each.expression if named else each, scope, context)
        converted = casts.coerce(item, FLOAT64 if name == "secs" else INT64, context)
        if converted is None:
            raise errors.invalid_argument(f"make_interval: {name} is of another type")
        given[name] = converted
    zero = Typed("0", INT64)
    listed = ", ".join(given.get(name, zero).sql for name in INTERVAL_PARTS)
    return Typed(f"pg_make_interval({listed})", INTERVAL)


def compile_approximate(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """spanner.approx_cosine_distance and its like: exact here; options change no exact distance."""
    vectors = [
        compiler.compile(each, scope, context)
        for each in node.expressions
        if not isinstance(each, exp.Kwarg)
    ]
    for each in node.expressions:
        if isinstance(each, exp.Kwarg):
            if each.this.name != "options":
                raise errors.invalid_argument(
                    f"function {node.name.lower()} has no argument {each.this.name}"
                )
            compiler.compile(each.expression, scope, context)
    return choose_overload(node.name.replace(APPROXIMATE, ""), vectors, context)


def compile_now(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """now() and CURRENT_TIMESTAMP: one for the whole statement."""
    refuse_arguments(node)
    context.uses_now = True
    return Typed(":now_", TIMESTAMP)


def compile_constant(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """current_schema() and version(), which clients ask for when they connect."""
    refuse_arguments(node)
    return Typed(quote_text(CONSTANTS[node.name]), STRING)


def compile_today(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """CURRENT_DATE."""
    refuse_arguments(node)
    context.uses_now = True
    return Typed("pg_timestamptz_to_date(:now_)", DATE)


def compile_pending(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """spanner.pending_commit_timestamp()."""
    refuse_arguments(node)
    context.uses_commit = True
    return Typed(":commit_", TIMESTAMP)


def refuse_arguments(node: exp.Anonymous) -> None:
    """Raises INVALID_ARGUMENT where a function has any."""
    if node.expressions:
        raise errors.invalid_argument(f"function {node.name.lower()} takes no arguments")


def compile_nextval(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """nextval('sequence'): drawn anew for each row."""
    context.draws = True
    return Typed(f"next_value_({quote_text(counter_of(compiler, node, scope, context))})", INT64)


def compile_sequence_state(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """spanner.get_internal_sequence_state('sequence')."""
    return sequences.counter_state(counter_of(compiler, node, scope, context))


def without_cast(node: exp.Expr) -> exp.Expr:
    """A text without its type: 's'::text names what 's' names."""
    if not isinstance(node, exp.Cast):
        return node
    written = node.args["to"]
    for name in ("this", "kind"):
        written.args.get(name)
    inner: exp.Expr = node.this
    return inner


def counter_of(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> str:
    """The counter of the sequence that a text names."""
    items = [compiler.compile(without_cast(each), scope, context) for each in node.expressions]
    if len(items) != 1 or not casts.is_unknown(items[0]):
        raise errors.unimplemented(f"{node.name.lower()} of anything but a name in quotes")
    written = str(items[0].literal)
    name = written[1:-1] if written.startswith('"') else written.lower()
    sequence = ddl_sequences.find_sequence(context.schema, name.removeprefix("public."))
    if sequence is None:
        raise errors.invalid_argument(f"Sequence not found: {name}")
    return sequences.sequence_counter(sequence.name)


CALLS: dict[str, Call] = {
    **operators.CALLS,
    "COALESCE": compile_coalesce,
    "NULLIF": compile_nullif,
    **dict.fromkeys(("GREATEST", "LEAST"), compile_extreme),
    **dict.fromkeys(("CONCAT", "CONCAT_WS"), compile_concat),
    **array_calls.CALLS,
    **json_calls.CALLS,
    **TOKEN_CALLS,
    "MAKE_INTERVAL": compile_make_interval,
    **{
        f"SPANNER.{APPROXIMATE}{name}": compile_approximate
        for name in ("COSINE_DISTANCE", "EUCLIDEAN_DISTANCE", "DOT_PRODUCT")
    },
    **dict.fromkeys(("NOW", "CURRENT_TIMESTAMP"), compile_now),
    "CURRENT_DATE": compile_today,
    **dict.fromkeys(CONSTANTS, compile_constant),
    "PENDING_COMMIT_TIMESTAMP": compile_pending,
    "NEXTVAL": compile_nextval,
    "SPANNER.GET_INTERNAL_SEQUENCE_STATE": compile_sequence_state,
    "SPANNER.GET_TABLE_COLUMN_IDENTITY_STATE": sequences.FUNCTIONS[
        "GET_TABLE_COLUMN_IDENTITY_STATE"
    ],
}
