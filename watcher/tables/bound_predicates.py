"""``where`` of a table, checked against its schema: the columns as it spells them, and values of
their types, in comparisons that Spanner, Arrow and Spark evaluate alike."""

from __future__ import annotations

import math
import re
import struct
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation

from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import Table
from watcher.model.errors import ConfigurationError
from watcher.spanner.results.supported_types import is_supported
from watcher.spanner.timestamps import to_micros
from watcher.tables.column_choice import explain_unknown_column, render_full_type
from watcher.tables.predicates import (
    Among,
    Compare,
    Either,
    Every,
    IsNull,
    Literal,
    Matches,
    MatchKind,
    Negation,
    OtherColumn,
    Predicate,
)

EQUALITY = ("=", "<>")
ADVICE = {
    TypeCode.BOOL: "compare it with TRUE or FALSE by = or <>",
    TypeCode.INT64: "compare it with a whole number of 64 bits",
    TypeCode.FLOAT32: "compare it with a number that is exact in 32 bits, such as 0.5",
    TypeCode.FLOAT64: "compare it with a number of 64 bits",
    TypeCode.NUMERIC: "compare it with a number of at most 29 digits, and 9 behind the point",
    TypeCode.STRING: "compare it with a text in single quotes",
    TypeCode.DATE: "compare it with DATE '2026-01-31'",
    TypeCode.TIMESTAMP: (
        "compare it with TIMESTAMP '2026-01-31T12:00:00Z', in microseconds at most, between the"
        " years 1 and 9999"
    ),
}
"""How values of a type are compared."""
NUMERIC_STEP, NUMERIC_END, PRECISION = Decimal("1e-9"), Decimal("1e29"), 38
FIRST_TIME = to_micros(datetime(1, 1, 1, tzinfo=UTC))
LAST_TIME = to_micros(datetime.max.replace(tzinfo=UTC))
FINER = re.compile(r"[.,]\d{6}\d*[1-9]")
FLOATS = (TypeCode.FLOAT32, TypeCode.FLOAT64)
OF_TWO_COLUMNS = (
    TypeCode.BOOL,
    TypeCode.INT64,
    TypeCode.NUMERIC,
    TypeCode.STRING,
    TypeCode.DATE,
)
"""Two columns of one of these types can be compared: not of floats, whose NaN equals NaN for Spark
alone, and not of TIMESTAMPs, of which Spanner would compare the nanoseconds."""
GREATER = {">": "<=", ">=": "<"}
"""NaN is greater than every number, as in Spark and PostgreSQL: in GoogleSQL and Arrow, where each
comparison with it is false, it is what is not less."""


class Lookup:
    """The columns of a table; keeps those that were asked for."""

    def __init__(self, table: Table, found: dict[str, Type]) -> None:
        self._table = table
        self._found = found

    def find(self, name: str) -> str:
        """A column as the schema spells it. Raises ConfigurationError."""
        column = self._table.column(name)
        if column is None:
            raise explain_unknown_column(self._table, name)
        if not is_supported(column.type):
            raise ConfigurationError(
                f"where of table {self._table.name}: column {column.name} has type"
                f" {render_full_type(column.type)}, which cannot be read"
            )
        self._found[column.name] = column.type
        return column.name

    def compare(self, name: str, sign: str, value: Literal | OtherColumn) -> Predicate:
        """A comparison that means the same everywhere. Raises ConfigurationError."""
        column = self.find(name)
        type_ = self._found[column]
        if isinstance(value, OtherColumn):
            return self._compare_columns(column, sign, self.find(value.name))
        literal = self._convert(column, sign, value)
        if type_.code is TypeCode.TIMESTAMP:
            return compare_time(column, sign, literal)
        if type_.code in FLOATS and sign in GREATER:
            return Negation(Compare(column, GREATER[sign], literal))
        return Compare(column, sign, literal)

    def match(self, name: str, kind: MatchKind, text: Literal) -> Predicate:
        """A search in a text. Raises ConfigurationError."""
        column = self.find(name)
        if self._found[column].code is not TypeCode.STRING:
            raise self._refuse(column, "STARTS_WITH and LIKE are for a STRING")
        return Matches(column, kind, self._convert(column, "=", text))

    def match_any(self, name: str, values: tuple[Literal, ...]) -> Predicate:
        """One of some values. Raises ConfigurationError."""
        column = self.find(name)
        if self._found[column].code is TypeCode.TIMESTAMP:
            return Either(tuple(self.compare(column, "=", value) for value in values))
        return Among(column, tuple(self._convert(column, "=", value) for value in values))

    def _compare_columns(self, left: str, sign: str, right: str) -> Predicate:
        code, other = self._found[left].code, self._found[right].code
        if code is not other or code not in OF_TWO_COLUMNS:
            kinds = ", ".join(each.value for each in OF_TWO_COLUMNS)
            raise self._refuse(
                left, f"it can be compared with a column of its own type, if that is one of {kinds}"
            )
        if code is TypeCode.BOOL and sign not in EQUALITY:
            raise self._refuse(left, "compare it by = or <>")
        return Compare(left, sign, OtherColumn(right))

    def _convert(self, column: str, sign: str, value: Literal) -> Literal:
        try:
            return convert_literal(self._found[column], sign, value)
        except ValueError as error:
            raise self._refuse(column, str(error)) from error

    def _refuse(self, column: str, why: str) -> ConfigurationError:
        return ConfigurationError(
            f"where of table {self._table.name}: column {column} has type"
            f" {render_full_type(self._found[column])}: {why}"
        )


def compare_time(column: str, sign: str, micros: Literal) -> Predicate:
    """A comparison of a column's microseconds, where Spanner keeps nanoseconds."""
    assert isinstance(micros, int)
    at_least, before = Compare(column, ">=", micros), Compare(column, "<", micros + 1)
    match sign:
        case "=":
            return Every((at_least, before))
        case "<>":
            return Negation(Every((at_least, before)))
        case "<=":
            return before
        case ">":
            return Compare(column, ">=", micros + 1)
        case _:
            return Compare(column, sign, micros)


def bind(predicate: Predicate, lookup: Lookup) -> Predicate:
    """The predicate with the columns and values of a table. Raises ConfigurationError."""
    match predicate:
        case IsNull(name):
            return IsNull(lookup.find(name))
        case Compare(name, sign, value):
            return lookup.compare(name, sign, value)
        case Among(name, values):
            return lookup.match_any(name, values)
        case Matches(name, kind, text):
            return lookup.match(name, kind, text)
        case Negation(operand):
            return Negation(bind(operand, lookup))
        case Every(operands):
            return Every(tuple(bind(each, lookup) for each in operands))
        case Either(operands):
            return Either(tuple(bind(each, lookup) for each in operands))


def convert_literal(type_: Type, sign: str, value: Literal) -> Literal:
    """A value as one of a type. Raises ValueError that says what the type wants."""
    kept = {
        TypeCode.BOOL: isinstance(value, bool) and sign in EQUALITY,
        TypeCode.INT64: type(value) is int and -(2**63) <= value < 2**63,
        TypeCode.STRING: isinstance(value, str),
    }
    if kept.get(type_.code):
        return value
    match type_.code:
        case TypeCode.FLOAT32 | TypeCode.FLOAT64:
            return convert_float(type_.code, value)
        case TypeCode.NUMERIC:
            return convert_numeric(value)
        case TypeCode.DATE if isinstance(value, str):
            return convert_date(value)
        case TypeCode.TIMESTAMP if isinstance(value, str):
            return convert_time(value)
        case _:
            raise ValueError(ADVICE.get(type_.code, "only IS NULL and IS NOT NULL are allowed"))


def convert_float(code: TypeCode, value: Literal) -> float:
    """A FLOAT32 or FLOAT64. A FLOAT32 must have the number exactly: Spark compares it in 64 bits.
    Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError(ADVICE[code])
    try:
        number = float(value)
        exact = code is TypeCode.FLOAT64 or struct.unpack("<f", struct.pack("<f", number))[0] == (
            value
        )
    except OverflowError as error:
        raise ValueError(ADVICE[code]) from error
    if not math.isfinite(number) or not exact:
        raise ValueError(ADVICE[code])
    return number


def convert_numeric(value: Literal) -> Decimal:
    """A NUMERIC. Raises ValueError."""
    advice = ADVICE[TypeCode.NUMERIC]
    if isinstance(value, bool | date | float | bytes):
        raise ValueError(advice)
    try:
        number = Decimal(value)
    except InvalidOperation as error:
        raise ValueError(advice) from error
    if not number.is_finite() or number.copy_abs() >= NUMERIC_END:
        raise ValueError(advice)
    rounded = number.quantize(NUMERIC_STEP, context=Context(prec=PRECISION))
    if rounded != number:
        raise ValueError(advice)
    return rounded


def convert_date(text: str) -> date:
    """A DATE. Raises ValueError."""
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise ValueError(ADVICE[TypeCode.DATE]) from error


def convert_time(text: str) -> int:
    """A TIMESTAMP as microseconds since 1970. Raises ValueError."""
    advice = ADVICE[TypeCode.TIMESTAMP]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(advice) from error
    micros = to_micros(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    if FINER.search(text) or not FIRST_TIME <= micros < LAST_TIME:
        raise ValueError(advice)
    return micros


def is_comparable(type_: Type) -> bool:
    """Whether values of a type can be compared; those of others can only be NULL or not."""
    return type_.code in ADVICE
