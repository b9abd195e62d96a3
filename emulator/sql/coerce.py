"""Implicit conversions between Spanner's types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal

from emulator import errors
from emulator.sql.cast_functions import CASTS
from emulator.sql.coercions import Reach, becomes
from emulator.sql.composites import array_of, field_of, struct_of
from emulator.sql.protos import cast_named, convert_literal, named_among
from emulator.sql.scope import Context
from emulator.sql.types import (
    Typed,
    common_type,
    differ_in_names_only,
    drop_length,
    name_of,
)
from emulator.values import forms
from emulator.values.sqlite_text import quote_text
from emulator.values.timestamp_texts import timestamp_form
from emulator.values.types import FLOATS, NUMERIC, STRING
from spanner_schema.model.column_types import StructField, Type, TypeCode
from spanner_schema.model.schema import Dialect

GOOGLESQL = Dialect.GOOGLESQL


def coerce(item: Typed, target: Type, context: Context) -> Typed | None:
    """The item converted to the target type where Spanner does so implicitly, else None."""
    if context.conversions is not None:
        return context.conversions.coerce(item, target, context)
    target = drop_length(target)
    if item.type is None:
        if item.parameter is not None:
            context.infer(item.parameter, target)
        return Typed(item.sql, target, column=item.column, may_be_null=item.may_be_null)
    if item.type == target:
        return item
    if item.type.code is target.code and target.code in {TypeCode.ARRAY, TypeCode.STRUCT}:
        return coerce_composite(item, target, context)
    if context.is_undeclared(item):
        return None
    codes = item.type.code, target.code
    if becomes(*codes, GOOGLESQL, Reach.EXPRESSION):
        return widen(item, target)
    if item.literal is not None and becomes(*codes, GOOGLESQL, Reach.PARAMETER, Reach.LITERAL):
        return coerce_literal(item, target, context)
    if item.parameter is not None and becomes(*codes, GOOGLESQL, Reach.PARAMETER):
        return coerce_parameter(item, target, context)
    return None


def coerce_parameter(item: Typed, target: Type, context: Context) -> Typed | None:
    """A parameter as another type, converted when the statement runs, as a CAST does."""
    assert item.type is not None
    if target.proto_name is not None:
        return cast_named(item, target, False, context.protos)
    return Typed(f"{CASTS[item.type.code, target.code]}({item.sql})", target)


def coerce_composite(item: Typed, target: Type, context: Context) -> Typed | None:
    """An array or struct: part by part where it is written out, else only under other names."""
    if target.element is not None:
        if item.parts is None:
            same = item.type is not None and differ_in_names_only(item.type.element, target.element)
            return Typed(item.sql, target, may_be_null=item.may_be_null) if same else None
        # Elements that are parameters do not convert once they are in an array.
        elements_alone = [
            part if part.type is None else replace(part, parameter=None) for part in item.parts
        ]
        parts = [coerce(part, target.element, context) for part in elements_alone]
        return (
            array_of(elements, target.element)
            if (elements := all_or_none(parts)) is not None
            else None
        )
    assert item.type is not None
    if len(item.type.fields) != len(target.fields):
        return None
    if item.parts is None and differ_in_names_only(item.type, target):
        return Typed(item.sql, target)
    values = item.parts or [field_of(item, number) for number in range(len(target.fields))]
    parts = [
        coerce(part, field.type, context) for part, field in zip(values, target.fields, strict=True)
    ]
    converted = all_or_none(parts)
    if converted is None:
        return None
    struct = struct_of(converted, [field.name for field in target.fields])
    if item.parts is not None:
        return struct
    return Typed(f"CASE WHEN {item.sql} IS NOT NULL THEN {struct.sql} END", struct.type)


def all_or_none(parts: list[Typed | None]) -> list[Typed] | None:
    """The parts, if none is missing."""
    present = [part for part in parts if part is not None]
    return present if len(present) == len(parts) else None


def require(item: Typed, target: Type, context: Context, where: str) -> Typed:
    """As ``coerce``, but INVALID_ARGUMENT when it cannot be."""
    converted = coerce(item, target, context)
    if converted is None:
        refuse_two_types(item, target, context)
        raise errors.invalid_argument(
            f"{where} has type {name_of(item.type)} but needs {name_of(target)}"
        )
    return converted


def refuse_two_types(item: Typed, target: Type | None, context: Context) -> None:
    """INVALID_ARGUMENT where an undeclared parameter got another type from an earlier place."""
    if context.is_undeclared(item) and item.type is not None:
        raise errors.invalid_argument(
            f"Undeclared parameter '{item.parameter}' is used assuming different types"
            f" ({name_of(item.type)} vs {name_of(target)})"
        )


def unify(items: list[Typed], context: Context, where: str) -> tuple[list[Typed], Type]:
    """Converts all items to one type, for CASE, COALESCE, IN and set operations."""
    if context.conversions is not None:
        return context.conversions.unify(items, context, where)
    known_types = [complete_type(i, items) for i in items if i.type is not None]
    for target in common_types(items, known_types):
        converted = [coerce(item, target, context) for item in items]
        if all(c is not None for c in converted):
            return [c for c in converted if c is not None], target
    shared = common_type(known_types) or named_among(items)
    if shared is not None:
        return [require(item, shared, context, where) for item in items], shared
    for item in items:
        other = next((type_ for type_ in known_types if type_ != item.type), None)
        refuse_two_types(item, other, context)
    listed = ", ".join(name_of(t) for t in known_types)
    raise errors.invalid_argument(f"No matching signature for {where} for types {listed}")


def common_types(items: list[Typed], known_types: list[Type]) -> Iterator[Type]:
    """The types to try: that of what converts least decides, where all become of it."""
    if not known_types:
        yield STRING if items and all(i.parameter for i in items) else Type(TypeCode.INT64)
        return
    known = [item for item in items if item.type is not None]
    expressions = [item for item in known if item.literal is None and item.parameter is None]
    no_literals = [item for item in known if item.literal is None]
    for group in (expressions, no_literals, known):
        target = common_type([complete_type(item, items) for item in group])
        if target is not None:
            yield target
    yield from (each for each in known_types if each.code is not TypeCode.ARRAY)


def complete_type(item: Typed, items: list[Typed]) -> Type:
    """The type of an item; a field that is NULL, or a parameter, has the type of another item's."""
    assert item.type is not None
    if item.type.code is not TypeCode.STRUCT or item.parts is None:
        return item.type
    fields = []
    for place, (field, part) in enumerate(zip(item.type.fields, item.parts, strict=True)):
        others = (field_type(other, place) for other in items)
        inferred = next((type_ for type_ in others if type_ is not None), field.type)
        fields.append(field if part.type is not None else StructField(field.name, inferred))
    return Type(TypeCode.STRUCT, fields=tuple(fields))


def field_type(item: Typed, place: int) -> Type | None:
    """The type of a struct's field, where anything says it."""
    if item.type is None or place >= len(item.type.fields):
        return None
    if item.parts is not None and item.parts[place].type is None:
        return None
    return item.type.fields[place].type


def widen(item: Typed, target: Type) -> Typed:
    """A lossless conversion among the numbers."""
    assert item.type is not None
    if target.code is TypeCode.NUMERIC:
        return Typed(f"int64_to_numeric({item.sql})", target)
    if item.type.code is TypeCode.NUMERIC:
        return Typed(f"numeric_to_float64({item.sql})", target)
    if item.type.code in FLOATS:
        return Typed(item.sql, target)
    # It stays a literal: [1, 2.5] becomes an array of NUMERIC as [1.0, 2.5] does.
    return Typed(f"CAST({item.sql} AS REAL)", target, literal=item.literal)


def coerce_literal(item: Typed, target: Type, context: Context) -> Typed | None:
    """A literal as another type, converted now, but bytes to a message as a parameter is. Raises
    INVALID_ARGUMENT."""
    assert item.type is not None
    assert item.literal is not None
    if item.type.code is TypeCode.BYTES:
        return coerce_parameter(item, target, context)
    if target.proto_name is not None:
        return convert_literal(item, target, context.protos)
    try:
        if item.type.code is TypeCode.STRING:
            return text_as(item.literal, target)
    except ValueError as error:
        raise errors.invalid_argument(
            f"Could not cast literal {item.literal!r} to type {name_of(target)}"
        ) from error
    if target.code is TypeCode.FLOAT32:
        return Typed(f"to_float32({item.sql})", target)
    number = float_as_numeric(item.literal)
    if number is None:
        raise errors.invalid_argument(f"Could not cast literal {item.literal} to type NUMERIC")
    return number


def text_as(text: str, target: Type) -> Typed:
    """The text of a literal as a DATE, TIMESTAMP, UUID or NUMERIC. Raises ValueError."""
    return Typed(quote_text(STRING_FORMS[target.code](text)), target)


def float_as_numeric(text: str) -> Typed | None:
    """A float literal as NUMERIC: as it is written, or else the double that it is.

    None where neither fits.
    """
    for number in (Decimal(text), Decimal(float(text))):
        try:
            return Typed(quote_text(forms.numeric_from_decimal(number)), NUMERIC)
        except ValueError:
            continue
    return None


STRING_FORMS: dict[TypeCode, Callable[[str], str]] = {
    TypeCode.DATE: forms.date_form,
    TypeCode.TIMESTAMP: timestamp_form,
    TypeCode.UUID: forms.uuid_form,
    TypeCode.NUMERIC: forms.numeric_form,
}
