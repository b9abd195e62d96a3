"""CAST and SAFE_CAST."""

from __future__ import annotations

from dataclasses import replace

from ddl.model.schema import Type, TypeCode
from emulator import errors
from emulator.sql.coerce import coerce, float_as_numeric, text_as
from emulator.sql.composites import field_of, struct_of
from emulator.sql.protos import cast_named
from emulator.sql.scope import Context
from emulator.sql.types import Typed, differ_in_names_only, drop_length, name_of

# (from, to) -> the SQLite function of CAST; names are registered by emulator.sql.functions.
CASTS = {
    (TypeCode.BOOL, TypeCode.INT64): "",
    (TypeCode.BOOL, TypeCode.STRING): "cast_bool_string",
    (TypeCode.INT64, TypeCode.BOOL): "cast_int64_bool",
    (TypeCode.INT64, TypeCode.FLOAT32): "to_float32",
    (TypeCode.INT64, TypeCode.FLOAT64): "cast_int64_float64",
    (TypeCode.INT64, TypeCode.NUMERIC): "int64_to_numeric",
    (TypeCode.INT64, TypeCode.STRING): "cast_int64_string",
    (TypeCode.FLOAT32, TypeCode.FLOAT64): "",
    (TypeCode.FLOAT64, TypeCode.FLOAT32): "to_float32",
    (TypeCode.FLOAT32, TypeCode.INT64): "cast_float_int64",
    (TypeCode.FLOAT64, TypeCode.INT64): "cast_float_int64",
    (TypeCode.FLOAT32, TypeCode.STRING): "cast_float32_string",
    (TypeCode.FLOAT64, TypeCode.STRING): "cast_float64_string",
    (TypeCode.FLOAT32, TypeCode.NUMERIC): "cast_float_numeric",
    (TypeCode.FLOAT64, TypeCode.NUMERIC): "cast_float_numeric",
    (TypeCode.NUMERIC, TypeCode.INT64): "cast_numeric_int64",
    (TypeCode.NUMERIC, TypeCode.FLOAT32): "numeric_to_float32",
    (TypeCode.NUMERIC, TypeCode.FLOAT64): "numeric_to_float64",
    (TypeCode.NUMERIC, TypeCode.STRING): "cast_numeric_string",
    (TypeCode.STRING, TypeCode.BOOL): "cast_string_bool",
    (TypeCode.STRING, TypeCode.INT64): "cast_string_int64",
    (TypeCode.STRING, TypeCode.FLOAT32): "cast_string_float32",
    (TypeCode.STRING, TypeCode.FLOAT64): "cast_string_float64",
    (TypeCode.STRING, TypeCode.NUMERIC): "cast_string_numeric",
    (TypeCode.STRING, TypeCode.BYTES): "cast_string_bytes",
    (TypeCode.STRING, TypeCode.DATE): "cast_string_date",
    (TypeCode.STRING, TypeCode.TIMESTAMP): "cast_string_timestamp",
    (TypeCode.STRING, TypeCode.UUID): "cast_string_uuid",
    (TypeCode.STRING, TypeCode.INTERVAL): "cast_string_interval",
    (TypeCode.INTERVAL, TypeCode.STRING): "cast_interval_string",
    (TypeCode.UUID, TypeCode.STRING): "",
    (TypeCode.BYTES, TypeCode.STRING): "cast_bytes_string",
    (TypeCode.BYTES, TypeCode.UUID): "cast_bytes_uuid",
    (TypeCode.UUID, TypeCode.BYTES): "cast_uuid_bytes",
    (TypeCode.DATE, TypeCode.STRING): "",
    (TypeCode.DATE, TypeCode.TIMESTAMP): "cast_date_timestamp",
    (TypeCode.TIMESTAMP, TypeCode.STRING): "cast_timestamp_string",
    (TypeCode.TIMESTAMP, TypeCode.DATE): "cast_timestamp_date",
}


def typed_literal(text: str, target: Type) -> Typed:
    """DATE '...', TIMESTAMP '...', NUMERIC '...'."""
    try:
        return text_as(text, target)
    except ValueError as error:
        raise errors.invalid_argument(f'Invalid {name_of(target)} literal: "{text}"') from error


def cast_explicitly(item: Typed, target: Type, safe: bool, context: Context) -> Typed:
    """A CAST as written; of arrays and structs part by part."""
    result = cast(item, target, safe, context)
    # Spanner gives a CAST the name of the column that it casts nowhere.
    return Typed(result.sql, result.type, parts=result.parts)


def cast(item: Typed, target: Type, safe: bool, context: Context) -> Typed:
    """CAST and SAFE_CAST: the latter gives NULL where the former is an error."""
    if target.code in {TypeCode.ARRAY, TypeCode.STRUCT} and item.type is not None:
        return cast_composite(item, target, safe, context)
    implicit = None if may_fail(item, target, safe) else coerce(item, target, context)
    if implicit is not None:
        return Typed(refuse_length(implicit.sql, target, safe), drop_length(target))
    assert item.type is not None
    named = cast_named(item, drop_length(target), safe, context.protos)
    if named is not None:
        return replace(named, sql=refuse_length(named.sql, target, safe))
    function = CASTS.get((item.type.code, target.code))
    if function is None:
        raise errors.invalid_argument(
            f"Invalid cast from {name_of(item.type)} to {name_of(target)}"
        )
    prefix = "safe_" if safe else ""
    sql = f"{prefix}{function}({item.sql})" if function else item.sql
    return Typed(refuse_length(sql, target, safe), drop_length(target))


def may_fail(item: Typed, target: Type, safe: bool) -> bool:
    """Whether a literal is converted when the CAST runs: where it never does, a bad one is none."""
    if item.literal is None or item.type is None:
        return False
    if (item.type.code, target.code) not in CASTS:
        return safe
    if item.type.code is TypeCode.FLOAT64 and target.code is TypeCode.NUMERIC:
        return float_as_numeric(item.literal) is None
    return safe or item.type.code is TypeCode.STRING


def refuse_length(sql: str, target: Type, safe: bool) -> str:
    """A cast to STRING(n), BYTES(n): too long a value is an error."""
    if target.length is None:
        return sql
    raise errors.unimplemented("a CAST to a type with a length")


def cast_composite(item: Typed, target: Type, safe: bool, context: Context) -> Typed:
    """A cast of an array or a struct."""
    assert item.type is not None
    if item.type.code is not target.code or len(item.type.fields) != len(target.fields):
        raise errors.invalid_argument(
            f"Invalid cast from {name_of(item.type)} to {name_of(target)}"
        )
    if target.element is not None:
        same = item.parts == () or differ_in_names_only(item.type, drop_length(target))
        converted = coerce(item, target, context) if same else None
        if converted is None:
            raise errors.invalid_argument(
                "Casting between arrays with incompatible element types is not supported:"
                f" Invalid cast from {name_of(item.type)} to {name_of(target)}"
            )
        return converted
    fields = [
        cast(field_of(item, number), field.type, safe, context)
        for number, field in enumerate(target.fields)
    ]
    struct = struct_of(fields, [field.name for field in target.fields])
    if item.parts is not None:
        return struct
    return Typed(f"CASE WHEN {item.sql} IS NOT NULL THEN {struct.sql} END", struct.type)
