"""CAST and SAFE_CAST."""

from __future__ import annotations

from dataclasses import replace

from emulator import errors
from emulator.sql.cast_functions import CASTS
from emulator.sql.coerce import coerce, float_as_numeric, text_as
from emulator.sql.composites import field_of, struct_of
from emulator.sql.native_calls import render_call
from emulator.sql.protos import cast_named
from emulator.sql.scope import Context
from emulator.sql.types import Typed, differ_in_names_only, drop_length, name_of
from spanner_schema.model.column_types import Type, TypeCode


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
    kept = item.may_be_null
    return Typed(result.sql, result.type, parts=result.parts, may_be_null=kept)


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
    sql = render_call(f"{prefix}{function}", [item.sql]) if function else item.sql
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
