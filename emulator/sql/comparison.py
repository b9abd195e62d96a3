"""Comparisons as SQLite text: NaN, and structs field by field, have rules of their own."""

from __future__ import annotations

from emulator import errors
from emulator.sql.composites import field_of
from emulator.sql.types import Typed, name_of
from emulator.values.types import FLOATS
from spanner_schema.model.column_types import Type, TypeCode


def compare(left: Typed, operator: str, right: Typed, type_: Type) -> str:
    """left operator right, both of one type. Raises where the type cannot be compared."""
    if type_.code is TypeCode.STRUCT:
        return compare_structs(left, operator, right, type_)
    if type_.code in {TypeCode.ARRAY, TypeCode.JSON, TypeCode.TOKENLIST, TypeCode.PROTO}:
        raise errors.invalid_argument(
            f"{operator} is not defined for arguments of type {name_of(type_)}"
        )
    left, right = to_comparable(left), to_comparable(right)
    text = f"{left.sql} {operator} {right.sql}"
    if type_.code not in FLOATS:
        return f"({text})"
    # NaN, a text in storage, is neither equal to, less nor greater than anything; NULL stays NULL.
    pairs = [(this.sql, other.sql) for this, other in ((left, right), (right, left))]
    pairs = [pair for pair, side in zip(pairs, (left, right), strict=True) if not side.literal]
    if operator == "<>":
        tests = [f"({this} = 'NaN' AND {other} IS NOT NULL)" for this, other in pairs]
        return f"({' OR '.join([text, *tests])})"
    tests = [f"({this} <> 'NaN' OR {other} IS NULL)" for this, other in pairs]
    return f"({' AND '.join([text, *tests])})"


def to_comparable(item: Typed) -> Typed:
    """The item in a form that SQLite compares and sorts: intervals by their length, numerics of
    the PostgreSQL dialect by their keys."""
    if item.type is not None and item.type.code is TypeCode.PG_NUMERIC:
        return Typed(f"pg_numeric_key({item.sql})", item.type)
    if item.type is None or item.type.code is not TypeCode.INTERVAL:
        return item
    return Typed(f"fn_interval_order({item.sql})", item.type)


def compare_structs(left: Typed, operator: str, right: Typed, type_: Type) -> str:
    """Equality of structs: of every field in order, names do not matter."""
    if operator not in {"=", "<>"}:
        raise errors.invalid_argument(f"{operator} is not defined for {name_of(type_)}")
    tests = [
        compare(
            Typed(field_of(left, number).sql, field.type),
            "=",
            Typed(field_of(right, number).sql, field.type),
            field.type,
        )
        for number, field in enumerate(type_.fields)
    ]
    whole = f"({' AND '.join(tests)})"
    if not tests:
        whole = f"(CASE WHEN {left.sql} IS NOT NULL AND {right.sql} IS NOT NULL THEN 1 END)"
    return whole if operator == "=" else f"(NOT {whole})"


def test_membership(item: Typed, choices: list[Typed], type_: Type) -> str:
    """item IN (choices), all of one type."""
    if type_.code in FLOATS or type_.code in {TypeCode.STRUCT, TypeCode.INTERVAL}:
        return "(" + " OR ".join(compare(item, "=", choice, type_) for choice in choices) + ")"
    if type_.code in {TypeCode.ARRAY, TypeCode.JSON, TypeCode.PROTO}:
        raise errors.invalid_argument(f"IN is not defined for {name_of(type_)}")
    return f"({item.sql} IN ({', '.join(choice.sql for choice in choices)}))"


def test_row_membership(item: Typed, value: str, source: str, type_: Type) -> str:
    """item IN (the column ``value`` of the rows of ``source``)."""
    if type_.code in {TypeCode.ARRAY, TypeCode.JSON, TypeCode.PROTO}:
        raise errors.invalid_argument(f"IN is not defined for {name_of(type_)}")
    if type_.code is TypeCode.STRUCT:
        # EXISTS cannot say "unknown": NULL among the fields must still make the answer NULL.
        test = compare(item, "=", Typed(value, type_), type_)
        return (
            f"(SELECT CASE WHEN max({test}) THEN 1 WHEN count(*) > count({test}) THEN NULL"
            f" ELSE 0 END FROM {source})"
        )
    item, value = to_comparable(item), to_comparable(Typed(value, type_)).sql
    where = f" WHERE {value} IS NOT 'NaN'" if type_.code in FLOATS else ""
    return f"({item.sql} IN (SELECT {value} FROM {source}{where}))"
