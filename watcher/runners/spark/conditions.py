"""A condition in Spark's SQL as filters that Spark would offer: what Spanner can check of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from watcher.model.errors import ConfigurationError

DIALECT = "spark"
COMPARED: Mapping[type[exp.Expr], type[Filter]] = {
    exp.EQ: EqualTo,
    exp.NullSafeEQ: EqualNullSafe,
    exp.GT: GreaterThan,
    exp.GTE: GreaterThanOrEqual,
    exp.LT: LessThan,
    exp.LTE: LessThanOrEqual,
}
WILDCARDS = frozenset("%_\\")
PUSHED = "comparisons of a column with a constant, BETWEEN, IN, LIKE 'a%', IS NULL, joined by AND"


class UntranslatedError(Exception):
    """Spark has to check it."""


@dataclass(frozen=True, slots=True)
class ConditionPart:
    """One of the conditions that AND joins: its text, the columns that it names (None where it is
    not known which), and the filters that mean the same (None where there are none)."""

    text: str
    columns: frozenset[str] | None
    filters: tuple[Filter, ...] | None


def split_condition(text: str, names: Collection[str]) -> list[ConditionPart]:
    """The parts of a condition on a table with these columns; Spark ignores the case of names.
    Raises ConfigurationError for what is not SQL."""
    try:
        parsed = parse_one(text, read=DIALECT)
    except SqlglotError as error:
        raise ConfigurationError(
            f"'where' {text!r} is not a condition of Spark's SQL: {error}"
        ) from error
    known = {name.casefold(): name for name in names}
    return [describe_part(each, known) for each in list_parts(parsed)]


def list_parts(parsed: exp.Expr) -> Iterator[exp.Expr]:
    """What AND joins."""
    inner = parsed.unnest()
    if isinstance(inner, exp.And):
        yield from list_parts(inner.left)
        yield from list_parts(inner.right)
    else:
        yield inner


def describe_part(part: exp.Expr, known: Mapping[str, str]) -> ConditionPart:
    """One of them."""
    named = [known.get(column.name.casefold()) for column in part.find_all(exp.Column)]
    plain = not any(column.table for column in part.find_all(exp.Column))
    columns = frozenset(name for name in named if name is not None)
    try:
        filters = tuple(translate_part(part, known))
    except UntranslatedError:
        filters = None
    return ConditionPart(
        part.sql(DIALECT), columns if plain and None not in named else None, filters
    )


def translate_part(part: exp.Expr, known: Mapping[str, str]) -> Iterator[Filter]:
    """The filters that together mean a part. Raises UntranslatedError."""
    if isinstance(part, exp.Not):
        inner = tuple(translate_part(part.this.unnest(), known))
        if len(inner) != 1:
            raise UntranslatedError
        yield Not(inner[0])
        return
    path = (find_column(part.this, known),)
    if isinstance(part, exp.Between):
        yield GreaterThanOrEqual(path, read_constant(part.args["low"]))
        yield LessThanOrEqual(path, read_constant(part.args["high"]))
    elif isinstance(part, exp.Is) and isinstance(part.expression, exp.Null):
        yield IsNull(path)
    elif isinstance(part, exp.In) and part.expressions:
        yield In(path, tuple(read_constant(each) for each in part.expressions))
    elif isinstance(part, exp.NEQ):
        yield Not(EqualTo(path, read_constant(part.expression)))
    elif isinstance(part, exp.Like):
        yield translate_pattern(path, read_constant(part.expression))
    elif type(part) in COMPARED:
        yield COMPARED[type(part)](path, read_constant(part.expression))  # type: ignore[call-arg]
    else:
        raise UntranslatedError


def find_column(node: object, known: Mapping[str, str]) -> str:
    """The column that a node is. Raises UntranslatedError."""
    if isinstance(node, exp.Column) and not node.table and node.name.casefold() in known:
        return known[node.name.casefold()]
    raise UntranslatedError


def read_constant(node: exp.Expr) -> bool | int | Decimal | str | date:
    """The value of a constant, of the type that Spark gives it. Raises UntranslatedError."""
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Neg):
        value = read_constant(node.this)
        if isinstance(value, int | Decimal) and not isinstance(value, bool):
            return -value
    elif isinstance(node, exp.Cast) and node.to.is_type("date"):
        text = read_constant(node.this)
        if isinstance(text, str):
            return read_date(text)
    elif isinstance(node, exp.Literal) and node.is_string:
        return str(node.this)
    elif isinstance(node, exp.Literal):
        return read_number(str(node.this))
    raise UntranslatedError


def read_number(text: str) -> int | Decimal:
    """A number without an exponent, which Spark makes a double of. Raises UntranslatedError."""
    if text.isdecimal():
        return int(text)
    whole, _, fraction = text.partition(".")
    if not (whole + fraction).isdecimal():
        raise UntranslatedError
    return Decimal(text)


def read_date(text: str) -> date:
    """A date of ISO 8601. Raises UntranslatedError."""
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UntranslatedError from error


def translate_pattern(path: tuple[str], pattern: object) -> Filter:
    """A pattern of LIKE with % at its ends only. Raises UntranslatedError."""
    if not isinstance(pattern, str):
        raise UntranslatedError
    text = pattern.removeprefix("%").removesuffix("%")
    before, after = pattern.startswith("%"), len(pattern) > 1 and pattern.endswith("%")
    if not text or WILDCARDS & set(text):
        raise UntranslatedError
    if before and after:
        return StringContains(path, text)
    if after:
        return StringStartsWith(path, text)
    return StringEndsWith(path, text) if before else EqualTo(path, text)
