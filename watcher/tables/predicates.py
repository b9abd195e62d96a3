"""``where`` of a table: which of its rows are delivered, as a value.

A small part of SQL that both dialects write alike, and that Spanner, Arrow and Spark evaluate
alike: what is polled is filtered by Spanner, the rows of a backfill are filtered here. No text of
it is ever put into a statement.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum

from spanner_schema.model.column_types import Type

Literal = str | int | bool | float | Decimal | date | bytes
"""A value of a condition; a TIMESTAMP is its microseconds since 1970. BYTES come from Spark's
filters alone."""


class MatchKind(Enum):
    """Which part of a text another one is."""

    START = "STARTS_WITH"
    END = "ENDS_WITH"
    ANYWHERE = "CONTAINS"


@dataclass(frozen=True, slots=True)
class OtherColumn:
    """A column to compare with, in place of a value."""

    name: str


@dataclass(frozen=True, slots=True)
class Compare:
    """``sign`` is one of = <> < <= > >=."""

    column: str
    sign: str
    value: Literal | OtherColumn


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
class Matches:
    """The text of the column begins or ends with another one, or contains it."""

    column: str
    kind: MatchKind
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


Predicate = Compare | IsNull | Among | Matches | Negation | Every | Either


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Which rows of a table are delivered: the predicate with values of its columns' types, the
    types of the columns that it names, as the schema spells them, and the ``text`` that it was read
    from, if it was."""

    predicate: Predicate
    columns: tuple[tuple[str, Type], ...]
    text: str = ""
