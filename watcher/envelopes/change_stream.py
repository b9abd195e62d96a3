"""A change as the JSON record of a Spanner change stream, one mod a record."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import ClassVar, Literal

import pyarrow as pa

from spanner_schema.model.column_types import Type, TypeCode
from watcher.envelopes.by_column.changes import ChangeColumns, merge_cells
from watcher.envelopes.kinds import Kind, LackingError, Layer
from watcher.envelopes.leaves import (
    COMMIT_TIME,
    LAST,
    PARTITIONS,
    RECORD_SEQUENCE,
    RECORDS,
    SYSTEM,
    TRANSACTION_ID,
    TRANSACTION_TAG,
    ByNames,
    Cells,
    describe_key,
)
from watcher.envelopes.message import Json, Known, Message, RecordLayout, json_bytes, json_text
from watcher.envelopes.templates import Described, JsonEnvelope, Tree
from watcher.envelopes.values import CellStyle, quote
from watcher.model.change import Change, Operation, Shape
from watcher.model.errors import ConfigurationError
from watcher.model.value_types import ANNOTATIONS
from watcher.spanner.timestamps import format_timestamp

MOD_TYPES = (Operation.INSERT, Operation.UPDATE, Operation.DELETE)


class ChangeStreamEnvelope(JsonEnvelope):
    """What ``READ_<stream>`` gives in the PostgreSQL dialect: ``data_change_record``, and
    ``heartbeat_record`` for a timestamp up to which everything was written.

    ``int64``: numbers, as the documentation shows them, or text, as the API sends them.
    """

    layout: ClassVar[RecordLayout | None] = RecordLayout(
        ("data_change_record", "table_name"),
        (
            (("data_change_record", "commit_timestamp"), "string"),
            (("data_change_record", "server_transaction_id"), "string"),
            (("data_change_record", "record_sequence"), "string"),
        ),
        key=("data_change_record", "mods", 0, "keys"),
    )

    int64: Literal["number", "text"] = "number"

    def check(self, known: Known) -> None:
        """As ``Envelope.check``."""
        if known.capture != "change-stream":
            raise ConfigurationError(
                f"the change-stream envelope needs transactions, and {known} does not know them:"
                " capture with a change stream, or choose another envelope"
            )
        if known.backfill:
            raise ConfigurationError(
                "the change-stream envelope has no record for the rows of a backfill:"
                " remove the backfill, or choose another envelope"
            )

    @property
    def style(self) -> CellStyle:
        """As ``DescribedEnvelope.style``."""
        return CellStyle(int64_as_text=self.int64 == "text")

    def describe(self, kind: Kind, database: str, shape: Shape) -> Described:  # noqa: ARG002
        """As ``DescribedEnvelope.describe``: a record with one mod."""
        if not kind.streamed or kind.operation not in MOD_TYPES:
            raise LackingError(
                "does not come from a change stream, and the change-stream envelope has no record"
                " for it"
            )
        keys = describe_key(shape, self.style)
        new, old = (Cells(shape, (each,), self.style) for each in (Layer.NEW, Layer.OLD))
        record: dict[str, Tree] = {
            "commit_timestamp": COMMIT_TIME,
            "record_sequence": RECORD_SEQUENCE,
            "server_transaction_id": TRANSACTION_ID,
            "is_last_record_in_transaction_in_partition": LAST,
            "table_name": quote(shape.table),
            "column_types": describe_columns(shape),
            "mods": ({"keys": keys, "new_values": new, "old_values": old},),
            "mod_type": quote(kind.operation),
            "value_capture_type": quote(kind.captured),
            "number_of_records_in_transaction": RECORDS,
            "number_of_partitions_in_transaction": PARTITIONS,
            "transaction_tag": TRANSACTION_TAG,
            "is_system_transaction": SYSTEM,
        }
        return Described(replace(keys, as_array=True), {"data_change_record": record})

    def encode_resolved(self, micros: int) -> tuple[Message, ...]:
        """As ``Envelope.encode_resolved``."""
        record: Json = {"heartbeat_record": {"timestamp": format_timestamp(micros)}}
        return (Message(None, json_bytes(record)),)


def describe_columns(shape: Shape) -> ByNames:
    """The columns that the record has, with their positions in the table, from 1."""
    positions = shape.positions or range(1, len(shape.columns) + 1)
    described: dict[str, Json] = {
        name: {
            "name": name,
            "type": type_json(type_),
            "is_primary_key": name in shape.primary_key,
            "ordinal_position": position,
        }
        for position, (name, type_) in zip(positions, shape.columns, strict=True)
    }

    @lru_cache(maxsize=64)
    def write(names: frozenset[str]) -> str:
        return json_text([each for name, each in described.items() if name in names])

    return ByNames(write, list_names, find_present)


def list_names(change: Change) -> frozenset[str]:
    """The columns of which a change has a value."""
    return frozenset(chain(change.key, change.new_values or (), change.old_values or ()))


def find_present(changes: ChangeColumns) -> dict[str, pa.Array]:
    """As ``list_names``."""
    layers = map(changes.get_cells, (Layer.KEY, Layer.NEW, Layer.OLD))
    cells = merge_cells(changes.shape, *layers)
    return {name: texts.is_valid() for name, texts in cells.items()}


def type_json(type_: Type) -> dict[str, Json]:
    """A type as Spanner's API writes it."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        return {"code": "ARRAY", "array_element_type": type_json(type_.element)}
    if type_.code in ANNOTATIONS:
        return {"code": ANNOTATIONS[type_.code].value, "type_annotation": type_.code.value}
    return {"code": type_.code.value}
