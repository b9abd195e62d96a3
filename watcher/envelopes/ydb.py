"""A change as a record of YDB's changefeeds (CDC), with virtual timestamps and barriers."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import ClassVar

from watcher.envelopes.images import (
    Row,
    describe_change,
    has_whole_new_row,
    new_row,
    old_row,
    refuse_part,
)
from watcher.envelopes.message import EnvelopeOptions, Json, Known, Message, id_header, json_bytes
from watcher.envelopes.values import JsonColumns, JsonFormat
from watcher.model.change import Change, Operation, Value, ValueCapture
from watcher.model.errors import ConfigurationError, EnvelopeError

FORMAT = JsonFormat(json_nested=True)
DIGEST_BITS = 43
"""Below the microseconds in a ``txId``: the whole stays under 2^53, exact in every JSON reader."""


class Mode(StrEnum):
    """What a changefeed writes of a row."""

    KEYS_ONLY = "KEYS_ONLY"
    UPDATES = "UPDATES"
    NEW_IMAGE = "NEW_IMAGE"
    OLD_IMAGE = "OLD_IMAGE"
    NEW_AND_OLD_IMAGES = "NEW_AND_OLD_IMAGES"

    @property
    def new_image(self) -> bool:
        """True if the row afterwards is written."""
        return self in (Mode.NEW_IMAGE, Mode.NEW_AND_OLD_IMAGES)

    @property
    def old_image(self) -> bool:
        """True if the row before is written."""
        return self in (Mode.OLD_IMAGE, Mode.NEW_AND_OLD_IMAGES)


class Ydb(EnvelopeOptions):
    """``virtual_timestamps`` writes ``ts``; ``barriers`` writes ``resolved`` records;
    ``json_columns``: JSON columns are JSON, or text."""

    names_table: ClassVar[bool] = False

    mode: Mode = Mode.NEW_IMAGE
    virtual_timestamps: bool = False
    barriers: bool = False
    json_columns: JsonColumns = "nested"

    @property
    def format(self) -> JsonFormat:
        """How cells are written."""
        return FORMAT.choose_json(self.json_columns)

    @property
    def needs_order(self) -> bool:
        """As ``Envelope.needs_order``."""
        return self.barriers

    def check(self, known: Known) -> None:
        """As ``Envelope.check``."""
        check_mode(self.mode, known)

    def encode(self, change: Change) -> tuple[Message, ...]:
        """As ``Envelope.encode``."""
        key: Json = list(FORMAT.format_row(change.shape, order_key(change)).values())
        if change.operation is Operation.DELETE:
            record: dict[str, Json] = {"key": key, "erase": {}}
        else:
            record = {"key": key, "update": self._update(change)}
        new, old = choose_images(self.mode, change)
        if new is not None:
            record["newImage"] = format_image(change, new, self.format)
        if old is not None:
            record["oldImage"] = format_image(change, old, self.format)
        if self.virtual_timestamps:
            record["ts"] = list(virtual_timestamp(change))
        return (Message(json_bytes(key), json_bytes(record), id_header(change)),)

    def encode_resolved(self, micros: int) -> tuple[Message, ...]:
        """A barrier: every change with an earlier virtual timestamp was written."""
        if not self.barriers:
            return ()
        barrier: Json = {"resolved": list(virtual_time(micros + 1))}
        return (Message(None, json_bytes(barrier)),)

    def _update(self, change: Change) -> dict[str, Json]:
        if self.mode is not Mode.UPDATES:
            return {}
        return self.format.format_row(change.shape, select_updated(change))


def check_mode(mode: Mode, known: Known) -> None:
    """Raises ConfigurationError if a capture cannot fill a mode."""
    if mode is Mode.UPDATES and known.values is ValueCapture.NEW_ROW:
        raise ConfigurationError(
            f"YDB's mode UPDATES needs the columns that changed, and {known} does not know which"
            " did: use NEW_IMAGE, or another value_capture_type"
        )
    if mode.old_image and known.values is not ValueCapture.NEW_ROW_AND_OLD_VALUES:
        raise ConfigurationError(
            f"YDB's mode {mode} needs the whole row before a change, and {known} does not know it:"
            " use a change stream with value_capture_type NEW_ROW_AND_OLD_VALUES"
        )
    if mode.new_image and not known.whole_rows:
        raise ConfigurationError(
            f"YDB's mode {mode} needs the whole row after a change, and {known} has only the"
            " columns that changed: use value_capture_type NEW_ROW or NEW_ROW_AND_OLD_VALUES"
        )


def choose_images(mode: Mode, change: Change) -> tuple[Row | None, Row | None]:
    """The rows after and before, if the mode writes them and they existed."""
    new = new_row(change) if mode.new_image else None
    if new is not None:
        refuse_part(change, has_whole_new_row(change), f"YDB's mode {mode} needs the whole row")
    if not mode.old_image or change.operation in (Operation.INSERT, Operation.READ):
        return new, None
    if change.captured is not ValueCapture.NEW_ROW_AND_OLD_VALUES:
        raise EnvelopeError(
            f"{describe_change(change)} does not have the row before"
            f" (captured as {change.captured}), and YDB's mode {mode} needs it"
        )
    return new, old_row(change)


def select_updated(change: Change) -> dict[str, Value]:
    """The columns that a write changed; all of them for a new row or one of a backfill."""
    values = dict(change.new_values or {})
    if change.operation in (Operation.INSERT, Operation.READ):
        return values
    if change.captured is ValueCapture.NEW_ROW:
        raise EnvelopeError(
            f"{describe_change(change)} does not say which columns changed,"
            " and YDB's mode UPDATES needs it"
        )
    if change.captured is ValueCapture.NEW_ROW_AND_OLD_VALUES:
        return {name: values[name] for name in change.old_values or {} if name in values}
    return values


def order_key(change: Change) -> dict[str, Value]:
    """The key in the order of the primary key."""
    return {name: change.key[name] for name in change.shape.primary_key}


def format_image(change: Change, row: Row, format_: JsonFormat) -> dict[str, Json]:
    """A row as YDB's images have it: without the key."""
    return format_.format_row(change.shape, {n: v for n, v in row.items() if n not in change.key})


def virtual_timestamp(change: Change) -> tuple[int, int]:
    """``[step, txId]`` of a change: ordered as commit timestamps are, one for each transaction.

    Spanner's transactions of one microsecond touch different rows; their order is that of a digest
    of their ids. Polling does not know transactions: those of one microsecond look like one.
    """
    step, first = virtual_time(event_time(change))
    return step, first + (digest(change.origin.transaction_id) if change.origin else 0)


def event_time(change: Change) -> int:
    """The time of a change for YDB, in microseconds since 1970: for a row of a snapshot, that of
    the snapshot."""
    return change.window.end if change.operation is Operation.READ else change.commit_timestamp


def virtual_time(micros: int) -> tuple[int, int]:
    """The first virtual timestamp of a microsecond: the step is in milliseconds, as YDB's is."""
    return micros // 1000, micros % 1000 << DIGEST_BITS


def digest(transaction_id: str) -> int:
    """A number below 2^43 that differs for nearly every transaction."""
    octets = hashlib.blake2b(transaction_id.encode(), digest_size=8).digest()
    return int.from_bytes(octets) >> (64 - DIGEST_BITS)
