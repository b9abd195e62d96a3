"""What a database is asked for that keeps the rows of tables: statements in transactions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from spanner_schema.model.column_types import Type, TypeCode
from watcher.captures import TableRows
from watcher.model.change import Change

Target = tuple[str, str]
"""A table that takes rows: its schema and its name."""


@dataclass(frozen=True, slots=True)
class Columns:
    """A table as it is to be: the type of each column there, and its key."""

    target: Target
    key: tuple[str, ...]
    types: Mapping[str, str]


class TableStore(ABC):
    """A database of one kind, and its dialect."""

    mark: ClassVar[str]
    """What stands for a value in a statement."""
    from_micros: ClassVar[str]
    """A moment, of microseconds since 1970 that a mark stands for."""
    arrow_names: ClassVar[Mapping[pa.DataType, str]]
    """How the types of columns are called."""
    binary: ClassVar[frozenset[str]]
    """Those of bytes: a text in one, or bytes in another one, would be another value."""
    names: ClassVar[Mapping[TypeCode, str]]
    """How those are called that are something more particular than in Arrow."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """A transaction; it connects first where it has to. Raises SinkUnavailableError
        where the database does not answer, and DeliveryError for what it refuses."""

    @abstractmethod
    def run(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a statement, in a transaction."""

    @abstractmethod
    def make_state(self, target: Target) -> None:
        """Makes the table of epochs, where it is missing."""

    def claim(self, target: Target, source: str, consumer: str) -> int:
        """Raises the epoch of a consumer; the new one."""
        self.make_state(target)
        ((epoch,),) = self.run(
            f"INSERT INTO {quote_target(target)} AS t (source, consumer, epoch)"  # noqa: S608 (quoted)
            f" VALUES ({self.mark}, {self.mark}, 1)"
            " ON CONFLICT (source, consumer) DO UPDATE SET epoch = t.epoch + 1 RETURNING epoch",
            source,
            consumer,
        )
        return int(epoch)

    def advance(
        self, target: Target, source: str, consumer: str, epoch: int, micros: int | None
    ) -> bool:
        """Moves the position of a consumer, and keeps others from its row until the transaction
        ends; False where it has another epoch."""
        moved = self.run(
            f"UPDATE {quote_target(target)} SET position = coalesce({self.from_micros}, position)"  # noqa: S608 (quoted)
            f" WHERE source = {self.mark} AND consumer = {self.mark} AND epoch = {self.mark}"
            " RETURNING epoch",
            micros,
            source,
            consumer,
            epoch,
        )
        return bool(moved)

    @abstractmethod
    def read_columns(self, target: Target) -> Mapping[str, str] | None:
        """The types of a table's columns, by name; None where there is none."""

    @abstractmethod
    def create(self, columns: Columns) -> None:
        """Creates a table."""

    @abstractmethod
    def add_columns(self, target: Target, types: Mapping[str, str]) -> None:
        """Adds columns to a table."""

    @abstractmethod
    def merge(self, columns: Columns, rows: pa.Table) -> None:
        """Puts the rows into a table, and removes the deleted ones, but for those of which it has
        a newer version."""

    def name_type(self, type_: Type, arrow: pa.DataType) -> str:
        """The type of a column."""
        if type_.element is not None:
            return self.name_type(type_.element, arrow.value_type) + "[]"
        return self.names.get(type_.code) or self.arrow_names[arrow]

    @abstractmethod
    def close(self) -> None:
        """Ends the connection."""

    def fold(self, name: str) -> str:
        """A name in the form in which equal ones are the same text."""
        return name

    def refuse(self, change: Change) -> str | None:  # noqa: ARG002 (for those who refuse some)
        """Why the database cannot store a change, whatever its tables are like."""
        return None

    def takes(self, rows: TableRows) -> bool:  # noqa: ARG002 (for those who refuse some)
        """Whether ``refuse`` has nothing against the rows of a batch."""
        return True


def quote(name: str) -> str:
    """An identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_target(target: Target) -> str:
    """The name of a table with its schema."""
    return ".".join(map(quote, target))


def list_names(names: Sequence[str], of: str = "") -> str:
    """Columns of a statement."""
    return ", ".join(of + quote(name) for name in names)
