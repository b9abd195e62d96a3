"""The records of a stream with ``partition_mode = 'MUTABLE_KEY_RANGE'``: protocol buffers, in a
column of type PROTO. Spanner: ``google.spanner.v1.ChangeStreamRecord``."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from google.cloud.spanner_v1 import TypeAnnotationCode
from google.cloud.spanner_v1.types import ChangeStreamRecord

from spanner_schema.model.column_types import Type, TypeCode
from watcher.captures.change_stream.record_values import (
    DataRecord,
    Heartbeat,
    MovingRecord,
    PartitionEnd,
    PartitionMove,
    PartitionStart,
    StreamMod,
)
from watcher.model.change import Operation, Shape, ValueCapture
from watcher.model.value_types import find_code
from watcher.spanner.results.wire import ResultPart, join_chunks, parse_cell

Message: TypeAlias = Any
"""A message of protocol buffers, which has no types of its own."""

MESSAGE = ChangeStreamRecord.pb()
COLUMN = MESSAGE.DESCRIPTOR.nested_types_by_name["DataChangeRecord"].nested_types_by_name[
    "ColumnMetadata"
]
TYPE_CODES = COLUMN.fields_by_name["type_"].message_type.fields_by_name["code"].enum_type
MODS = MESSAGE.DataChangeRecord.ModType
CAPTURES = MESSAGE.DataChangeRecord.ValueCaptureType
DUMP = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def decode_messages(results: Iterable[ResultPart]) -> Iterator[MovingRecord]:
    """The records of a query, in the order in which Spanner sends them."""
    for values, _ in join_chunks(results):
        for value in values:
            record = MESSAGE.FromString(b64decode(parse_cell(value).text))
            kind = record.WhichOneof("record")
            if kind in DECODERS:
                yield DECODERS[kind](getattr(record, kind))


def decode_data(data: Message) -> DataRecord:
    """A data change record, as those of other streams."""
    operation = Operation(MODS.Name(data.mod_type))
    captured = ValueCapture(CAPTURES.Name(data.value_capture_type))
    columns = tuple(each.SerializeToString() for each in data.column_metadata)
    shape = decode_shape(data.table, columns)
    names = [name for name, _ in shape.columns]
    return DataRecord(
        commit_timestamp=decode_time(data.commit_timestamp),
        sequence=data.record_sequence,
        transaction_id=data.server_transaction_id,
        last_in_partition=data.is_last_record_in_transaction_in_partition,
        shape=shape,
        mods=tuple(decode_mod(each, names, operation, captured) for each in data.mods),
        operation=operation,
        captured=captured,
        records_in_transaction=data.number_of_records_in_transaction,
        partitions_in_transaction=data.number_of_partitions_in_transaction,
        tag=data.transaction_tag,
        system=data.is_system_transaction,
    )


def decode_mod(
    mod: Message, names: Sequence[str], operation: Operation, captured: ValueCapture
) -> StreamMod:
    """A changed row, with its values as JSON."""
    return StreamMod(
        encode_values(mod.keys, names),
        None if operation is Operation.DELETE else encode_values(mod.new_values, names),
        encode_values(mod.old_values, names) if captured.keeps_old else None,
    )


def encode_values(values: Iterable[Message], names: Sequence[str]) -> str:
    """An object of JSON. A value names its column by its index in the record."""
    return DUMP({names[each.column_metadata_index]: convert_value(each.value) for each in values})


def convert_value(value: Message) -> object:
    """A ``google.protobuf.Value`` as Python has it: INT64 and NUMERIC are text."""
    kind = value.WhichOneof("kind")
    if kind == "list_value":
        return [convert_value(item) for item in value.list_value.values]
    return None if kind in (None, "null_value") else getattr(value, kind)


@lru_cache(maxsize=1024)
def decode_shape(table: str, columns: tuple[bytes, ...]) -> Shape:
    """The columns of a record. Most records of a table have the same ones."""
    described = [MESSAGE.DataChangeRecord.ColumnMetadata.FromString(each) for each in columns]
    return Shape(
        table,
        tuple((each.name, decode_type(each.type_)) for each in described),
        tuple(each.name for each in described if each.is_primary_key),
        tuple(each.ordinal_position for each in described),
    )


def decode_type(type_: Message) -> Type:
    """A ``google.spanner.v1.Type``."""
    annotation = TypeAnnotationCode(type_.type_annotation).name
    code = find_code(TYPE_CODES.values_by_number[type_.code].name, annotation)
    if code is TypeCode.ARRAY:
        return Type(code, element=decode_type(type_.array_element_type))
    return Type(code, proto_name=type_.proto_type_fqn or None)


def decode_time(stamp: Message) -> int:
    """A timestamp in microseconds since 1970."""
    return int(stamp.seconds) * 1_000_000 + int(stamp.nanos) // 1_000


def decode_heartbeat(beat: Message) -> Heartbeat:
    """A heartbeat."""
    return Heartbeat(decode_time(beat.timestamp))


def decode_start(started: Message) -> PartitionStart:
    """Partitions that are to be read from a timestamp on."""
    return PartitionStart(
        decode_time(started.start_timestamp),
        started.record_sequence,
        tuple(started.partition_tokens),
    )


def decode_end(ended: Message) -> PartitionEnd:
    """The end of a partition."""
    return PartitionEnd(decode_time(ended.end_timestamp), ended.record_sequence)


def decode_move(event: Message) -> PartitionMove:
    """Keys that move. Who gives keys away waits for nobody, so that only sources are told."""
    sources = tuple(each.source_partition_token for each in event.move_in_events)
    return PartitionMove(decode_time(event.commit_timestamp), event.record_sequence, sources)


DECODERS: Mapping[str, Any] = {
    "data_change_record": decode_data,
    "heartbeat_record": decode_heartbeat,
    "partition_start_record": decode_start,
    "partition_end_record": decode_end,
    "partition_event_record": decode_move,
}
