"""One change of one row, from any capture: the input of callbacks and envelopes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import TypeAlias

from spanner_schema.model.column_types import Type
from watcher.model.window import Window

Value: TypeAlias = (
    "bool | int | float | str | bytes | Decimal | date | list[Value] | tuple[Value, ...] | None"
)
"""A cell: INT64 as int, FLOAT as float, NUMERIC as Decimal, BYTES as bytes, DATE as date; TIMESTAMP
as RFC 3339 text in UTC with the digits that Spanner gave (up to nanoseconds); STRING, UUID and JSON
as text; ARRAY as list or tuple."""


class Operation(StrEnum):
    """What happened to the row, as far as the capture knows."""

    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    UPSERT = "UPSERT"
    """Polling: inserted or updated; it does not know which."""
    READ = "READ"
    """Backfill: the row as it was at the window's end."""


class ValueCapture(StrEnum):
    """Which values a change carries. Spanner: ``value_capture_type`` of a change stream.

    Polling and backfill carry NEW_ROW: every column of the row as it is afterwards.
    """

    OLD_AND_NEW_VALUES = "OLD_AND_NEW_VALUES"
    NEW_VALUES = "NEW_VALUES"
    NEW_ROW = "NEW_ROW"
    NEW_ROW_AND_OLD_VALUES = "NEW_ROW_AND_OLD_VALUES"

    @property
    def keeps_old(self) -> bool:
        """True when an update or a delete has the values from before."""
        return self in (self.OLD_AND_NEW_VALUES, self.NEW_ROW_AND_OLD_VALUES)

    @property
    def whole_row(self) -> bool:
        """True when an insert or an update has every column."""
        return self in (self.NEW_ROW, self.NEW_ROW_AND_OLD_VALUES)

    @property
    def whole_row_form(self) -> ValueCapture:
        """The same, once the whole row has been read."""
        return self.NEW_ROW_AND_OLD_VALUES if self.keeps_old else self.NEW_ROW

    @property
    def part_form(self) -> ValueCapture:
        """The same, where columns of the row are missing that should have been read."""
        return self.OLD_AND_NEW_VALUES if self.keeps_old else self.NEW_VALUES


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of a table, and which of them are its primary key, in the order of the key.

    ``positions`` are the columns' places in the table, from 1 (Spanner: ``ordinal_position``), for
    captures that have only some of the columns; empty means all columns, in order.
    """

    table: str
    columns: tuple[tuple[str, Type], ...]
    primary_key: tuple[str, ...]
    positions: tuple[int, ...] = ()

    def __hash__(self) -> int:
        """Of the name alone, because shapes are looked up for each change: few tables have two."""
        return hash(self.table)


@dataclass(frozen=True, slots=True)
class Origin:
    """The place of a change of a change stream in its transaction; polling does not know it."""

    transaction_id: str
    record_sequence: str
    mod_number: int
    last_in_transaction_in_partition: bool
    records_in_transaction: int
    partitions_in_transaction: int
    transaction_tag: str = ""
    system_transaction: bool = False
    partition_token: str = ""


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
VALUE_CHARACTERS_MAX = 40
VALUES_SHOWN_MAX = 4


def describe_values(values: Mapping[str, Value]) -> str:
    """The first values by name, the long ones without their end."""
    shown = [f"{name}={shorten(repr(values[name]))}" for name in list(values)[:VALUES_SHOWN_MAX]]
    more = len(values) - len(shown)
    return ", ".join([*shown, f"... {more} more"] if more else shown)


def shorten(text: str) -> str:
    """A text without what is too much of it."""
    kept = VALUE_CHARACTERS_MAX
    return text if len(text) <= kept else f"{text[: kept - 3]}..."


@dataclass(frozen=True, slots=True, repr=False)
class Change:
    """A row that changed. ``commit_timestamp`` is in microseconds since 1970.

    ``id`` is the same on every delivery of the same change. ``new_values`` is None for a delete;
    ``old_values`` is None where the capture cannot know them, and empty where there were none.
    Both leave the key out. ``shard_id`` is set by polling, ``origin`` by change streams.
    """

    id: str
    database: str
    shape: Shape
    operation: Operation
    commit_timestamp: int
    key: Mapping[str, Value]
    new_values: Mapping[str, Value] | None
    old_values: Mapping[str, Value] | None
    captured: ValueCapture
    window: Window
    shard_id: int | None = None
    origin: Origin | None = None

    def __repr__(self) -> str:
        """Which row changed, how and when, and how its values begin: one line."""
        at = EPOCH + timedelta(microseconds=self.commit_timestamp)
        shown = f"{self.operation} {self.table} {describe_values(self.key)} at {at:%FT%T.%fZ}"
        values = describe_values(self.new_values or {})
        return f"<Change {shown}: {values}>" if self.new_values else f"<Change {shown}>"

    @property
    def table(self) -> str:
        """The name of the row's table."""
        return self.shape.table
