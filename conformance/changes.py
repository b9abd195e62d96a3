"""A change as a system delivered it, in no format: plain values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

from conformance.truth import Key, Row


class Unknown(Enum):
    """What a line does not say."""

    UNKNOWN = "unknown"


UNKNOWN = Unknown.UNKNOWN
Version: TypeAlias = str | Literal[Unknown.UNKNOWN] | None
"""A version of a row; None for a row that is not there."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a line says. Timestamps are in microseconds since 1970. ``old`` and ``new`` name the
    versions of the row before and after."""

    table: str
    key: Key
    at: int
    operation: str
    new: Version = UNKNOWN
    old: Version = UNKNOWN
    transaction: str | None = None
    id: str | None = None
    window: tuple[int, int] | None = None

    @property
    def row(self) -> Row:
        """The row."""
        return self.table, self.key


@dataclass(frozen=True, slots=True)
class Line:
    """A change with the number of its line, when it arrived, and by which start of the command,
    counted from 1."""

    number: int
    start: int
    arrived: int
    change: Change

    @property
    def row(self) -> Row:
        """The row."""
        return self.change.row

    @property
    def at(self) -> int:
        """The commit timestamp."""
        return self.change.at

    @property
    def transaction(self) -> str:
        """The transaction's id; "" if the line has none."""
        return self.change.transaction or ""

    @property
    def id(self) -> str:
        """The change's id; "" if the line has none."""
        return self.change.id or ""


@dataclass(frozen=True, slots=True)
class Blow:
    """What was done to the system, or to the server, and when: microseconds since 1970."""

    kind: str
    begin: int
    end: int


ENDED = "ended"
"""The command ended by itself, and was started again."""
STARTING = frozenset({"kill", "stop", ENDED})
"""The blows after which the command is started again."""
DISTURBING = STARTING | {"freeze", "restart_server", "trouble"}
"""The blows after which a change may come again, and late. A schema change is none of them."""
