"""What an envelope makes of a change, and what it needs from a capture."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from watcher.model.change import Change, ValueCapture

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
Headers: TypeAlias = tuple[tuple[str, bytes], ...]
"""Names and values beside a message."""
CaptureKind: TypeAlias = Literal["poll", "change-stream"]


@dataclass(frozen=True, slots=True)
class Message:
    """A record for a queue. A ``value`` of None is a tombstone: its key is gone."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Known:
    """What a capture knows of a change, which decides which envelopes it can fill.

    ``values`` says which values its changes have: NEW_ROW for polling. ``backfill`` says that there
    are also rows of a snapshot (READ).
    """

    capture: CaptureKind
    values: ValueCapture = ValueCapture.NEW_ROW
    backfill: bool = False

    @property
    def whole_rows(self) -> bool:
        """True if an update has every column as it is afterwards."""
        return self.values in (ValueCapture.NEW_ROW, ValueCapture.NEW_ROW_AND_OLD_VALUES)

    @property
    def old_values(self) -> bool:
        """True if updates and deletes have the values from before."""
        return self.capture == "change-stream" and self.values in (
            ValueCapture.OLD_AND_NEW_VALUES,
            ValueCapture.NEW_ROW_AND_OLD_VALUES,
        )

    def __str__(self) -> str:
        if self.capture == "poll":
            return "polling"
        return f"a change stream with value_capture_type {self.values}"


class Envelope(ABC):
    """Writes changes in one format. Pure: the same change gives the same messages."""

    @property
    def has_key(self) -> bool:
        """True if the key is part of the format, not only what a queue partitions by."""
        return False

    @property
    def binary(self) -> bool:
        """True if values are not text: they cannot be written as lines."""
        return False

    @property
    def names_table(self) -> bool:
        """True if a record names its table; if not, each table needs an output of its own."""
        return True

    @property
    def headers(self) -> Headers:
        """The headers of every message, besides the change's id."""
        return ()

    @property
    def needs_order(self) -> bool:
        """True if some records separate others (barriers): they need an output with one order."""
        return False

    @abstractmethod
    def check(self, known: Known) -> None:
        """Raises ConfigurationError if the capture does not know what the format needs."""

    @abstractmethod
    def encode(self, change: Change) -> tuple[Message, ...]:
        """The messages of a change. Raises EnvelopeError if the change lacks something."""

    def encode_resolved(self, micros: int) -> tuple[Message, ...]:  # noqa: ARG002
        """The record that says that every change up to and including this timestamp (microseconds
        since 1970) was written; nothing in formats without such a record."""
        return ()


Path: TypeAlias = tuple[str | int, ...]
"""Names of members and numbers of elements, from the outside in."""


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """Where a record has its table (None: it does not name it), and the fields that order it:
    changes of one row with the same order are one change, delivered twice.

    ``key`` is where a format without keys of its own has the values of the primary key, and
    ``key_columns`` where it names those among them that are; None: all are. ``roots`` are the
    places where a record may begin: with a schema, Debezium's record is in ``payload``. ``needs``
    says what to do if the fields are missing.
    """

    table: Path | None
    order: tuple[tuple[Path, Literal["long", "string"]], ...]
    key: Path | None = None
    key_columns: Path | None = None
    roots: tuple[Path, ...] = ((),)
    needs: str = "check that the records have this format"


class EnvelopeOptions(BaseModel, Envelope):
    """An envelope is the model of its options: frozen, without unknown ones."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    has_key: ClassVar[bool] = False
    binary: ClassVar[bool] = False
    names_table: ClassVar[bool] = True
    headers: ClassVar[Headers] = ()
    needs_registry: ClassVar[bool] = False
    """True if readers of a queue have no other way to the schema than a registry."""
    layout: ClassVar[RecordLayout | None]
    """By which readers find the newest record of a row; None for records that are not JSON."""


def json_text(value: Json) -> str:
    """Compact JSON. Raises ValueError for NaN and the infinities."""
    return ENCODER.encode(value)


def json_bytes(value: Json) -> bytes:
    """Compact JSON in UTF-8."""
    return json_text(value).encode()


def id_header(change_id: str, others: Headers = ()) -> Headers:
    """The header by which a reader drops duplicates, before the others of a format."""
    return (("id", change_id.encode()), *others)
