"""Implicit conversions between Spanner's types."""

from __future__ import annotations

from collections.abc import Callable

from ddl.schema import StructField, Type, TypeCode
from emulator import errors
from emulator.sql.composites import array_of, struct_of
from emulator.sql.scope import Context
from emulator.sql.types import (
    FROM_FLOAT_LITERAL,
    FROM_INTEGER_LITERAL,
    FROM_STRING_LITERAL,
    WIDER,
    Typed,
    common_type,
    drop_length,
    name_of,
)
from emulator.values import forms
from emulator.values.sqlite_text import quote_text
from emulator.values.types import FLOATS, STRING


def coerce(item: Typed, wanted: Type, context: Context) -> Typed | None:
    """The item as the wanted type where Spanner converts by itself, else None."""
    wanted = drop_length(wanted)
    if item.type is None:
        if item.parameter is not None:
            context.infer(item.parameter, wanted)
        return Typed(item.sql, wanted, column=item.column)
    if item.type == wanted:
        return item
    if item.literal is not None and (converted := coerce_literal(item, wanted)) is not None:
        return converted
    if item.type.code is wanted.code and wanted.code in {TypeCode.ARRAY, TypeCode.STRUCT}:
        return coerce_composite(item, wanted, context)
    if wanted.code in WIDER.get(item.type.code, ()):
        return widen(item, wanted)
    return None


def coerce_composite(item: Typed, wanted: Type, context: Context) -> Typed | None:
    """An array or struct: part by part where it is written out, else only under other names."""
    if wanted.element is not None:
        if item.parts is None:
            same = item.type is not None and differ_in_names_only(item.type.element, wanted.element)
            return Typed(item.sql, wanted) if same else None
        parts = [coerce(part, wanted.element, context) for part in item.parts]
        return (
            array_of(known, wanted.element) if (known := all_or_none(parts)) is not None else None
        )
    assert item.type is not None
    if len(item.type.fields) != len(wanted.fields):
        return None
    if item.parts is None:
        pairs = zip(item.type.fields, wanted.fields, strict=True)
        same = all(differ_in_names_only(mine.type, theirs.type) for mine, theirs in pairs)
        return Typed(item.sql, wanted) if same else None
    parts = [
        coerce(part, field.type, context)
        for part, field in zip(item.parts, wanted.fields, strict=True)
    ]
    found = all_or_none(parts)
    return None if found is None else struct_of(found, [field.name for field in wanted.fields])


def all_or_none(parts: list[Typed | None]) -> list[Typed] | None:
    """The parts, if none is missing."""
    found = [part for part in parts if part is not None]
    return found if len(found) == len(parts) else None


def differ_in_names_only(mine: Type | None, wanted: Type | None) -> bool:
    """Whether two types differ in the names of struct fields only."""
    if mine is None or wanted is None or mine.code is not wanted.code:
        return mine is wanted
    if mine.code is TypeCode.ARRAY:
        return differ_in_names_only(mine.element, wanted.element)
    if len(mine.fields) != len(wanted.fields):
        return False
    pairs = zip(mine.fields, wanted.fields, strict=True)
    return all(differ_in_names_only(one.type, other.type) for one, other in pairs)


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
    known = [complete_type(i, items) for i in items if i.type is not None]
    firm = [complete_type(i, items) for i in items if i.type is not None and i.literal is None]
    wanted = common_type(firm) if firm else common_type(known)
    if not known:
        wanted = STRING if all(i.parameter for i in items) and items else Type(TypeCode.INT64)
    if wanted is not None:
        converted = [coerce(item, wanted, context) for item in items]
        if all(c is not None for c in converted):
            return [c for c in converted if c is not None], wanted
    wanted = common_type(known)
    if wanted is not None:
        return [require(item, wanted, context, where) for item in items], wanted
    listed = ", ".join(name_of(t) for t in known)
    raise errors.invalid_argument(f"No matching signature for {where} for types {listed}")


def complete_type(item: Typed, items: list[Typed]) -> Type:
    """The type of an item; a field that is NULL, or a parameter, has the type of another item's."""
    assert item.type is not None
    if item.type.code is not TypeCode.STRUCT or item.parts is None:
        return item.type
    fields = []
    for place, (field, part) in enumerate(zip(item.type.fields, item.parts, strict=True)):
        others = (field_type(other, place) for other in items)
        found = next((type_ for type_ in others if type_ is not None), field.type)
        fields.append(field if part.type is not None else StructField(field.name, found))
    return Type(TypeCode.STRUCT, fields=tuple(fields))


def field_type(item: Typed, place: int) -> Type | None:
    """The type of a struct's field, where anything says it."""
    if item.type is None or place >= len(item.type.fields):
        return None
    if item.parts is not None and item.parts[place].type is None:
        return None
    return item.type.fields[place].type


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


def coerce_literal(item: Typed, wanted: Type) -> Typed | None:
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
            return Typed(quote_text(forms.numeric_form(text)), wanted)
        return Typed(f"to_float32({item.sql})", wanted)
    return None


STRING_FORMS: dict[TypeCode, Callable[[str], str]] = {
    TypeCode.DATE: lambda text: quote_text(forms.date_form(text)),
    TypeCode.TIMESTAMP: lambda text: quote_text(forms.timestamp_form(text)),
    TypeCode.UUID: lambda text: quote_text(forms.uuid_form(text)),
    TypeCode.BYTES: lambda text: f"x'{text.encode().hex()}'",
}
