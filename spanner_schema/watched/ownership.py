"""What of a table the product may write over: ours by its form, or by what a user said.

Clearing and ON UPDATE erase values, so both ask here. A column that an application made is its
own, whatever it is called.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.errors import PlanError
from spanner_schema.model.schema import Column, Dialect, Table
from spanner_schema.syntax.render import SPELLINGS
from spanner_schema.syntax.spelling import normalize


@dataclass(frozen=True, slots=True)
class TakeOver:
    """What a user lets the product write over: a column of a table, or a table of change sets.
    ``effect`` says what happens to its values."""

    table: str
    name: str
    effect: str


@dataclass(frozen=True, slots=True)
class Ownership:
    """``declared`` are names that a user let us take over, ``added`` columns that ``apply`` added;
    ``asked`` are those of ``--take-over``. All in lower case."""

    declared: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()

    def allows(self, name: str) -> bool:
        """True if this may be written over, whatever its form is."""
        return name.casefold() in self.declared | self.added | self.asked

    def is_new(self, name: str) -> bool:
        """True if it is asked for here, and nothing allowed it before."""
        return name.casefold() in self.asked - self.declared - self.added


NOBODY = Ownership()
"""Nothing is ours but by its form."""


def fold(names: Iterable[str]) -> frozenset[str]:
    """Names as they are compared."""
    return frozenset(name.casefold() for name in names)


def is_ours(column: Column, dialect: Dialect) -> bool:
    """True for a column that Spanner itself fills with every write: it may hold commit timestamps,
    and both its DEFAULT and its ON UPDATE are the pending commit timestamp."""
    pending = normalize(SPELLINGS[dialect].commit_timestamp)
    return column.allow_commit_timestamp and all(
        normalize(each) == pending for each in (column.default, column.on_update)
    )


def is_change_sets_table(table: Table, id_column: str) -> bool:
    """True for a table that has nothing but ids of change sets, their commit timestamps and
    computed shards: deleting its rows deletes nothing that an application stored."""
    return all(
        column.name.casefold() == id_column.casefold()
        or column.allow_commit_timestamp
        or (column.generated is not None and column.type.code is TypeCode.INT64)
        for column in table.columns
    )


def refuse_take_over(column: str, why: str, effect: str, name: str, other: str) -> PlanError:
    """The error for what is not ours; ``other`` says what else to do."""
    return PlanError(
        f"{column} exists and is not ours ({why}): {effect}; {other}, or,"
        f" if its values may be lost, allow it with --take-over {name}"
    )
