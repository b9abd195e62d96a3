"""Spark's filters as conditions that Spanner checks. What means anything else there stays Spark's.

Floats are left to Spark, whose NaN equals NaN; so are JSON, UUID, arrays and nested columns.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
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

from ddl.model.schema import Type, TypeCode
from watcher.model.value_types import FORMS, VALUE_TYPES, Form
from watcher.spanner.dialects import GOOGLESQL, SqlDialect
from watcher.spanner.sql import RowCondition, WireValue
from watcher.spanner.timestamps import format_timestamp, to_micros

DECIMALS = {Form.NUMERIC, Form.WIDE_NUMERIC}
COMPARISONS: dict[type[Filter], str] = {
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}
SEARCHES: dict[type[Filter], Callable[[SqlDialect, str, str], str]] = {
    StringStartsWith: lambda _, name, part: f"STARTS_WITH({name}, {part})",
    StringEndsWith: lambda sql, name, part: sql.ends_with(name, part),
    StringContains: lambda _, name, part: f"STRPOS({name}, {part}) > 0",
}
MICROSECOND = timedelta(microseconds=1)
VALUES_MAX = 500
"""More values of an IN are left to Spark: a statement has a bounded number of parameters."""


@dataclass(slots=True)
class FilterTranslator:
    """Turns filters into conditions; ``names`` maps the columns that are shown to Spanner's names
    and types."""

    names: Mapping[str, tuple[str, TypeCode]]
    sql: SqlDialect = GOOGLESQL
    conditions: list[RowCondition] = field(default_factory=list)
    _params: int = 0

    def push(self, filters: Iterable[Filter]) -> list[Filter]:
        """Keeps what Spanner can check; what is left to Spark."""
        left = []
        for each in filters:
            condition = self.translate(each)
            if condition is None:
                left.append(each)
            else:
                self.conditions.append(condition)
        return left

    def translate(self, each: Filter) -> RowCondition | None:
        """A filter as a condition; None where Spark has to check it."""
        if isinstance(each, Not):
            inner = self.translate(each.child)
            return negate(inner) if inner is not None else None
        path: tuple[str, ...] = getattr(each, "attribute", ())
        if len(path) != 1 or path[0] not in self.names:
            return None
        name, code = self.names[path[0]]
        if isinstance(each, IsNull):
            return RowCondition(f"{self.sql.quote_column(name)} IS NULL")
        if isinstance(each, IsNotNull):
            return RowCondition(f"{self.sql.quote_column(name)} IS NOT NULL")
        described = VALUE_TYPES[code]
        if described is None or not described.pushed:
            return None
        return self._compare(each, self.sql.quote_column(name), code)

    def _compare(self, each: Filter, name: str, code: TypeCode) -> RowCondition | None:
        if isinstance(each, In):
            return self._match_any(each, name, code)
        value = getattr(each, "value", None)
        if isinstance(each, EqualNullSafe):
            if value is None:
                return RowCondition(f"{name} IS NULL")
            equal = self._match_equal(name, code, value)
            return combine(RowCondition(f"{name} IS NOT NULL"), equal) if equal else None
        if value is None:
            return None
        if isinstance(each, EqualTo):
            return self._match_equal(name, code, value)
        if type(each) in SEARCHES and code is TypeCode.STRING:
            search = SEARCHES[type(each)]
            return self._bind(lambda p: search(self.sql, name, p), code, value)
        if type(each) not in COMPARISONS:
            return None
        return self._order(name, code, COMPARISONS[type(each)], value)

    def _order(self, name: str, code: TypeCode, sign: str, value: object) -> RowCondition | None:
        """Spark sees microseconds where Spanner keeps nanoseconds: 'at most t' is 'before t+1'."""
        if code is TypeCode.TIMESTAMP and isinstance(value, datetime) and sign in (">", "<="):
            sign = {">": ">=", "<=": "<"}[sign]
            value += MICROSECOND
        return self._bind(lambda p: f"{name} {sign} {p}", code, value)

    def _match_equal(self, name: str, code: TypeCode, value: object) -> RowCondition | None:
        if code is not TypeCode.TIMESTAMP:
            return self._bind(lambda p: f"{name} = {p}", code, value)
        low = self._order(name, code, ">=", value)
        high = self._order(name, code, "<=", value)
        return combine(low, high) if low is not None and high is not None else None

    def _match_any(self, each: In, name: str, code: TypeCode) -> RowCondition | None:
        if code is TypeCode.TIMESTAMP or not 0 < len(each.value) <= VALUES_MAX:
            return None
        wired = [encode_parameter(value, code) for value in each.value]
        if any(value is None for value in wired):
            return None
        parts = [self._bind(lambda p: p, code, value) for value in each.value]
        conditions = [part for part in parts if part is not None]
        merged = conditions[0]
        for part in conditions[1:]:
            merged = RowCondition(
                f"{merged.sql}, {part.sql}",
                {**merged.params, **part.params},
                {**merged.types, **part.types},
            )
        return RowCondition(f"{name} IN ({merged.sql})", merged.params, merged.types)

    def _bind(
        self, text: Callable[[str], str], code: TypeCode, value: object
    ) -> RowCondition | None:
        wired = encode_parameter(value, code)
        if wired is None:
            return None
        name = f"filter{self._params}"
        self._params += 1
        type_ = Type(code)
        return RowCondition(text(f"@{name}"), {name: wired}, {name: type_})


def combine(left: RowCondition, right: RowCondition) -> RowCondition:
    """Two conditions at once."""
    return RowCondition(
        f"({left.sql}) AND ({right.sql})",
        {**left.params, **right.params},
        {**left.types, **right.types},
    )


def negate(condition: RowCondition) -> RowCondition:
    """Spark and Spanner alike: not unknown is unknown."""
    return RowCondition(f"NOT ({condition.sql})", condition.params, condition.types)


def encode_parameter(value: object, code: TypeCode) -> WireValue | None:
    """A value as a parameter of a type; None where Spark means something else by it."""
    if isinstance(value, bool):
        return value if code is TypeCode.BOOL else None
    if isinstance(value, int):
        return str(value) if FORMS[code] in {Form.INTEGER, *DECIMALS} else None
    if isinstance(value, Decimal):
        return f"{value:f}" if FORMS[code] in DECIMALS else None
    if isinstance(value, str):
        return value if code is TypeCode.STRING else None
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode() if code is TypeCode.BYTES else None
    if isinstance(value, datetime):
        return (
            format_timestamp(to_micros(value.astimezone())) if code is TypeCode.TIMESTAMP else None
        )
    if isinstance(value, date):
        return value.isoformat() if code is TypeCode.DATE else None
    return None
