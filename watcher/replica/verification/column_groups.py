"""The columns of a table in groups: a statement hashes one of them, and has no more function calls
than Spanner takes. Each group has the whole key, so that its hashes belong to their rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from spanner_schema.model.schema import Dialect
from watcher.replica.verification.canonical import ComparedColumn, render_parts

CALLS_MAX = 600
"""Function calls of the hash of a group. Spanner takes 1,000 in a statement, and the condition of a
range of keys has up to 300."""
CALL = re.compile(r"\b(?!CAST\b)[A-Z_0-9.]+\(|\|\||\bCASE\b|\bIS\b|\bAND\b|[<>=*\[]")
"""What Spanner counts as a call: functions and operators, and no conversions."""
HASH = "row hash"
"""The column of hashes. Spanner has no names with a space: it hides no column of a table."""


@dataclass(frozen=True, slots=True)
class ColumnGroup:
    """Columns that are hashed together, those of the key first. ``sent``: their values are sent and
    hashed here, because Spanner partitions no query that has a subquery, or because a mask hashes
    them first."""

    number: int
    columns: tuple[ComparedColumn, ...]
    sent: bool = False

    @property
    def name(self) -> str:
        """The column of its hashes."""
        return f"{HASH} {self.number}"


@dataclass(frozen=True, slots=True)
class Grouping:
    """How columns become groups. ``boost``: for queries that Spanner partitions."""

    key: tuple[ComparedColumn, ...]
    dialect: Dialect
    boost: bool = False
    calls_max: int = field(default=CALLS_MAX)

    def group(self, columns: Sequence[ComparedColumn]) -> tuple[ColumnGroup, ...]:
        """The columns in groups, which are as few as the limit allows; one at least."""
        sent = [each for each in columns if self._is_sent(each)]
        others = [each for each in columns if each not in sent]
        groups = [(each, False) for each in self._divide(others)]
        groups += [(each, True) for each in self._divide(sent) if each]
        return tuple(
            ColumnGroup(number, (*self.key, *each), sent)
            for number, (each, sent) in enumerate(groups)
        )

    def _is_sent(self, column: ComparedColumn) -> bool:
        return column.hashed or (self.boost and column.mask is None and column.element is not None)

    def _divide(self, columns: Iterable[ComparedColumn]) -> Iterator[list[ComparedColumn]]:
        left = room = self.calls_max - self._count(self.key)
        group: list[ComparedColumn] = []
        for column in columns:
            calls = self._count([column])
            if group and calls > left:
                yield group
                group, left = [], room
            group.append(column)
            left -= calls
        yield group

    def _count(self, columns: Sequence[ComparedColumn]) -> int:
        return sum(map(count_calls, render_parts(columns, self.dialect)))


def count_calls(sql: str) -> int:
    """How many function calls Spanner counts in an expression, about."""
    return len(CALL.findall(sql))
