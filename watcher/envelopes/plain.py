"""The project's own JSON: what ``spanner-watcher watch`` prints by default."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from watcher.envelopes.kinds import Kind, Layer
from watcher.envelopes.leaves import (
    COMMIT_TIME,
    ID,
    RECORD_SEQUENCE,
    SHARD,
    TRANSACTION_ID,
    TRANSACTION_TAG,
    WINDOW_END_TIME,
    WINDOW_START_TIME,
    Cells,
    describe_key,
)
from watcher.envelopes.message import Known, RecordLayout
from watcher.envelopes.templates import Described, JsonEnvelope, Tree
from watcher.envelopes.values import PLAIN_CELLS, CellStyle, quote
from watcher.json_columns.objects import NULL
from watcher.model.change import Shape


class Plain(JsonEnvelope):
    """A change as one JSON object with its id, key, values and window."""

    layout: ClassVar[RecordLayout | None] = RecordLayout(
        ("table",),
        (
            (("commit_timestamp",), "string"),
            (("transaction", "id"), "string"),
            (("transaction", "sequence"), "string"),
        ),
        key=("key",),
    )

    @property
    def style(self) -> CellStyle:
        """As ``DescribedEnvelope.style``."""
        return PLAIN_CELLS

    def check(self, known: Known) -> None:
        """Accepts every capture: what it does not know is left out."""

    def describe(self, kind: Kind, database: str, shape: Shape) -> Described:  # noqa: ARG002
        """As ``DescribedEnvelope.describe``: of every kind."""
        key = describe_key(shape, PLAIN_CELLS)
        value: dict[str, Tree] = {
            "id": ID,
            "table": quote(shape.table),
            "operation": quote(kind.operation),
            "commit_timestamp": COMMIT_TIME,
            "shard": SHARD,
            "key": key,
            "values": describe_values(shape),
        }
        if kind.streamed:
            value["old_values"] = describe_old_values(shape) if kind.has_old else NULL
            value["transaction"] = {
                "id": TRANSACTION_ID,
                "sequence": RECORD_SEQUENCE,
                "tag": TRANSACTION_TAG,
            }
        value["window"] = {"start": WINDOW_START_TIME, "end": WINDOW_END_TIME}
        return Described(replace(key, as_array=True), value)


def describe_values(shape: Shape) -> Cells:
    """The row, or what is known of it."""
    return Cells(shape, (Layer.NEW, Layer.KEY), PLAIN_CELLS)


def describe_old_values(shape: Shape) -> Cells:
    """The values before, as they were captured."""
    return Cells(shape, (Layer.OLD,), PLAIN_CELLS, own_order=True)
