"""A change as the JSON record of a Spanner change stream, one mod a record."""

from __future__ import annotations

from typing import Literal

from ddl.model.schema import Type, TypeCode
from watcher.envelopes.images import describe_change
from watcher.envelopes.message import EnvelopeOptions, Json, Known, Message, id_header, json_bytes
from watcher.envelopes.values import JsonFormat
from watcher.model.change import Change, Operation, Origin, Shape
from watcher.model.errors import ConfigurationError, EnvelopeError
from watcher.model.value_types import ANNOTATIONS
from watcher.spanner.timestamps import format_timestamp

MOD_TYPES = (Operation.INSERT, Operation.UPDATE, Operation.DELETE)


class ChangeStreamEnvelope(EnvelopeOptions):
    """What ``READ_<stream>`` gives in the PostgreSQL dialect: ``data_change_record``, and
    ``heartbeat_record`` for a timestamp up to which everything was written.

    ``int64``: numbers, as the documentation shows them, or text, as the API sends them.
    """

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

    def encode(self, change: Change) -> tuple[Message, ...]:
        """As ``Envelope.encode``."""
        if change.origin is None or change.operation not in MOD_TYPES:
            raise EnvelopeError(
                f"{describe_change(change)} does not come from a change stream, and the"
                " change-stream envelope has no record for it"
            )
        json_format = JsonFormat(int64_as_text=self.int64 == "text")
        key = json_bytes(list(json_format.format_row(change.shape, change.key).values()))
        record = data_change_record(change, change.origin, json_format)
        return (Message(key, json_bytes({"data_change_record": record}), id_header(change)),)

    def encode_resolved(self, micros: int) -> tuple[Message, ...]:
        """As ``Envelope.encode_resolved``."""
        record: Json = {"heartbeat_record": {"timestamp": format_timestamp(micros)}}
        return (Message(None, json_bytes(record)),)


def data_change_record(change: Change, origin: Origin, json_format: JsonFormat) -> dict[str, Json]:
    """A record with the one mod of this change."""
    keys = json_format.format_row(change.shape, change.key)
    new = json_format.format_row(change.shape, change.new_values or {})
    old = json_format.format_row(change.shape, change.old_values or {})
    return {
        "commit_timestamp": format_timestamp(change.commit_timestamp),
        "record_sequence": origin.record_sequence,
        "server_transaction_id": origin.transaction_id,
        "is_last_record_in_transaction_in_partition": origin.last_in_transaction_in_partition,
        "table_name": change.table,
        "column_types": column_types(change.shape, keys.keys() | new.keys() | old.keys()),
        "mods": [{"keys": keys, "new_values": new, "old_values": old}],
        "mod_type": str(change.operation),
        "value_capture_type": str(change.captured),
        "number_of_records_in_transaction": origin.records_in_transaction,
        "number_of_partitions_in_transaction": origin.partitions_in_transaction,
        "transaction_tag": origin.transaction_tag,
        "is_system_transaction": origin.system_transaction,
    }


def column_types(shape: Shape, present: set[str]) -> list[Json]:
    """The columns that the record has, with their places in the table, from 1."""
    positions = shape.positions or range(1, len(shape.columns) + 1)
    return [
        {
            "name": name,
            "type": type_json(type_),
            "is_primary_key": name in shape.primary_key,
            "ordinal_position": position,
        }
        for position, (name, type_) in zip(positions, shape.columns, strict=True)
        if name in present
    ]


def type_json(type_: Type) -> dict[str, Json]:
    """A type as Spanner's API writes it."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        return {"code": "ARRAY", "array_element_type": type_json(type_.element)}
    if type_.code in ANNOTATIONS:
        return {"code": ANNOTATIONS[type_.code].value, "type_annotation": type_.code.value}
    return {"code": type_.code.value}
