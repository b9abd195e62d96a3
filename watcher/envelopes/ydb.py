"""A change as a record of YDB's changefeeds (CDC), with virtual timestamps and barriers; and in
YDB's own Debezium-compatible JSON, which is not that of Debezium's connector."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import ClassVar

import numpy as np
import pyarrow as pa
from pydantic import field_validator

from watcher.envelopes.by_column.changes import ChangeColumns
from watcher.envelopes.kinds import (
    Kind,
    LackingError,
    Layer,
    Layers,
    new_row,
    old_row,
    refuse_part,
)
from watcher.envelopes.leaves import (
    COMMIT_MS,
    WINDOW_END_MS,
    Cells,
    Field,
    Leaf,
    describe_key,
    render_scalar,
)
from watcher.envelopes.message import (
    Json,
    Known,
    Message,
    RecordLayout,
    json_bytes,
    json_text,
)
from watcher.envelopes.templates import Described, JsonEnvelope, Tree
from watcher.envelopes.values import CellStyle, JsonColumns, quote
from watcher.model.change import Change, Operation, Shape, ValueCapture
from watcher.model.errors import ConfigurationError

DEBEZIUM_VERSION = "1.0.0"
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


class Ydb(JsonEnvelope):
    """``virtual_timestamps`` writes ``ts``; ``barriers`` writes ``resolved`` records;
    ``json_columns``: JSON columns are JSON, or text."""

    names_table: ClassVar[bool] = False
    layout: ClassVar[RecordLayout | None] = RecordLayout(
        None,
        ((("ts", 0), "long"), (("ts", 1), "long")),
        key=("key",),
        needs="set virtual_timestamps = true",
    )
    """Changes of one transaction cannot be told apart: the one that was delivered last is the
    newest."""

    mode: Mode = Mode.NEW_IMAGE
    virtual_timestamps: bool = False
    barriers: bool = False
    json_columns: JsonColumns = "nested"

    @property
    def style(self) -> CellStyle:
        """As ``DescribedEnvelope.style``."""
        return choose_style(self.json_columns)

    @property
    def needs_order(self) -> bool:
        """As ``Envelope.needs_order``."""
        return self.barriers

    def check(self, known: Known) -> None:
        """As ``Envelope.check``."""
        check_mode(self.mode, known)

    def describe(self, kind: Kind, database: str, shape: Shape) -> Described:  # noqa: ARG002
        """As ``DescribedEnvelope.describe``."""
        key = describe_key(shape, self.style, as_array=True)
        value: dict[str, Tree] = {"key": key}
        if kind.deleted:
            value["erase"] = {}
        else:
            updated = select_updated(kind) if self.mode is Mode.UPDATES else None
            value["update"] = {} if updated is None else Cells(shape, (updated,), self.style)
        for name, row in zip(("newImage", "oldImage"), choose_images(self.mode, kind), strict=True):
            if row is not None:
                image = tuple(layer for layer in row if layer is not Layer.KEY)
                value[name] = Cells(shape, image, self.style)
        if self.virtual_timestamps:
            value["ts"] = (choose_time(kind), describe_transaction(kind))
        return Described(key, value)

    def encode_resolved(self, micros: int) -> tuple[Message, ...]:
        """A barrier: every change with an earlier virtual timestamp was written."""
        if not self.barriers:
            return ()
        barrier: Json = {"resolved": list(virtual_time(micros + 1))}
        return (Message(None, json_bytes(barrier)),)


class YdbDebezium(JsonEnvelope):
    """The modes are YDB's, without UPDATES: this form cannot show which columns changed.
    ``json_columns``: JSON columns are JSON, or text."""

    has_key: ClassVar[bool] = True
    names_table: ClassVar[bool] = False
    layout: ClassVar[RecordLayout | None] = RecordLayout(
        None,
        ((("payload", "source", "step"), "long"), (("payload", "source", "txId"), "long")),
    )
    """As that of ``Ydb``."""

    mode: Mode = Mode.NEW_IMAGE
    json_columns: JsonColumns = "nested"

    @field_validator("mode")
    @classmethod
    def _check_mode(cls, mode: Mode) -> Mode:
        if mode is Mode.UPDATES:
            raise ValueError("YDB's Debezium-compatible form has no mode UPDATES: use NEW_IMAGE")
        return mode

    def check(self, known: Known) -> None:
        """As ``Envelope.check``."""
        check_mode(self.mode, known)

    @property
    def style(self) -> CellStyle:
        """As ``DescribedEnvelope.style``."""
        return choose_style(self.json_columns)

    def describe(self, kind: Kind, database: str, shape: Shape) -> Described:  # noqa: ARG002
        """As ``DescribedEnvelope.describe``."""
        new, old = choose_images(self.mode, kind)
        payload: dict[str, Tree] = {"op": quote(self._choose_op(kind))}
        payload |= {
            name: Cells(shape, row, self.style)
            for name, row in (("before", old), ("after", new))
            if row is not None
        }
        payload["source"] = {
            "connector": quote("ydb"),
            "version": quote(DEBEZIUM_VERSION),
            "ts_ms": choose_time(kind),
            "step": choose_time(kind),
            "txId": describe_transaction(kind),
            "snapshot": json_text(kind.backfilled),
        }
        return Described({"payload": describe_key(shape, self.style)}, {"payload": payload})

    def _choose_op(self, kind: Kind) -> str:
        """The operation; ``c`` only where YDB can tell, with both images."""
        if kind.backfilled:
            return "r"
        if kind.deleted:
            return "d"
        created = kind.operation is Operation.INSERT and self.mode is Mode.NEW_AND_OLD_IMAGES
        return "c" if created else "u"


def choose_style(columns: JsonColumns) -> CellStyle:
    """How cells are written, with JSON columns as an option says."""
    return CellStyle(json_nested=columns == "nested")


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


def choose_images(mode: Mode, kind: Kind) -> tuple[Layers | None, Layers | None]:
    """The rows after and before, if the mode writes them and they existed. Raises LackingError."""
    new = new_row(kind) if mode.new_image else None
    if new is not None:
        refuse_part(kind, kind.has_whole_new_row, f"YDB's mode {mode} needs the whole row")
    if not mode.old_image or kind.operation in (Operation.INSERT, Operation.READ):
        return new, None
    if kind.captured is not ValueCapture.NEW_ROW_AND_OLD_VALUES:
        raise LackingError(
            f"does not have the row before (captured as {kind.captured}), and YDB's mode {mode}"
            " needs it"
        )
    return new, old_row(kind)


def select_updated(kind: Kind) -> Layer:
    """The columns that a write changed; all of them for a new row or one of a backfill. Raises
    LackingError."""
    if kind.operation in (Operation.INSERT, Operation.READ):
        return Layer.NEW
    if kind.captured is ValueCapture.NEW_ROW:
        raise LackingError("does not say which columns changed, and YDB's mode UPDATES needs it")
    whole = kind.captured is ValueCapture.NEW_ROW_AND_OLD_VALUES
    return Layer.CHANGED if whole else Layer.NEW


def choose_time(kind: Kind) -> Leaf:
    """The time of a change for YDB, in milliseconds: for a row of a snapshot, that of the
    snapshot."""
    return WINDOW_END_MS if kind.backfilled else COMMIT_MS


def describe_transaction(kind: Kind) -> Field:
    """``txId``: with the time before it, ordered as commit timestamps are, one for each
    transaction.

    Spanner's transactions of one microsecond touch different rows; their order is that of a digest
    of their ids. Polling does not know transactions: those of one microsecond look like one.
    """

    def write(change: Change) -> str:
        at = change.window.end if kind.backfilled else change.commit_timestamp
        return str(
            virtual_time(at)[1] + (digest(change.origin.transaction_id) if change.origin else 0)
        )

    def render(changes: ChangeColumns) -> pa.Array:
        ends = pa.repeat(changes.window.end, changes.rows)
        numbers = (ends if kind.backfilled else changes.commits).to_numpy() % 1000 << DIGEST_BITS
        if kind.streamed:
            ids = changes.batch.column("transaction_id").dictionary_encode()
            digests = np.array([digest(each) for each in ids.dictionary.to_pylist()])
            numbers = numbers + digests[ids.indices.to_numpy()]
        return render_scalar(pa.array(numbers))

    return Field(write, render)


def virtual_time(micros: int) -> tuple[int, int]:
    """The first virtual timestamp of a microsecond: the step is in milliseconds, as YDB's is."""
    return micros // 1000, micros % 1000 << DIGEST_BITS


def digest(transaction_id: str) -> int:
    """A number below 2^43 that differs for nearly every transaction."""
    octets = hashlib.blake2b(transaction_id.encode(), digest_size=8).digest()
    return int.from_bytes(octets) >> (64 - DIGEST_BITS)
