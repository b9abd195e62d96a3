"""Functions of TIMESTAMP and DATE that take a part, an interval or a zone."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.coerce import coerce, require
from emulator.sql.compiler import Call, Compiler
from emulator.sql.conditional_calls import compile_arguments
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed
from emulator.values.sqlite_text import quote_text
from emulator.values.types import DATE, INT64, INTERVAL, STRING, TIMESTAMP, array
from spanner_schema.model.column_types import Type

DEFAULT_ZONE = "'America/Los_Angeles'"


def current_timestamp(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """CURRENT_TIMESTAMP(): one for the whole statement."""
    compile_arguments(compiler, node, scope, context, 0, 0)
    context.uses_now = True
    return Typed(":now_", TIMESTAMP)


def current_date(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """CURRENT_DATE([zone])."""
    context.uses_now = True
    items = compile_arguments(compiler, node, scope, context, 0, 1)
    zone = require(items[0], STRING, context, "The zone").sql if items else DEFAULT_ZONE
    return Typed(f"fn_date_timestamp(:now_, {zone})", DATE)


def subject(item: Typed, name: str, context: Context) -> tuple[Typed, Type]:
    """The DATE or TIMESTAMP that a function is of, by the function's name."""
    target = TIMESTAMP if name.startswith("TIMESTAMP") else DATE
    if target is DATE and item.type == TIMESTAMP:
        raise errors.invalid_argument(
            f"No matching signature for function {name} for an argument of type TIMESTAMP"
        )
    return require(item, target, context, f"The first argument of {name}"), target


def shift(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """TIMESTAMP_ADD | TIMESTAMP_SUB | DATE_ADD | DATE_SUB (x, INTERVAL n unit)."""
    name = {"ADDDATE": "DATE_ADD", "SUBDATE": "DATE_SUB"}.get(node.name.upper(), node.name.upper())
    if len(node.expressions) != 2:
        raise errors.invalid_argument(f"Number of arguments does not match for function {name}")
    item, type_ = subject(compiler.compile(node.expressions[0], scope, context), name, context)
    amount, unit = amount_of(compiler, node.expressions[1], scope, context, node.name.upper())
    return Typed(f"fn_{name.lower()}({item.sql}, {amount}, '{unit}')", type_)


def amount_of(
    compiler: Compiler, node: exp.Expr, scope: Scope, context: Context, name: str
) -> tuple[str, str]:
    """The amount and the unit of INTERVAL n unit; ADDDATE takes a plain number of days too."""
    if not isinstance(node, exp.Interval):
        if name in {"ADDDATE", "SUBDATE"}:
            days = require(compiler.compile(node, scope, context), INT64, context, "The days")
            return days.sql, "DAY"
        raise errors.invalid_argument(f"The second argument of {name} must be an INTERVAL")
    if node.unit is None or not isinstance(node.unit, exp.Var):
        raise errors.unimplemented(f"the interval {node.sql('bigquery')[:40]!r}")
    amount = compiler.compile(node.this, scope, context)
    if amount.literal is not None and amount.type == STRING:
        amount = whole_number(amount.literal)
    amount = require(amount, INT64, context, "The amount of the INTERVAL")
    return amount.sql, node.unit.name.upper()


def whole_number(text: str) -> Typed:
    """The parser makes every amount a string."""
    try:
        number = int(text)
    except ValueError as error:
        raise errors.invalid_argument(f"Invalid amount of an INTERVAL: {text!r}") from error
    return Typed(f"({number})", INT64)


def difference(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """TIMESTAMP_DIFF | DATE_DIFF (a, b, unit)."""
    name = node.name.upper()
    if len(node.expressions) != 3:
        raise errors.invalid_argument(f"Number of arguments does not match for function {name}")
    items = [
        subject(compiler.compile(each, scope, context), name, context)[0]
        for each in node.expressions[:2]
    ]
    unit = read_part(node.expressions[2])
    return Typed(f"fn_{name.lower()}({items[0].sql}, {items[1].sql}, '{unit}')", INT64)


def truncation(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """TIMESTAMP_TRUNC(x, unit [, zone]) | DATE_TRUNC(x, unit)."""
    name = node.name.upper()
    most = 3 if name == "TIMESTAMP_TRUNC" else 2
    if not 2 <= len(node.expressions) <= most:
        raise errors.invalid_argument(f"Number of arguments does not match for function {name}")
    item, type_ = subject(compiler.compile(node.expressions[0], scope, context), name, context)
    zone = DEFAULT_ZONE
    if len(node.expressions) > 2:
        zone_item = compiler.compile(node.expressions[2], scope, context)
        zone = require(zone_item, STRING, context, "The zone").sql
    extra = f", {zone}" if type_ is TIMESTAMP else ""
    return Typed(f"fn_{name.lower()}({item.sql}, '{read_part(node.expressions[1])}'{extra})", type_)


def read_part(node: exp.Expr) -> str:
    """A date part: a bare word. GoogleSQL's WEEK(day) is not Spanner's."""
    if isinstance(node, exp.WeekStart) or (
        isinstance(node, exp.Anonymous) and node.name.upper() == "WEEK"
    ):
        raise errors.invalid_argument("Date part arguments are not supported")
    if not isinstance(node, exp.Column | exp.Var) or not node.name.isidentifier():
        raise errors.invalid_argument("A valid date part name is required")
    return node.name.upper()


def extract(compiler: Compiler, node: exp.Extract, scope: Scope, context: Context) -> Typed:
    """EXTRACT(part FROM x [AT TIME ZONE zone])."""
    source, zone = node.expression, DEFAULT_ZONE
    zoned = isinstance(source, exp.AtTimeZone)
    if zoned:
        item = compiler.compile(source.args["zone"], scope, context)
        zone = require(item, STRING, context, "The zone").sql
        source = source.this
    inner = compiler.compile(source, scope, context)
    name = read_part(node.this)
    if inner.literal is not None and inner.type == STRING:
        raise errors.invalid_argument("EXTRACT does not support literal STRING arguments")
    if inner.type == DATE:
        if zoned:
            raise errors.invalid_argument("EXTRACT from DATE does not support AT TIME ZONE")
        return Typed(f"fn_extract_date({quote_text(name)}, {inner.sql})", INT64)
    if inner.type == INTERVAL:
        if zoned:
            raise errors.invalid_argument("EXTRACT from INTERVAL does not support AT TIME ZONE")
        return Typed(f"fn_extract_interval({quote_text(name)}, {inner.sql})", INT64)
    inner = require(inner, TIMESTAMP, context, "The argument of EXTRACT")
    result = DATE if name == "DATE" else INT64
    return Typed(f"fn_extract_timestamp({quote_text(name)}, {inner.sql}, {zone})", result)


def string(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """STRING(timestamp [, zone]), STRING(json)."""
    items = compile_arguments(compiler, node, scope, context, 1, 2)
    item = items[0]
    if item.type is not None and item.type.code.value == "JSON":
        return Typed(f"fn_json_string({item.sql})", STRING)
    item = require(item, TIMESTAMP, context, "The argument of STRING")
    zone = require(items[1], STRING, context, "The zone").sql if len(items) > 1 else DEFAULT_ZONE
    return Typed(f"fn_string_timestamp({item.sql}, {zone})", STRING)


def generate_dates(
    compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context
) -> Typed:
    """GENERATE_DATE_ARRAY(first, last [, INTERVAL n unit])."""
    if not 2 <= len(node.expressions) <= 3:
        raise errors.invalid_argument("GENERATE_DATE_ARRAY takes two or three arguments")
    ends = [
        require(compiler.compile(each, scope, context), DATE, context, "An end of the array")
        for each in node.expressions[:2]
    ]
    amount, unit = "1", "DAY"
    if len(node.expressions) == 3:
        amount, unit = amount_of(
            compiler, node.expressions[2], scope, context, "GENERATE_DATE_ARRAY"
        )
    sql = f"fn_generate_dates({ends[0].sql}, {ends[1].sql}, {amount}, '{unit}')"
    return Typed(sql, array(DATE))


def date(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """DATE(y, m, d), DATE(timestamp [, zone])."""
    items = compile_arguments(compiler, node, scope, context, 1, 3)
    if len(items) == 3:
        numbers = [require(i, INT64, context, "An argument of DATE").sql for i in items]
        return Typed(f"fn_date({', '.join(numbers)})", DATE)
    item = require(items[0], TIMESTAMP, context, "The argument of DATE")
    zone = require(items[1], STRING, context, "The zone").sql if len(items) > 1 else DEFAULT_ZONE
    return Typed(f"fn_date_timestamp({item.sql}, {zone})", DATE)


def timestamp(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """TIMESTAMP(string [, zone]), TIMESTAMP(date [, zone])."""
    items = compile_arguments(compiler, node, scope, context, 1, 2)
    item = items[0]
    zone = f", {require(items[1], STRING, context, 'The zone').sql}" if len(items) > 1 else ""
    if item.type != DATE:
        converted = coerce(item, STRING, context)
        if converted is None:
            raise errors.invalid_argument("No matching signature for function TIMESTAMP")
        return Typed(f"fn_timestamp_string({converted.sql}{zone})", TIMESTAMP)
    return Typed(f"fn_timestamp_date({item.sql}{zone})", TIMESTAMP)


CALLS: dict[str, Call] = {
    "CURRENT_TIMESTAMP": current_timestamp,
    "CURRENT_DATE": current_date,
    "TIMESTAMP_ADD": shift,
    "TIMESTAMP_SUB": shift,
    "DATE_ADD": shift,
    "DATE_SUB": shift,
    "ADDDATE": shift,
    "SUBDATE": shift,
    "TIMESTAMP_DIFF": difference,
    "DATE_DIFF": difference,
    "TIMESTAMP_TRUNC": truncation,
    "DATE_TRUNC": truncation,
    "STRING": string,
    "DATE": date,
    "TIMESTAMP": timestamp,
    "GENERATE_DATE_ARRAY": generate_dates,
}
