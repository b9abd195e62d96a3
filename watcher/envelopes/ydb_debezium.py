"""A change in YDB's own Debezium-compatible JSON, which is not that of Debezium's connector."""

from __future__ import annotations

from typing import ClassVar

from pydantic import field_validator

from watcher.envelopes.kinds import Kind
from watcher.envelopes.leaves import Cells, describe_key
from watcher.envelopes.message import Known, RecordLayout, json_text
from watcher.envelopes.templates import Described, JsonEnvelope, Tree
from watcher.envelopes.values import CellStyle, JsonColumns, quote
from watcher.envelopes.ydb import (
    Mode,
    check_mode,
    choose_images,
    choose_style,
    choose_time,
    describe_transaction,
)
from watcher.model.change import Operation, Shape

CONNECTOR_VERSION = "1.0.0"


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
            "version": quote(CONNECTOR_VERSION),
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
