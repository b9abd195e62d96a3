"""ARRAY and STRUCT values: JSON text in storage, whose elements have a form of their own."""

from __future__ import annotations

from collections.abc import Sequence

from emulator import errors
from emulator.sql.types import Columns, Typed, name_of
from emulator.values.types import FLOATS, INT64, array
from spanner_schema.model.column_types import StructField, Type, TypeCode

ARGUMENTS_MAX = 500
"""SQLite's functions take a thousand."""


def array_of(parts: Sequence[Typed], element: Type) -> Typed:
    """[a, b, ...]; the parts have the element's type."""
    calls = [
        f"fn_array({', '.join(part.sql for part in parts[start : start + ARGUMENTS_MAX])})"
        for start in range(0, max(len(parts), 1), ARGUMENTS_MAX)
    ]
    while len(calls) > 1:
        calls = [
            f"fn_concat_arrays({', '.join(calls[start : start + ARGUMENTS_MAX])})"
            for start in range(0, len(calls), ARGUMENTS_MAX)
        ]
    return Typed(calls[0], array(element), parts=tuple(parts))


def struct_of(parts: Sequence[Typed], names: Sequence[str]) -> Typed:
    """STRUCT(a AS x, ...)."""
    fields = tuple(
        StructField(name, part.type or INT64) for name, part in zip(names, parts, strict=True)
    )
    listed = ", ".join(part.sql for part in parts)
    return Typed(f"fn_array({listed})", Type(TypeCode.STRUCT, fields=fields), parts=tuple(parts))


def element_value(sql: str, type_: Type) -> Typed:
    """An element of a JSON array in the storage form of its type."""
    if type_.code in {TypeCode.BYTES, TypeCode.PROTO}:
        return Typed(f"fn_from_base64({sql})", type_)
    if type_.code in FLOATS:
        return Typed(f"fn_float_element({sql})", type_)
    return Typed(sql, type_)


def field_of(owner: Typed, number: int) -> Typed:
    """A field of a STRUCT value by its place; NULL of NULL."""
    assert owner.type is not None
    if owner.parts is not None:
        return owner.parts[number]
    field = owner.type.fields[number]
    return element_value(f"fn_element({owner.sql}, {number}, 0)", field.type)


def struct_field(owner: Typed, name: str) -> Typed:
    """A field of a STRUCT value by its name."""
    if owner.type is None or owner.type.code is not TypeCode.STRUCT:
        raise errors.invalid_argument(
            f"Cannot access field {name} on a value with type {name_of(owner.type)}"
        )
    places = [n for n, f in enumerate(owner.type.fields) if f.name.casefold() == name.casefold()]
    if len(places) != 1:
        if places:
            raise errors.invalid_argument(f"Struct field name {name} is ambiguous")
        raise errors.invalid_argument(f"Field name {name} does not exist in {name_of(owner.type)}")
    element = field_of(owner, places[0])
    field = owner.type.fields[places[0]]
    return Typed(element.sql, field.type, column=field.name)


def elements(values: Typed) -> str:
    """A table of an array's elements: "value" and "offset"."""
    assert values.type is not None
    assert values.type.element is not None
    value = element_value('"value"', values.type.element).sql
    return f'(SELECT {value} AS "value", "key" AS "offset" FROM json_each({values.sql}))'


def wrap_one_column(sql: str, columns: Columns, where: str) -> tuple[str, Typed]:
    """A query of one column as one whose column is called v, and that column."""
    if len(columns) != 1:
        raise errors.invalid_argument(f"{where} must have only one output column")
    text = f'WITH "$q"("v") AS ({sql}) SELECT "v" FROM "$q"'
    return text, Typed('"v"', columns[0].type)


def refuse_array_of_arrays(element: Type | None) -> None:
    """Spanner has no arrays whose elements are arrays."""
    if element is not None and element.code is TypeCode.ARRAY:
        raise errors.invalid_argument(
            "Cannot construct array with element type"
            f" {name_of(element)} because nested arrays are not supported"
        )
