"""A change as Debezium's connector for Spanner writes it to Kafka, with or without schemas."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import model_validator

from watcher.envelopes.connect_schema import event_schema, key_schema
from watcher.envelopes.debezium_source import SOURCE, SharedSource
from watcher.envelopes.images import (
    Row,
    describe_change,
    has_whole_new_row,
    new_row,
    old_row,
    refuse_part,
)
from watcher.envelopes.message import EnvelopeOptions, Json, Known, Message, id_header, json_bytes
from watcher.envelopes.values import JsonFormat
from watcher.model.change import Change, Operation
from watcher.model.errors import ConfigurationError, EnvelopeError
from watcher.model.window import Window

FORMAT = JsonFormat()
OPS = {
    Operation.INSERT: "c",
    Operation.UPDATE: "u",
    Operation.UPSERT: "u",
    Operation.DELETE: "d",
    Operation.READ: "r",
}


def read_times(window: Window) -> dict[str, Json]:
    """The fields behind ``op``: when the changes were read."""
    read = window.end
    return {"ts_ms": read // 1000, "ts_us": read, "ts_ns": read * 1000, "transaction": None}


class Debezium(EnvelopeOptions):
    """``name`` is that of the connector, from which topic names derive; ``stream`` is that of the
    change stream.

    ``with_schema`` adds Kafka Connect's schema to every key and value. ``before``: if the capture
    knows it, always (or the capture is refused), or never. ``partial``: updates with only some
    columns are refused, or their other columns are left out. ``low_watermark`` writes the start of
    the window, up to which everything was delivered. Polling cannot tell inserts from updates: both
    are ``u``.
    """

    has_key: ClassVar[bool] = True

    name: str = "spanner-watcher"
    stream: str = ""
    with_schema: bool = False
    tombstones: bool = True
    before: Literal["known", "required", "never"] = "known"
    partial: Literal["refuse", "omit"] = "refuse"
    low_watermark: bool = False

    @model_validator(mode="after")
    def _check_schema(self) -> Debezium:
        if self.with_schema and self.partial == "omit":
            raise ValueError(
                "with a schema, readers take a missing column for NULL: use partial = 'refuse', or"
                " with_schema = false"
            )
        return self

    def check(self, known: Known) -> None:
        """As ``Envelope.check``."""
        if self.before == "required" and not known.old_values:
            raise ConfigurationError(
                f"debezium's before is required, and {known} does not know the row before a change:"
                " use a change stream with value_capture_type NEW_ROW_AND_OLD_VALUES"
            )
        if self.partial == "refuse" and not known.whole_rows:
            raise ConfigurationError(
                f"debezium's after needs the whole row, and {known} has only the columns that"
                " changed: use value_capture_type NEW_ROW or NEW_ROW_AND_OLD_VALUES, or"
                " partial = 'omit'"
            )

    def encode(self, change: Change) -> tuple[Message, ...]:
        """The event, and after a delete also the tombstone of its key."""
        key: Json = dict(FORMAT.format_row(change.shape, change.key))
        value: Json = self._make_payload(change)
        if self.with_schema:
            nulls = frozenset(name for name, cell in change.key.items() if cell is None)
            key = {"schema": key_schema(change.shape, nulls), "payload": key}
            schema = event_schema(self.name, change.shape, nulls)
            value = {"schema": schema, "payload": value}
        event = Message(json_bytes(key), json_bytes(value), id_header(change))
        if self.tombstones and change.operation is Operation.DELETE:
            return event, Message(event.key, None, event.headers)
        return (event,)

    def _make_payload(self, change: Change) -> dict[str, Json]:
        after, before = new_row(change), self._choose_before(change)
        if self.partial == "refuse":
            refuse_part(change, has_whole_new_row(change), "debezium's after needs the whole row")
        return {
            "before": None if before is None else dict(FORMAT.format_row(change.shape, before)),
            "after": None if after is None else dict(FORMAT.format_row(change.shape, after)),
            "source": SOURCE.make(change, self.share(change.database, change.table, change.window)),
            "op": OPS[change.operation],
            **read_times(change.window),
        }

    def share(self, database: str, table: str, window: Window) -> SharedSource:
        """What ``source`` has alike in changes of a table in a window."""
        low = window.start if self.low_watermark else None
        return SharedSource(database, table, window.end, self.name, self.stream, low)

    def _choose_before(self, change: Change) -> Row | None:
        if self.before == "never":
            return None
        before = old_row(change)
        existed = change.operation in (Operation.UPDATE, Operation.DELETE, Operation.UPSERT)
        if self.before == "required" and before is None and existed:
            raise EnvelopeError(
                f"{describe_change(change)} does not have the row before, and debezium's before is"
                " required"
            )
        return before
