"""``where`` of a table: which of its rows are delivered, as a value that is checked against the
schema.

A small part of SQL that both dialects write alike, and that Spanner and Arrow evaluate alike: what
is polled is filtered by Spanner, the rows of a backfill are filtered here. No text of it is ever
put into a statement.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation
from functools import partial

from ddl.model.schema import Table, Type, TypeCode
from watcher.model.errors import ConfigurationError
from watcher.spanner.results.supported_types import is_supported
from watcher.spanner.timestamps import to_micros
from watcher.tables.column_choice import explain_unknown_column, render_full_type

Literal = str | int | bool | Decimal | date
"""A value of a condition; a TIMESTAMP is its microseconds since 1970."""

OF_TIMES = ("<", ">=")
"""What is the same for a TIMESTAMP and for its microseconds."""
EQUALITY = ("=", "<>")
ADVICE = {
    TypeCode.BOOL: "compare it with TRUE or FALSE by = or <>",
    TypeCode.INT64: "compare it with a whole number of 64 bits",
    TypeCode.NUMERIC: "compare it with a number of at most 29 digits, and 9 behind the point",
    TypeCode.STRING: "compare it with a text in single quotes",
    TypeCode.DATE: "compare it with DATE '2026-01-31'",
    TypeCode.TIMESTAMP: "compare it by < or >= with TIMESTAMP '2026-01-31T12:00:00Z'",
}
"""How values of a type are compared."""
NUMERIC_STEP, NUMERIC_END, PRECISION = Decimal("1e-9"), Decimal("1e29"), 38


@dataclass(frozen=True, slots=True)
class Compare:
    """``sign`` is one of = <> < <= > >=."""

    column: str
    sign: str
    value: Literal


@dataclass(frozen=True, slots=True)
class IsNull:
    """The column has no value."""

    column: str


@dataclass(frozen=True, slots=True)
class Among:
    """The column has one of these values."""

    column: str
    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class StartsWith:
    """The text of the column begins with another."""

    column: str
    text: Literal


@dataclass(frozen=True, slots=True)
class Negation:
    """The opposite; of what is unknown, because a value is NULL, unknown again."""

    operand: Predicate


@dataclass(frozen=True, slots=True)
class Every:
    """All are true."""

    operands: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """At least one is true."""

    operands: tuple[Predicate, ...]


Predicate = Compare | IsNull | Among | StartsWith | Negation | Every | Either


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Which rows of a table are delivered: the predicate with values of its columns' types, and
    the types of the columns that it names, as the schema spells them."""

    predicate: Predicate
    columns: tuple[tuple[str, Type], ...]


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

    def convert(self, column: str, sign: str, value: Literal) -> Literal:
        """A value as one of a column's type. Raises ConfigurationError."""
        try:
            return convert_literal(self._found[column], sign, value)
        except ValueError as error:
            raise ConfigurationError(
                f"where of table {self._table.name}: column {column} has type"
                f" {render_full_type(self._found[column])}: {error}"
            ) from error


def bind(predicate: Predicate, lookup: Lookup) -> Predicate:
    """The predicate with the columns and values of a table. Raises ConfigurationError."""
    match predicate:
        case IsNull(name):
            return IsNull(lookup.find(name))
        case Compare(name, sign, value):
            column = lookup.find(name)
            return Compare(column, sign, lookup.convert(column, sign, value))
        case Among(name, values):
            column = lookup.find(name)
            convert = partial(lookup.convert, column, "=")
            return Among(column, tuple(map(convert, values)))
        case StartsWith(name, text):
            column = lookup.find(name)
            return StartsWith(column, lookup.convert(column, "STARTS_WITH", text))
        case Negation(operand):
            return Negation(bind(operand, lookup))
        case Every(operands):
            return Every(tuple(bind(each, lookup) for each in operands))
        case Either(operands):
            return Either(tuple(bind(each, lookup) for each in operands))


def convert_literal(type_: Type, sign: str, value: Literal) -> Literal:
    """A value as one of a type. Raises ValueError that says what the type wants."""
    if sign == "STARTS_WITH" and type_.code is not TypeCode.STRING:
        raise ValueError("STARTS_WITH is for a STRING")
    kept = {
        TypeCode.BOOL: isinstance(value, bool) and sign in EQUALITY,
        TypeCode.INT64: type(value) is int and -(2**63) <= value < 2**63,
        TypeCode.STRING: isinstance(value, str),
    }
    if kept.get(type_.code):
        return value
    match type_.code:
        case TypeCode.NUMERIC:
            return convert_numeric(value)
        case TypeCode.DATE if isinstance(value, str):
            return convert_date(value)
        case TypeCode.TIMESTAMP if isinstance(value, str) and sign in OF_TIMES:
            return convert_time(value)
        case _:
            raise ValueError(ADVICE.get(type_.code, "only IS NULL and IS NOT NULL are allowed"))


def convert_numeric(value: Literal) -> Decimal:
    """A NUMERIC. Raises ValueError."""
    advice = ADVICE[TypeCode.NUMERIC]
    if isinstance(value, bool | date):
        raise ValueError(advice)
    try:
        number = Decimal(value)
    except InvalidOperation as error:
        raise ValueError(advice) from error
    if not number.is_finite() or abs(number) >= NUMERIC_END:
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
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(ADVICE[TypeCode.TIMESTAMP]) from error
    return to_micros(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
