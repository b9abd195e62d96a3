"""Implicit and explicit conversions between Spanner's types."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable

from ddl.schema import Type, TypeCode
from emulator import errors
from emulator.sql.scope import Context
from emulator.sql.types import (
    BYTES,
    FLOATS,
    FROM_FLOAT_LITERAL,
    FROM_INTEGER_LITERAL,
    FROM_STRING_LITERAL,
    STRING,
    WIDER,
    Typed,
    common,
    name_of,
    plain,
    quote_text,
)
from emulator.storage import forms


def coerce(item: Typed, wanted: Type, context: Context) -> Typed | None:
    """The item as the wanted type where Spanner converts by itself, else None."""
    wanted = plain(wanted)
    if item.type is None:
        if item.parameter is not None:
            context.infer(item.parameter, wanted)
        return Typed(item.sql, wanted, column=item.column)
    if item.type == wanted:
        return item
    if item.literal is not None and (converted := literal(item, wanted)) is not None:
        return converted
    if item.type.code is TypeCode.ARRAY and wanted.code is TypeCode.ARRAY:
        return Typed(item.sql, wanted) if item.sql == "'[]'" else None
    if wanted.code in WIDER.get(item.type.code, ()):
        return widen(item, wanted)
    return None


def require(item: Typed, wanted: Type, context: Context, where: str) -> Typed:
    """As ``coerce``, but INVALID_ARGUMENT when it cannot be."""
    converted = coerce(item, wanted, context)
    if converted is None:
        raise errors.invalid_argument(
            f"{where} has type {name_of(item.type)} but needs {name_of(wanted)}"
        )
    return converted


def unify(items: list[Typed], context: Context, where: str) -> tuple[list[Typed], Type]:
    """All items as one type: what CASE, COALESCE, IN and set operations need."""
    known = [i.type for i in items if i.type is not None]
    firm = [i.type for i in items if i.type is not None and i.literal is None]
    wanted = common(firm) if firm else common(known)
    if not known:
        wanted = STRING if all(i.parameter for i in items) and items else Type(TypeCode.INT64)
    if wanted is not None:
        converted = [coerce(item, wanted, context) for item in items]
        if all(c is not None for c in converted):
            return [c for c in converted if c is not None], wanted
    wanted = common(known)
    if wanted is not None:
        return [require(item, wanted, context, where) for item in items], wanted
    listed = ", ".join(name_of(t) for t in known)
    raise errors.invalid_argument(f"No matching signature for {where} for types {listed}")


def widen(item: Typed, wanted: Type) -> Typed:
    """A lossless conversion among the numbers."""
    assert item.type is not None
    if wanted.code is TypeCode.NUMERIC:
        return Typed(f"int64_to_numeric({item.sql})", wanted)
    if item.type.code is TypeCode.NUMERIC:
        return Typed(f"numeric_to_float64({item.sql})", wanted)
    if item.type.code in FLOATS:
        return Typed(item.sql, wanted)
    return Typed(f"CAST({item.sql} AS REAL)", wanted)


def literal(item: Typed, wanted: Type) -> Typed | None:
    """A literal as another type, converted now; None where literals do not convert."""
    assert item.type is not None
    assert item.literal is not None
    code, text = item.type.code, item.literal
    if code is TypeCode.STRING and wanted.code in FROM_STRING_LITERAL:
        try:
            return Typed(STRING_FORMS[wanted.code](text), wanted)
        except ValueError as error:
            raise errors.invalid_argument(
                f"Could not cast literal {text!r} to type {name_of(wanted)}"
            ) from error
    if code is TypeCode.INT64 and wanted.code in FROM_INTEGER_LITERAL:
        return Typed(repr(float(text)), wanted)
    if code is TypeCode.FLOAT64 and wanted.code in FROM_FLOAT_LITERAL:
        if wanted.code is TypeCode.NUMERIC:
            return Typed(quote_text(forms.numeric(text)), wanted)
        return Typed(f"to_float32({item.sql})", wanted)
    return None


STRING_FORMS: dict[TypeCode, Callable[[str], str]] = {
    TypeCode.DATE: lambda text: quote_text(forms.date_form(text)),
    TypeCode.TIMESTAMP: lambda text: quote_text(forms.timestamp(text)),
    TypeCode.UUID: lambda text: quote_text(forms.uuid_form(text)),
    TypeCode.BYTES: lambda text: f"x'{text.encode().hex()}'",
}

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
    (TypeCode.UUID, TypeCode.STRING): "",
    (TypeCode.BYTES, TypeCode.STRING): "cast_bytes_string",
    (TypeCode.DATE, TypeCode.STRING): "",
    (TypeCode.DATE, TypeCode.TIMESTAMP): "cast_date_timestamp",
    (TypeCode.TIMESTAMP, TypeCode.STRING): "cast_timestamp_string",
    (TypeCode.TIMESTAMP, TypeCode.DATE): "cast_timestamp_date",
}


def cast(item: Typed, wanted: Type, safe: bool, context: Context) -> Typed:
    """CAST and SAFE_CAST: the latter gives NULL where the former is an error."""
    implicit = None if item.literal is not None and safe else coerce(item, wanted, context)
    if implicit is not None:
        return Typed(implicit.sql, plain(wanted))
    assert item.type is not None
    function = CASTS.get((item.type.code, wanted.code))
    if function is None:
        raise errors.invalid_argument(
            f"Invalid cast from {name_of(item.type)} to {name_of(wanted)}"
        )
    if not function:
        return Typed(item.sql, plain(wanted))
    prefix = "safe_" if safe else ""
    return Typed(f"{prefix}{function}({item.sql})", plain(wanted))


def bytes_from_base64(text: str) -> bytes:
    """Base64 as the wire carries BYTES. Raises ValueError."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"Invalid base64: {text[:40]!r}") from error


def float_form(value: float) -> float | str:
    """A float in storage form: SQLite has no NaN."""
    return "NaN" if math.isnan(value) else value


__all__ = ["BYTES", "bytes_from_base64", "cast", "coerce", "float_form", "require", "unify"]
