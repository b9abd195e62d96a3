"""What an envelope makes of a change, and what it may ask of a capture."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeAlias

from pydantic import BaseModel, ConfigDict

from watcher.change import Change, ValueCapture

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
CaptureKind: TypeAlias = Literal["poll", "change-stream"]


@dataclass(frozen=True, slots=True)
class Message:
    """A record as a queue takes it. A ``value`` of None is a tombstone: forget this key."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Known:
    """What a capture can know of a change: it decides which envelopes it can fill.

    ``values`` is what its changes are ``captured`` as: NEW_ROW for polling. ``backfill`` says that
    rows of a snapshot (READ) come, too.
    """

    capture: CaptureKind
    values: ValueCapture = ValueCapture.NEW_ROW
    backfill: bool = False

    @property
    def whole_rows(self) -> bool:
        """True when an update carries every column as it is afterwards."""
        return self.values in (ValueCapture.NEW_ROW, ValueCapture.NEW_ROW_AND_OLD_VALUES)

    @property
    def old_values(self) -> bool:
        """True when an update and a delete carry what was there before."""
        return self.capture == "change-stream" and self.values in (
            ValueCapture.OLD_AND_NEW_VALUES,
            ValueCapture.NEW_ROW_AND_OLD_VALUES,
        )

    def __str__(self) -> str:
        if self.capture == "poll":
            return "polling"
        return f"a change stream with value_capture_type {self.values}"


class Envelope(Protocol):
    """Writes changes in one format. Pure: the same change gives the same messages."""

    @property
    def keyed(self) -> bool:
        """True when the key is a part of the format, not only what a queue partitions by."""
        ...

    @property
    def binary(self) -> bool:
        """True when values are no text: they cannot be written as lines."""
        ...

    @property
    def names_table(self) -> bool:
        """True when a record says of which table it is; else a table needs a place of its own."""
        ...

    @property
    def in_order(self) -> bool:
        """True when records stand between those of changes and divide them (barriers): only an
        output with one order can take them."""
        ...

    def check(self, known: Known) -> None:
        """Raises ConfigurationError when the capture cannot know what the format needs."""
        ...

    def encode(self, change: Change) -> tuple[Message, ...]:
        """The messages of a change. Raises EnvelopeError when the change lacks something."""
        ...

    def resolved(self, micros: int) -> tuple[Message, ...]:
        """What tells readers that every change up to and including this timestamp (microseconds
        since 1970) was written; nothing in formats without such a record."""
        ...


class Options(BaseModel):
    """The options of an envelope, which is the envelope itself: frozen, nothing unknown."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    keyed: ClassVar[bool] = False
    binary: ClassVar[bool] = False
    names_table: ClassVar[bool] = True

    @property
    def in_order(self) -> bool:
        """As ``Envelope.in_order``."""
        return False

    def resolved(self, micros: int) -> tuple[Message, ...]:  # noqa: ARG002
        """As ``Envelope.resolved``: nothing in formats that have no such record."""
        return ()


def json_text(value: Json) -> str:
    """Compact JSON. NaN and the infinities must have been made strings before."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def json_bytes(value: Json) -> bytes:
    """Compact JSON in UTF-8."""
    return json_text(value).encode()


def id_header(change: Change) -> tuple[tuple[str, bytes], ...]:
    """The header by which a reader drops what was delivered twice."""
    return (("id", change.id.encode()),)
