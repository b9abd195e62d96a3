"""What the services ask of the engine and what it answers: no protobuf, no SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from spanner_schema.model.column_types import Type

Stored = None | int | float | str | bytes
"""A value in the form that ``emulator.values`` describes."""


class BoundKind(Enum):
    """How the read timestamp of a read-only transaction is chosen."""

    STRONG = "strong"
    READ_TIMESTAMP = "read_timestamp"
    EXACT_STALENESS = "exact_staleness"
    MIN_READ_TIMESTAMP = "min_read_timestamp"
    MAX_STALENESS = "max_staleness"


@dataclass(frozen=True, slots=True)
class TimestampBound:
    """``micros`` is a Unix time in microseconds (timestamps) or a duration (stalenesses)."""

    kind: BoundKind = BoundKind.STRONG
    micros: int = 0


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Primary (or index) keys between two prefixes, in key order."""

    start: tuple[Stored, ...]
    end: tuple[Stored, ...]
    start_closed: bool
    end_closed: bool


@dataclass(frozen=True, slots=True)
class KeySet:
    """Keys and ranges, already in storage form; ``all`` is every row."""

    keys: tuple[tuple[Stored, ...], ...] = ()
    ranges: tuple[KeyRange, ...] = ()
    all: bool = False


class MutationKind(Enum):
    """The writes of a commit."""

    INSERT = "insert"
    UPDATE = "update"
    INSERT_OR_UPDATE = "insert_or_update"
    REPLACE = "replace"


COMMIT_TIMESTAMP = "\0spanner.commit_timestamp()"
"""Stands in a mutation's row where the commit timestamp is to be written."""


@dataclass(frozen=True, slots=True)
class RowWrite:
    """Rows for some columns of a table; values in storage form, in the columns' order."""

    kind: MutationKind
    table: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Stored, ...]]


@dataclass(frozen=True, slots=True)
class KeyDelete:
    """Rows to delete; missing keys are not an error."""

    table: str
    keys: KeySet


Mutation = RowWrite | KeyDelete


@dataclass(frozen=True, slots=True)
class TransactionOrigin:
    """What change streams know of a transaction: its tag, and whether it asks to be left out.

    ``expiry`` marks the deletes of a row deletion policy.
    """

    tag: str = ""
    excluded: bool = False
    expiry: bool = False


PLAIN_ORIGIN = TransactionOrigin()


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result; the name may be empty."""

    name: str
    type: Type


@dataclass(slots=True)
class Stats:
    """What PROFILE reports, measured while the rows are read."""

    rows_returned: int = 0
    rows_scanned: int = 0
    elapsed_seconds: float = 0.0
    plan: tuple[str, ...] = ()


@dataclass(slots=True)
class ResultRows:
    """A result: read ``rows`` to its end or call ``close``; ``stats`` is complete after that."""

    columns: tuple[ResultColumn, ...]
    rows: Iterator[tuple[Stored, ...]]
    stats: Stats
    close: Callable[[], None]
    undeclared_parameters: tuple[ResultColumn, ...] = ()


@dataclass(slots=True)
class DmlResult:
    """``returned`` holds the rows of THEN RETURN; ``rows_scanned`` is 0 where nobody counted."""

    row_count: int
    returned: ResultRows | None = None
    rows_scanned: int = 0


@dataclass(frozen=True, slots=True)
class Committed:
    """The answer to a commit."""

    commit_timestamp_micros: int
    mutation_count: int
