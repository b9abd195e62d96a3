"""Function calls: what Spanner's functions take, give, and are called in SQLite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from ddl.schema import Type, TypeCode
from emulator import errors
from emulator.sql import sequences
from emulator.sql.coerce import coerce, require, unify
from emulator.sql.scope import Context, Scope
from emulator.sql.types import (
    BOOL,
    BYTES,
    DATE,
    FLOAT64,
    FLOATS,
    INT64,
    JSON,
    NUMBERS,
    NUMERIC,
    STRING,
    TIMESTAMP,
    UUID,
    Typed,
    array,
    name_of,
)

Compile = Callable[[exp.Expr, Scope, Context], Typed]
DEFAULT_ZONE = "'America/Los_Angeles'"


@dataclass(frozen=True, slots=True)
class Signature:
    """Arguments in order; the last ``optional`` ones may be left out; ``rest`` repeats the last."""

    arguments: tuple[Type, ...]
    result: Type
    function: str
    optional: int = 0
    rest: bool = False


def signatures() -> dict[str, list[Signature]]:  # noqa: PLR0915 (a table, line by line)
    """The plain functions, by name; each overload in the order in which it is tried."""
    table: dict[str, list[Signature]] = {}

    def add(
        names: str, arguments: list[Type], result: Type, function: str = "", **more: int
    ) -> None:
        for name in names.split():
            signature = Signature(
                tuple(arguments),
                result,
                function or f"fn_{name.lower()}",
                more.get("optional", 0),
                bool(more.get("rest")),
            )
            table.setdefault(name, []).append(signature)

    for text, suffix in ((STRING, ""), (BYTES, "_bytes")):
        add("FARM_FINGERPRINT", [text], INT64, "farm_fingerprint")
        add("LENGTH", [text], INT64, f"fn_length{suffix}")
        add("BYTE_LENGTH OCTET_LENGTH", [text], INT64, "fn_byte_length")
        add("LOWER UPPER REVERSE", [text], text)
        add("TRIM LTRIM RTRIM", [text, text], text, optional=1)
        add("SUBSTR SUBSTRING", [text, INT64, INT64], text, "fn_substr", optional=1)
        add("STARTS_WITH ENDS_WITH", [text, text], BOOL)
        add("STRPOS", [text, text], INT64)
        add("REPLACE", [text, text, text], text)
        add("REPEAT", [text, INT64], text)
        add("LPAD RPAD", [text, INT64, text], text, optional=1)
        add("SHA1 SHA256 SHA512 MD5", [text], BYTES)
        add("SPLIT", [text, text], array(text), optional=1)
        add("LEFT RIGHT", [text, INT64], text)
    add("CHAR_LENGTH CHARACTER_LENGTH", [STRING], INT64, "fn_length")
    add("CONCAT", [STRING], STRING, "fn_concat", rest=1)
    add("CONCAT", [BYTES], BYTES, "fn_concat_bytes", rest=1)
    add("INITCAP", [STRING], STRING)
    add("TO_HEX TO_BASE64", [BYTES], STRING)
    add("FROM_HEX FROM_BASE64", [STRING], BYTES)
    add("REGEXP_CONTAINS", [STRING, STRING], BOOL)
    add("REGEXP_EXTRACT", [STRING, STRING], STRING)
    add("REGEXP_REPLACE", [STRING, STRING, STRING], STRING)
    add("SAFE_CONVERT_BYTES_TO_STRING", [BYTES], STRING)
    add("GENERATE_UUID", [], STRING)
    add("NEW_UUID", [], UUID, "fn_generate_uuid")
    for number, kind in ((INT64, "int64"), (NUMERIC, "numeric"), (FLOAT64, "float64")):
        add("ABS SIGN", [number], number, f"fn_abs_{kind}")
        table["SIGN"][-1] = Signature((number,), number, f"fn_sign_{kind}")
        if number is not FLOAT64:
            add("MOD", [number, number], number, f"{kind}_mod")
            add("DIV", [number, number], number, f"{kind}_div")
    for name in ("SAFE_ADD", "SAFE_SUBTRACT", "SAFE_MULTIPLY"):
        operator = {"SAFE_ADD": "add", "SAFE_SUBTRACT": "sub", "SAFE_MULTIPLY": "mul"}[name]
        for number, kind in ((INT64, "int64"), (NUMERIC, "numeric"), (FLOAT64, "float64")):
            add(name, [number, number], number, f"safe_{kind}_{operator}")
    add("SAFE_DIVIDE", [FLOAT64, FLOAT64], FLOAT64, "safe_float64_div")
    add("IEEE_DIVIDE", [FLOAT64, FLOAT64], FLOAT64)
    add("CEIL CEILING", [NUMERIC], NUMERIC, "fn_ceil_numeric")
    add("FLOOR", [NUMERIC], NUMERIC, "fn_floor_numeric")
    add("ROUND", [NUMERIC, INT64], NUMERIC, "fn_round_numeric", optional=1)
    add("TRUNC", [NUMERIC, INT64], NUMERIC, "fn_trunc_numeric", optional=1)
    add("CEIL CEILING", [FLOAT64], FLOAT64, "fn_ceil")
    add("FLOOR", [FLOAT64], FLOAT64)
    add("ROUND TRUNC", [FLOAT64, INT64], FLOAT64, optional=1)
    add("SQRT EXP LN LOG10 SIN COS TAN ASIN ACOS ATAN", [FLOAT64], FLOAT64)
    add("POW POWER", [FLOAT64, FLOAT64], FLOAT64, "fn_pow")
    add("ATAN2", [FLOAT64, FLOAT64], FLOAT64)
    add("LOG", [FLOAT64, FLOAT64], FLOAT64, optional=1)
    add("IS_NAN IS_INF", [FLOAT64], BOOL)
    add("BIT_COUNT", [INT64], INT64)
    add("BIT_REVERSE", [INT64, BOOL], INT64)
    for unit in ("SECONDS", "MILLIS", "MICROS"):
        add(f"UNIX_{unit}", [TIMESTAMP], INT64)
        add(f"TIMESTAMP_{unit}", [INT64], TIMESTAMP)
    add("UNIX_DATE", [DATE], INT64)
    add("DATE_FROM_UNIX_DATE", [INT64], DATE)
    add("PARSE_DATE", [STRING, STRING], DATE)
    add("PARSE_TIMESTAMP", [STRING, STRING, STRING], TIMESTAMP, optional=1)
    add("FORMAT_DATE", [STRING, DATE], STRING)
    add("FORMAT_TIMESTAMP", [STRING, TIMESTAMP, STRING], STRING, optional=1)
    add("STRING", [TIMESTAMP, STRING], STRING, "fn_string_timestamp", optional=1)
    add("TIMESTAMP", [STRING, STRING], TIMESTAMP, "fn_timestamp_string", optional=1)
    add("TIMESTAMP", [DATE, STRING], TIMESTAMP, "fn_timestamp_date", optional=1)
    add("DATE", [INT64, INT64, INT64], DATE, "fn_date")
    add("DATE", [TIMESTAMP, STRING], DATE, "fn_date_timestamp", optional=1)
    add("PARSE_JSON", [STRING], JSON)
    add("TO_JSON_STRING", [JSON], STRING)
    add("JSON_VALUE", [JSON, STRING], STRING, optional=1)
    add("JSON_QUERY", [JSON, STRING], JSON, optional=1)
    return table


SIGNATURES = signatures()


def call(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """A function call; names are without regard to case."""
    name = node.name.upper()
    safe = name.startswith("SAFE.")
    if name in AGGREGATE_CALLS:
        return aggregate(compile_, node, scope, context)
    if name in SPECIAL:
        return SPECIAL[name](compile_, node, scope, context)
    if name not in SIGNATURES or safe:
        raise (
            errors.invalid_argument(f"Function not found: {node.name}")
            if not safe
            else (errors.unimplemented(f"the function {node.name}"))
        )
    items = [compile_(each, scope, context) for each in node.expressions]
    return overload(name, items, context)


def overload(name: str, items: list[Typed], context: Context) -> Typed:
    """The first signature that the arguments fit, exactly or by conversion."""
    fitting = [s for s in SIGNATURES[name] if fits(s, items)]
    exact = [
        s
        for s in fitting
        if all(
            i.type is None or i.type == t for i, t in zip(items, wanted(s, len(items)), strict=True)
        )
    ]
    for signature in exact + fitting:
        types = wanted(signature, len(items))
        converted = [coerce(i, t, context) for i, t in zip(items, types, strict=True)]
        if all(each is not None for each in converted):
            listed = ", ".join(each.sql for each in converted if each is not None)
            return Typed(f"{signature.function}({listed})", signature.result)
    given = ", ".join(name_of(item.type) for item in items)
    raise errors.invalid_argument(
        f"No matching signature for function {name} for argument types: {given}"
    )


def wanted(signature: Signature, count: int) -> tuple[Type, ...]:
    """The types of so many arguments."""
    if signature.rest:
        return signature.arguments + signature.arguments[-1:] * (count - len(signature.arguments))
    return signature.arguments[:count]


def fits(signature: Signature, items: list[Typed]) -> bool:
    """True when the number of arguments is right."""
    most = len(signature.arguments)
    return most - signature.optional <= len(items) and (signature.rest or len(items) <= most)


def coalesce(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """COALESCE, IFNULL."""
    items = [compile_(each, scope, context) for each in node.expressions]
    unified, type_ = unify(items, context, f"function {node.name.upper()}")
    if len(unified) == 1:
        return Typed(unified[0].sql, type_)
    return Typed(f"COALESCE({', '.join(each.sql for each in unified)})", type_)


def null_if(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """NULLIF(a, b)."""
    items = [compile_(each, scope, context) for each in node.expressions]
    (left, right), type_ = unify(items, context, "function NULLIF")
    return Typed(f"NULLIF({left.sql}, {right.sql})", type_)


def if_call(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """IF(condition, a, b)."""
    test, *branches = [compile_(each, scope, context) for each in node.expressions]
    test = require(test, BOOL, context, "The condition of IF")
    (yes, no), type_ = unify(branches, context, "function IF")
    return Typed(f"CASE WHEN {test.sql} THEN {yes.sql} ELSE {no.sql} END", type_)


def extreme(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """GREATEST, LEAST: NULL when any argument is."""
    items = [compile_(each, scope, context) for each in node.expressions]
    unified, type_ = unify(items, context, f"function {node.name.upper()}")
    if type_.code in FLOATS:
        function = f"fn_{node.name.lower()}_float64"
    else:
        function = "max" if node.name.upper() == "GREATEST" else "min"
    if len(unified) == 1:
        return Typed(unified[0].sql, type_)
    return Typed(f"{function}({', '.join(each.sql for each in unified)})", type_)


def now(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """CURRENT_TIMESTAMP(): one for the whole statement."""
    context.uses_now = True
    return Typed(":now_", TIMESTAMP)


def today(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """CURRENT_DATE([zone])."""
    context.uses_now = True
    zone = DEFAULT_ZONE
    if node.expressions:
        item = compile_(node.expressions[0], scope, context)
        zone = require(item, STRING, context, "The zone of CURRENT_DATE").sql
    return Typed(f"fn_date_timestamp(:now_, {zone})", DATE)


def pending(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """PENDING_COMMIT_TIMESTAMP()."""
    context.uses_commit = True
    return Typed(":commit_", TIMESTAMP)


def array_length(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """ARRAY_LENGTH(array)."""
    item = array_argument(compile_, node, scope, context)
    return Typed(f"json_array_length({item.sql})", INT64)


def array_argument(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """The first argument, which must be an array."""
    item = compile_(node.expressions[0], scope, context)
    if item.type is None or item.type.code is not TypeCode.ARRAY:
        raise errors.invalid_argument(f"The argument of {node.name.upper()} must be an array")
    return item


def array_reverse(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """ARRAY_REVERSE(array)."""
    item = array_argument(compile_, node, scope, context)
    return Typed(f"fn_array_reverse({item.sql})", item.type)


def array_concat(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """ARRAY_CONCAT(a, b, ...)."""
    items = [compile_(each, scope, context) for each in node.expressions]
    unified, type_ = unify(items, context, "function ARRAY_CONCAT")
    return Typed(f"fn_concat_arrays({', '.join(each.sql for each in unified)})", type_)


def generate_array(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """GENERATE_ARRAY(first, last [, step]) of INT64."""
    items = [
        require(compile_(each, scope, context), INT64, context, "An argument of GENERATE_ARRAY")
        for each in node.expressions
    ]
    return Typed(f"fn_generate_array({', '.join(each.sql for each in items)})", array(INT64))


def time_shift(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """TIMESTAMP_ADD | TIMESTAMP_SUB | DATE_ADD | DATE_SUB (x, INTERVAL n unit)."""
    name = node.name.upper()
    type_ = TIMESTAMP if name.startswith("TIMESTAMP") else DATE
    item = require(compile_(node.expressions[0], scope, context), type_, context, f"{name}'s first")
    interval = node.expressions[1]
    if not isinstance(interval, exp.Interval) or interval.unit is None:
        raise errors.invalid_argument(f"The second argument of {name} must be an INTERVAL")
    amount = compile_(interval.this, scope, context)
    if amount.literal is not None and amount.type == STRING:
        amount = Typed(str(int(amount.literal)), INT64)
    amount = require(amount, INT64, context, "The amount of the INTERVAL")
    sign = "-" if name.endswith("SUB") else ""
    unit = interval.unit.name.upper()
    kind = "timestamp" if type_ is TIMESTAMP else "date"
    return Typed(f"fn_{kind}_add({item.sql}, {sign}({amount.sql}), '{unit}')", type_)


def time_difference(
    compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """TIMESTAMP_DIFF | DATE_DIFF (a, b, unit)."""
    name = node.name.upper()
    type_ = TIMESTAMP if name.startswith("TIMESTAMP") else DATE
    items = [
        require(compile_(each, scope, context), type_, context, f"An argument of {name}")
        for each in node.expressions[:2]
    ]
    unit = part(node.expressions[2])
    return Typed(f"fn_{name.lower()}({items[0].sql}, {items[1].sql}, '{unit}')", INT64)


def time_truncation(
    compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """TIMESTAMP_TRUNC(x, unit [, zone]) | DATE_TRUNC(x, unit)."""
    name = node.name.upper()
    type_ = TIMESTAMP if name.startswith("TIMESTAMP") else DATE
    item = require(compile_(node.expressions[0], scope, context), type_, context, f"{name}'s first")
    zone = DEFAULT_ZONE
    if len(node.expressions) > 2:
        zone = require(compile_(node.expressions[2], scope, context), STRING, context, "zone").sql
    extra = f", {zone}" if type_ is TIMESTAMP else ""
    return Typed(f"fn_{name.lower()}({item.sql}, '{part(node.expressions[1])}'{extra})", type_)


def part(node: exp.Expr) -> str:
    """A date part, which is a bare word."""
    if not node.name.isidentifier():
        raise errors.invalid_argument(f"A valid date part name is required, not {node.name!r}")
    return node.name.upper()


def error_call(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """ERROR(message)."""
    item = require(compile_(node.expressions[0], scope, context), STRING, context, "ERROR's")
    return Typed(f"fn_error({item.sql})", INT64)


SPECIAL = {
    "COALESCE": coalesce,
    "IFNULL": coalesce,
    "NULLIF": null_if,
    "IF": if_call,
    "GREATEST": extreme,
    "LEAST": extreme,
    "CURRENT_TIMESTAMP": now,
    "CURRENT_DATE": today,
    "PENDING_COMMIT_TIMESTAMP": pending,
    "ARRAY_LENGTH": array_length,
    "ARRAY_REVERSE": array_reverse,
    "ARRAY_CONCAT": array_concat,
    "GENERATE_ARRAY": generate_array,
    "TIMESTAMP_ADD": time_shift,
    "TIMESTAMP_SUB": time_shift,
    "DATE_ADD": time_shift,
    "DATE_SUB": time_shift,
    "TIMESTAMP_DIFF": time_difference,
    "DATE_DIFF": time_difference,
    "TIMESTAMP_TRUNC": time_truncation,
    "DATE_TRUNC": time_truncation,
    "ERROR": error_call,
    **sequences.FUNCTIONS,
}


def aggregate(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """An aggregate function; its arguments may name any column."""
    outside = scope.in_aggregate
    scope.in_aggregate = True
    try:
        return AGGREGATE_CALLS[node.name.upper()](compile_, node, scope, context)
    finally:
        scope.in_aggregate = outside


@dataclass(frozen=True, slots=True)
class Argument:
    """The argument of an aggregate with its DISTINCT and ORDER BY."""

    item: Typed
    distinct: str
    order: str
    more: tuple[Typed, ...]


def argument(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Argument:
    """Reads the arguments of an aggregate."""
    if not node.expressions:
        raise errors.invalid_argument(f"{node.name.upper()} needs an argument")
    first, *others = node.expressions
    last = node.expressions[-1]
    order = ""
    if isinstance(last, exp.Order):
        order = " ORDER BY " + ", ".join(
            compile_(each.this, scope, context).sql + (" DESC" if each.args.get("desc") else "")
            for each in last.expressions
        )
        if last is first:
            first = last.this
        else:
            others[-1] = last.this
    distinct = ""
    if isinstance(first, exp.Distinct):
        distinct, first = "DISTINCT ", first.expressions[0]
    if isinstance(first, exp.IgnoreNulls | exp.RespectNulls | exp.Limit):
        raise errors.unimplemented(f"this clause in {node.name.upper()}")
    more = tuple(compile_(each, scope, context) for each in others)
    return Argument(compile_(first, scope, context), distinct, order, more)


def count(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """COUNT(*) and COUNT([DISTINCT] x)."""
    if node.expressions and isinstance(node.expressions[0], exp.Star):
        return Typed("COUNT(*)", INT64)
    given = argument(compile_, node, scope, context)
    return Typed(f"COUNT({given.distinct}{given.item.sql})", INT64)


def count_if(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """COUNTIF(condition)."""
    given = argument(compile_, node, scope, context)
    test = require(given.item, BOOL, context, "The argument of COUNTIF")
    return Typed(f"COUNT(CASE WHEN {test.sql} THEN 1 END)", INT64)


def total(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """SUM and AVG of numbers; an INT64 sum that overflows is OUT_OF_RANGE."""
    given = argument(compile_, node, scope, context)
    type_ = given.item.type
    name = node.name.lower()
    if type_ is None or type_.code not in NUMBERS:
        raise errors.invalid_argument(f"{name.upper()} is not defined for {name_of(type_)}")
    if type_.code is TypeCode.INT64:
        result = INT64 if name == "sum" else FLOAT64
        return Typed(f"{name}({given.distinct}{given.item.sql})", result)
    kind, result = ("numeric", NUMERIC) if type_.code is TypeCode.NUMERIC else ("float64", FLOAT64)
    return Typed(f"agg_{name}_{kind}({given.distinct}{given.item.sql})", result)


def smallest(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """MIN and MAX: storage forms sort as their values, NaN apart."""
    given = argument(compile_, node, scope, context)
    type_ = given.item.type or INT64
    if type_.code in {TypeCode.ARRAY, TypeCode.JSON, TypeCode.STRUCT}:
        raise errors.invalid_argument(f"{node.name.upper()} is not defined for {name_of(type_)}")
    name = node.name.lower()
    if type_.code in FLOATS:
        return Typed(f"agg_{name}_float64({given.item.sql})", type_)
    return Typed(f"{name}({given.distinct}{given.item.sql})", type_)


def any_value(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """ANY_VALUE(x)."""
    given = argument(compile_, node, scope, context)
    return Typed(f"max({given.item.sql})", given.item.type)


def logical(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """LOGICAL_AND, LOGICAL_OR."""
    given = argument(compile_, node, scope, context)
    test = require(given.item, BOOL, context, f"The argument of {node.name.upper()}")
    function = "min" if node.name.upper() == "LOGICAL_AND" else "max"
    return Typed(f"{function}({test.sql})", BOOL)


def bitwise(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """BIT_AND, BIT_OR, BIT_XOR."""
    given = argument(compile_, node, scope, context)
    item = require(given.item, INT64, context, f"The argument of {node.name.upper()}")
    return Typed(f"agg_{node.name.lower()}({given.distinct}{item.sql})", INT64)


def array_agg(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """ARRAY_AGG([DISTINCT] x [ORDER BY ...]): NULL of no rows."""
    given = argument(compile_, node, scope, context)
    if given.item.type is None or given.item.type.code is TypeCode.ARRAY:
        raise errors.invalid_argument(f"ARRAY_AGG is not defined for {name_of(given.item.type)}")
    sql = f"agg_array_or_null({given.distinct}{given.item.sql}{given.order})"
    return Typed(sql, array(given.item.type))


def string_agg(compile_: Compile, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """STRING_AGG([DISTINCT] x [, delimiter] [ORDER BY ...])."""
    given = argument(compile_, node, scope, context)
    item = require(given.item, STRING, context, "The argument of STRING_AGG")
    delimiter = given.more[0].sql if given.more else "','"
    if given.distinct and given.more:
        raise errors.unimplemented("STRING_AGG(DISTINCT) with a delimiter")
    separator = "" if given.distinct else f", {delimiter}"
    return Typed(f"group_concat({given.distinct}{item.sql}{separator}{given.order})", STRING)


AGGREGATE_CALLS = {
    "COUNT": count,
    "COUNTIF": count_if,
    "SUM": total,
    "AVG": total,
    "MIN": smallest,
    "MAX": smallest,
    "ANY_VALUE": any_value,
    "LOGICAL_AND": logical,
    "LOGICAL_OR": logical,
    "BIT_AND": bitwise,
    "BIT_OR": bitwise,
    "BIT_XOR": bitwise,
    "ARRAY_AGG": array_agg,
    "STRING_AGG": string_agg,
}
