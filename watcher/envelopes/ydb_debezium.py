"""A change in YDB's own Debezium-compatible JSON, which is not that of Debezium's connector."""

from __future__ import annotations

from typing import ClassVar

from pydantic import field_validator

from watcher.envelopes.message import EnvelopeOptions, Json, Known, Message, id_header, json_bytes
from watcher.envelopes.values import JsonColumns
from watcher.envelopes.ydb import (
    FORMAT,
    Mode,
    check_mode,
    choose_images,
    event_time,
    virtual_timestamp,
)
from watcher.model.change import Change, Operation

CONNECTOR_VERSION = "1.0.0"


class YdbDebezium(EnvelopeOptions):
    """The modes are YDB's, without UPDATES: this form cannot show which columns changed.
    ``json_columns``: JSON columns are JSON, or text."""

    has_key: ClassVar[bool] = True
    names_table: ClassVar[bool] = False

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

    def encode(self, change: Change) -> tuple[Message, ...]:
        """As ``Envelope.encode``."""
        key: Json = {"payload": dict(FORMAT.format_row(change.shape, change.key))}
        new, old = choose_images(self.mode, change)
        step, transaction = virtual_timestamp(change)
        payload: dict[str, Json] = {"op": self._choose_op(change)}
        payload |= {
            name: FORMAT.choose_json(self.json_columns).format_row(change.shape, row)
            for name, row in (("before", old), ("after", new))
            if row is not None
        }
        payload["source"] = {
            "connector": "ydb",
            "version": CONNECTOR_VERSION,
            "ts_ms": event_time(change) // 1000,
            "step": step,
            "txId": transaction,
            "snapshot": change.operation is Operation.READ,
        }
        return (Message(json_bytes(key), json_bytes({"payload": payload}), id_header(change)),)

    def _choose_op(self, change: Change) -> str:
        """The operation; ``c`` only where YDB can tell, with both images."""
        if change.operation is Operation.READ:
            return "r"
        if change.operation is Operation.DELETE:
            return "d"
        created = change.operation is Operation.INSERT and self.mode is Mode.NEW_AND_OLD_IMAGES
        return "c" if created else "u"
