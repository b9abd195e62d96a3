"""Spark's filters as a condition that Spanner checks: the value that ``where`` is read into. What
means anything else there stays Spark's.

Floats are left to Spark, whose NaN equals NaN; so are JSON, UUID, arrays and nested columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from spanner_schema.model.column_types import Type, TypeCode
from watcher.model.value_types import FORMS, VALUE_TYPES, Form
from watcher.spanner.timestamps import to_micros
from watcher.tables import predicates
from watcher.tables.bound_predicates import LAST_TIME, compare_time
from watcher.tables.predicates import (
    Among,
    Compare,
    Every,
    Literal,
    Matches,
    MatchKind,
    Negation,
    Predicate,
)

COMPARISONS: Mapping[type[Filter], str] = {
    EqualTo: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}
SEARCHES: Mapping[type[Filter], MatchKind] = {
    StringStartsWith: MatchKind.START,
    StringEndsWith: MatchKind.END,
    StringContains: MatchKind.ANYWHERE,
}
VALUES_MAX = 500
"""More values of an IN are left to Spark: a statement has a bounded number of parameters."""


@dataclass(frozen=True, slots=True)
class FilterTranslator:
    """Turns filters into predicates; ``names`` maps the columns that are shown to Spanner's names
    and types. ``found`` are those that filters named."""

    names: Mapping[str, tuple[str, TypeCode]]
    found: dict[str, Type] = field(default_factory=dict)

    def translate(self, each: Filter) -> Predicate | None:
        """A filter as a predicate; None where Spark has to check it."""
        if isinstance(each, Not):
            inner = self.translate(each.child)
            return Negation(inner) if inner is not None else None
        path: tuple[str, ...] = getattr(each, "attribute", ())
        if len(path) != 1 or path[0] not in self.names:
            return None
        name, code = self.names[path[0]]
        self.found[name] = Type(code)
        if isinstance(each, IsNull):
            return predicates.IsNull(name)
        if isinstance(each, IsNotNull):
            return Negation(predicates.IsNull(name))
        described = VALUE_TYPES[code]
        return translate_test(each, name, code) if described and described.pushed else None


def translate_test(each: Filter, name: str, code: TypeCode) -> Predicate | None:
    """A filter that compares a column with values."""
    if isinstance(each, In):
        values = [convert_value(value, code) for value in each.value]
        known = tuple(value for value in values if value is not None)
        fits = 0 < len(known) == len(values) <= VALUES_MAX and code is not TypeCode.TIMESTAMP
        return Among(name, known) if fits else None
    value = getattr(each, "value", None)
    if isinstance(each, EqualNullSafe):
        if value is None:
            return predicates.IsNull(name)
        equal = compare(name, code, "=", value)
        return Every((Negation(predicates.IsNull(name)), equal)) if equal is not None else None
    if type(each) in SEARCHES:
        text = convert_value(value, code)
        return Matches(name, SEARCHES[type(each)], text) if isinstance(text, str) else None
    sign = COMPARISONS.get(type(each))
    return compare(name, code, sign, value) if sign is not None else None


def compare(name: str, code: TypeCode, sign: str, value: object) -> Predicate | None:
    """Spark sees microseconds where Spanner keeps nanoseconds."""
    literal = convert_value(value, code)
    if literal is None or (code is TypeCode.BOOL and sign != "="):
        return None
    return (
        compare_time(name, sign, literal)
        if code is TypeCode.TIMESTAMP
        else Compare(name, sign, literal)
    )


def convert_value(value: object, code: TypeCode) -> Literal | None:
    """A value of Spark's as one of a type; None where Spark means something else by it."""
    match value:
        case bool():
            return value if code is TypeCode.BOOL else None
        case int():
            decimal = Decimal(value) if is_decimal(code) else None
            return value if FORMS[code] is Form.INTEGER else decimal
        case Decimal():
            return value if is_decimal(code) else None
        case str():
            return value if code is TypeCode.STRING else None
        case bytes() | bytearray():
            return bytes(value) if code is TypeCode.BYTES else None
        case datetime() if code is TypeCode.TIMESTAMP:
            micros = to_micros(value.astimezone())
            return micros if micros < LAST_TIME else None
        case date() if code is TypeCode.DATE and not isinstance(value, datetime):
            return value
        case _:
            return None


def is_decimal(code: TypeCode) -> bool:
    """Whether values are decimals."""
    return FORMS[code] in (Form.NUMERIC, Form.WIDE_NUMERIC)
