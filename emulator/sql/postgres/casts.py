"""Casts and implicit conversions of the PostgreSQL dialect."""

from __future__ import annotations

from dataclasses import replace

from emulator import errors
from emulator.sql.coercions import Reach, becomes
from emulator.sql.composites import array_of
from emulator.sql.functions.postgres_arrays import parse_array
from emulator.sql.functions.postgres_casts import PARSERS, parse_value
from emulator.sql.functions.postgres_interval_fields import IntervalFields
from emulator.sql.functions.postgres_intervals import parse_fields, parse_interval
from emulator.sql.postgres.type_names import show_type
from emulator.sql.scope import Context
from emulator.sql.types import Typed, drop_length
from emulator.values.requests import Stored
from emulator.values.sqlite_text import quote_text
from emulator.values.types import FLOAT64, INTERVAL, STRING, array
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import Dialect

POSTGRESQL = Dialect.POSTGRESQL

CASTS = {
    (TypeCode.BOOL, TypeCode.STRING): "pg_text_bool({})",
    (TypeCode.INT64, TypeCode.STRING): "CAST({} AS TEXT)",
    (TypeCode.FLOAT32, TypeCode.STRING): "pg_text_float4({})",
    (TypeCode.FLOAT64, TypeCode.STRING): "pg_text_float8({})",
    (TypeCode.PG_NUMERIC, TypeCode.STRING): "pg_text_numeric({})",
    (TypeCode.BYTES, TypeCode.STRING): "pg_text_bytea({})",
    (TypeCode.DATE, TypeCode.STRING): "{}",
    (TypeCode.TIMESTAMP, TypeCode.STRING): "pg_text_timestamptz({})",
    (TypeCode.PG_JSONB, TypeCode.STRING): "{}",
    (TypeCode.UUID, TypeCode.STRING): "{}",
    (TypeCode.PG_OID, TypeCode.STRING): "CAST({} AS TEXT)",
    (TypeCode.PG_OID, TypeCode.INT64): "{}",
    (TypeCode.INT64, TypeCode.PG_OID): "pg_oid({})",
    (TypeCode.STRING, TypeCode.PG_OID): "pg_oid(pg_parse_int8({}))",
    (TypeCode.STRING, TypeCode.BOOL): "pg_parse_bool({})",
    (TypeCode.STRING, TypeCode.INT64): "pg_parse_int8({})",
    (TypeCode.STRING, TypeCode.FLOAT32): "pg_parse_float4({})",
    (TypeCode.STRING, TypeCode.FLOAT64): "pg_parse_float8({})",
    (TypeCode.STRING, TypeCode.PG_NUMERIC): "pg_parse_numeric({})",
    (TypeCode.STRING, TypeCode.BYTES): "pg_parse_bytea({})",
    (TypeCode.STRING, TypeCode.DATE): "pg_parse_date({})",
    (TypeCode.STRING, TypeCode.TIMESTAMP): "pg_parse_timestamptz({})",
    (TypeCode.STRING, TypeCode.PG_JSONB): "pg_parse_jsonb({})",
    (TypeCode.STRING, TypeCode.UUID): "pg_parse_uuid({})",
    (TypeCode.STRING, TypeCode.INTERVAL): "pg_parse_interval({})",
    (TypeCode.INTERVAL, TypeCode.STRING): "{}",
    (TypeCode.PG_JSONB, TypeCode.BOOL): "pg_jsonb_to_bool({})",
    (TypeCode.PG_JSONB, TypeCode.INT64): "pg_jsonb_to_int8({})",
    (TypeCode.PG_JSONB, TypeCode.FLOAT32): "pg_jsonb_to_float4({})",
    (TypeCode.PG_JSONB, TypeCode.FLOAT64): "pg_jsonb_to_float8({})",
    (TypeCode.PG_JSONB, TypeCode.PG_NUMERIC): "pg_jsonb_to_numeric({})",
    (TypeCode.INT64, TypeCode.PG_NUMERIC): "pg_int8_to_numeric({})",
    (TypeCode.INT64, TypeCode.FLOAT32): "pg_to_float4(pg_int8_to_float8({}))",
    (TypeCode.INT64, TypeCode.FLOAT64): "pg_int8_to_float8({})",
    (TypeCode.PG_NUMERIC, TypeCode.INT64): "pg_numeric_to_int8({})",
    (TypeCode.PG_NUMERIC, TypeCode.FLOAT32): "pg_parse_float4(pg_text_numeric({}))",
    (TypeCode.PG_NUMERIC, TypeCode.FLOAT64): "pg_numeric_to_float8({})",
    (TypeCode.FLOAT32, TypeCode.INT64): "pg_float_to_int8({})",
    (TypeCode.FLOAT32, TypeCode.PG_NUMERIC): "pg_float4_to_numeric({})",
    (TypeCode.FLOAT32, TypeCode.FLOAT64): "{}",
    (TypeCode.FLOAT64, TypeCode.INT64): "pg_float_to_int8({})",
    (TypeCode.FLOAT64, TypeCode.PG_NUMERIC): "pg_float8_to_numeric({})",
    (TypeCode.FLOAT64, TypeCode.FLOAT32): "pg_to_float4({})",
    (TypeCode.DATE, TypeCode.TIMESTAMP): "pg_date_to_timestamptz({})",
    (TypeCode.TIMESTAMP, TypeCode.DATE): "pg_timestamptz_to_date({})",
}
"""From one type to another as SQLite text; functions are registered by emulator.sql.functions."""


def is_unknown(item: Typed) -> bool:
    """Whether an item is a text in quotes alone, which becomes of any type."""
    return item.type == STRING and item.literal is not None


def literal_of(text: str, type_: Type) -> str:
    """A text in quotes as a value of a type, as SQLite text."""
    if type_.element is not None:
        return quote_text(parse_array(text, type_.element))
    if type_ == INTERVAL:
        return quote_text(parse_interval(text))
    if type_.code not in PARSERS:
        raise errors.unimplemented(f"a literal of the type {show_type(type_)}")
    return write_stored(parse_value(text, type_))


def write_stored(value: Stored) -> str:
    """A stored value as SQLite text."""
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "9e999" if value > 0 else "-9e999"
    if isinstance(value, int | float):
        return repr(value)
    return quote_text(str(value))


def convert(item: Typed, target: Type) -> Typed:
    """An item as another type, where there is a cast. Raises INVALID_ARGUMENT."""
    assert item.type is not None
    if item.type.element is not None and target == STRING:
        return Typed(f"pg_array_text({item.sql}, '{item.type.element.code.value}')", STRING)
    text = CASTS.get((item.type.code, target.code))
    if text is None:
        if item.type.element is not None:
            raise errors.unsupported("Array casting / coercion is not supported")
        raise errors.invalid_argument(
            f"cannot cast type {show_type(item.type)} to {show_type(target)}"
        )
    return Typed(text.format(item.sql), target)


def cast(item: Typed, target: Type, modifiers: tuple[int, ...], context: Context) -> Typed:
    """A cast as written."""
    if target == INTERVAL and modifiers:
        return cast_fields(item, IntervalFields(*modifiers))
    converted = cast_plain(item, target, context)
    if not modifiers:
        return converted
    if target == STRING:
        return Typed(f"pg_truncate_text({converted.sql}, {modifiers[0]})", target)
    precision, scale = (*modifiers, 0)[:2]
    return Typed(f"pg_numeric_limit({converted.sql}, {precision}, {scale})", target)


def cast_fields(item: Typed, fields: IntervalFields) -> Typed:
    """INTERVAL '1' DAY: of a literal alone, as in Spanner."""
    if not is_unknown(item):
        raise errors.unsupported(
            "Casts with a typmod are generally not supported. The only supported casts with a"
            " typmod are varchar(<length>) and numeric(<precision>,<scale>)."
        )
    return Typed(quote_text(parse_fields(str(item.literal), fields)), INTERVAL)


def cast_plain(item: Typed, target: Type, context: Context) -> Typed:
    """A cast to a type without a modifier."""
    implicit = coerce(item, target, context)
    if implicit is not None:
        return replace(implicit, literal=None, column="")
    assert item.type is not None
    if item.parts is not None and target.element is not None:
        # ARRAY[...]::type[] is a cast of each element; one of another array Spanner does not have.
        element = target.element
        return array_of([cast_plain(part, element, context) for part in item.parts], element)
    if (item.type, target) in BOOL_AND_INTEGER:
        return Typed(BOOL_AND_INTEGER[item.type, target].format(item.sql), target)
    return convert(item, target)


BOOL_AND_INTEGER = {
    (Type(TypeCode.BOOL), Type(TypeCode.INT64)): "{}",
    (Type(TypeCode.INT64), Type(TypeCode.BOOL)): "({} <> 0)",
}


def coerce(item: Typed, target: Type, context: Context) -> Typed | None:
    """The item as the target type where that happens by itself, else None."""
    target = drop_length(target)
    if item.type is None:
        if item.parameter is not None:
            context.infer(item.parameter, target)
        return Typed(item.sql, target, column=item.column)
    if is_unknown(item) and target != STRING:
        return Typed(literal_of(str(item.literal), target), target, column=item.column)
    if item.type == target:
        return item
    if item.type.element is not None and target.element is not None:
        return coerce_array(item, target.element, context)
    if becomes(item.type.code, target.code, POSTGRESQL, Reach.EXPRESSION):
        return convert(item, target)
    return None


def coerce_all(items: list[Typed], target: Type, context: Context) -> list[Typed] | None:
    """All items as the target type; None where one does not become it by itself."""
    converted = [coerce(item, target, context) for item in items]
    present = [item for item in converted if item is not None]
    return present if len(present) == len(items) else None


def coerce_array(item: Typed, element: Type, context: Context) -> Typed | None:
    """An array that is written out, element by element."""
    if item.parts is None:
        return None
    parts = coerce_all(list(item.parts), element, context)
    if parts is None:
        return None
    return array_of(parts, element) if parts else Typed("'[]'", array(element), parts=())


def assign(item: Typed, target: Type, context: Context) -> Typed | None:
    """The item as a column takes it; None where it does not."""
    target = drop_length(target)
    implicit = coerce(item, target, context)
    if implicit is not None or item.type is None:
        return implicit
    if target == STRING or becomes(item.type.code, target.code, POSTGRESQL, Reach.ASSIGNMENT):
        return convert(item, target)
    return None


def unify(items: list[Typed], context: Context, where: str) -> tuple[list[Typed], Type]:
    """All items as one type: of CASE, COALESCE, arrays, set operations."""
    known = [item.type for item in items if item.type is not None and not is_unknown(item)]
    target = known[0] if known else STRING
    for type_ in known[1:]:
        if becomes(target.code, type_.code, POSTGRESQL, Reach.EXPRESSION):
            target = type_
    converted = coerce_all(items, target, context)
    if converted is None:
        other = next(type_ for type_ in known if type_ != target)
        raise errors.invalid_argument(
            f"{where} types {show_type(target)} and {show_type(other)} cannot be matched"
        )
    return converted, target


def operand_type(items: list[Typed]) -> Type:
    """The type in which an operator takes its operands: different floats meet as doubles."""
    known = [item.type for item in items if item.type is not None and not is_unknown(item)]
    if not known:
        return STRING
    if all(type_ == known[0] for type_ in known):
        return known[0]
    codes = {type_.code for type_ in known}
    if codes <= {TypeCode.INT64, TypeCode.PG_NUMERIC, TypeCode.FLOAT32, TypeCode.FLOAT64}:
        return Type(TypeCode.PG_NUMERIC) if codes <= EXACT else FLOAT64
    if codes == {TypeCode.INT64, TypeCode.PG_OID}:
        return Type(TypeCode.PG_OID)
    if codes == {TypeCode.DATE, TypeCode.TIMESTAMP}:
        return Type(TypeCode.TIMESTAMP)
    return known[0]


NUMBERS = {TypeCode.INT64, TypeCode.PG_NUMERIC, TypeCode.FLOAT32, TypeCode.FLOAT64}
EXACT = {TypeCode.INT64, TypeCode.PG_NUMERIC}


class PostgresConversions:
    """The conversions, as the parts of the compiler that both dialects share ask for them."""

    def coerce(self, item: Typed, target: Type, context: Context) -> Typed | None:
        """As ``coerce`` above."""
        return coerce(item, target, context)

    def unify(self, items: list[Typed], context: Context, where: str) -> tuple[list[Typed], Type]:
        """As ``unify`` above."""
        return unify(items, context, where)
