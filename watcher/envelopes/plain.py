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
from watcher.envelopes.plain_schema import describe_record
from watcher.envelopes.record_schemas import RecordSchema, RecordSchemas
from watcher.envelopes.templates import Described, JsonEnvelope, Tree
from watcher.envelopes.values import (
    PLAIN_CELLS,
    BytesAs,
    CellStyle,
    JsonColumns,
    Numbers,
    Timestamps,
    quote,
)
from watcher.model.change import Shape
from watcher.spanner.json_columns.objects import NULL


class PlainRecord(JsonEnvelope):
    """A change as one JSON object with its id, key, values and window. The options say how cells of
    some types are written, those of the key too."""

    int64: Numbers = "number"
    numeric: Numbers = "text"
    timestamps: Timestamps = "iso"
    json_columns: JsonColumns = "text"
    bytes_as: BytesAs = "base64"

    @property
    def style(self) -> CellStyle:
        """As ``DescribedEnvelope.style``."""
        return replace(
            PLAIN_CELLS,
            int64_as_text=self.int64 == "text",
            numeric_as_number=self.numeric == "number",
            timestamps=self.timestamps,
            json_nested=self.json_columns == "nested",
            bytes_as=self.bytes_as,
        )

    def check(self, known: Known) -> None:
        """Accepts every capture: what it does not know is left out."""

    def describe(self, kind: Kind, database: str, shape: Shape) -> Described:  # noqa: ARG002
        """As ``DescribedEnvelope.describe``: of every kind."""
        style = self.style
        key = describe_key(shape, style)
        value: dict[str, Tree] = {
            "id": ID,
            "table": quote(shape.table),
            "operation": quote(kind.operation),
            "commit_timestamp": COMMIT_TIME,
            "shard": SHARD,
            "key": key,
            "values": describe_values(shape, style),
        }
        if kind.streamed:
            value["old_values"] = describe_old_values(shape, style) if kind.has_old else NULL
            value["transaction"] = {
                "id": TRANSACTION_ID,
                "sequence": RECORD_SEQUENCE,
                "tag": TRANSACTION_TAG,
            }
        value["window"] = {"start": WINDOW_START_TIME, "end": WINDOW_END_TIME}
        return Described(replace(key, as_array=True), value)


class Plain(PlainRecord):
    """The record by itself."""

    layout: ClassVar[RecordLayout | None] = RecordLayout(
        ("table",),
        (
            (("commit_timestamp",), "string"),
            (("transaction", "id"), "string"),
            (("transaction", "sequence"), "string"),
        ),
        key=("key",),
    )

    def describe_schemas(self, database: str, shape: Shape) -> RecordSchemas:  # noqa: ARG002
        """As ``SchemaEnvelope.describe_schemas``: keys stay the arrays that they are."""
        schema = describe_record(shape, self.style)
        return RecordSchemas(None, RecordSchema("JSON", shape.table, schema))


def describe_values(shape: Shape, style: CellStyle = PLAIN_CELLS) -> Cells:
    """The row, or what is known of it."""
    return Cells(shape, (Layer.NEW, Layer.KEY), style)


def describe_old_values(shape: Shape, style: CellStyle = PLAIN_CELLS) -> Cells:
    """The values before, as they were captured."""
    return Cells(shape, (Layer.OLD,), style, own_order=True)
