"""Records of change streams whose partitions change their key ranges: messages of the API."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence

from google.protobuf.json_format import ParseDict

from emulator.values.forms import micros_from_timestamp
from emulator.wire import times
from emulator.wire.messages import ChangeStreamRecord, Message, ResultSetMetadata

PROTO_NAME = "google.spanner.v1.ChangeStreamRecord"
PROTO = 13
"""The type's number in google.spanner.v1.TypeCode."""


def record_metadata(column: str) -> Message:
    """ResultSetMetadata of the one column, a message."""
    message = ResultSetMetadata()
    type_ = message.row_type.fields.add(name=column).type_
    type_.code, type_.proto_type_fqn = PROTO, PROTO_NAME
    return message


def encode_record(text: str) -> str:
    """A record as the engine keeps it (JSON: its kind and its fields) as a message in base64."""
    kind, fields = json.loads(text)
    record = ChangeStreamRecord()
    FILLERS[kind](record, fields)
    return base64.b64encode(record.SerializeToString()).decode("ascii")


def fill_heartbeat(record: Message, fields: Sequence[object]) -> None:
    """Everything up to the timestamp has been sent."""
    fill_time(record.heartbeat_record.timestamp, fields[0])


def fill_start(record: Message, fields: Sequence[object]) -> None:
    """Partitions that are to be read from a timestamp on."""
    started = record.partition_start_record
    fill_time(started.start_timestamp, fields[0])
    started.record_sequence = str(fields[1])
    started.partition_tokens.extend(strings(fields[2]))


def fill_end(record: Message, fields: Sequence[object]) -> None:
    """The partition has ended."""
    ended = record.partition_end_record
    fill_time(ended.end_timestamp, fields[0])
    ended.record_sequence, ended.partition_token = str(fields[1]), str(fields[2])


def fill_event(record: Message, fields: Sequence[object]) -> None:
    """Keys have moved to, or from, other partitions."""
    event = record.partition_event_record
    fill_time(event.commit_timestamp, fields[0])
    event.record_sequence, event.partition_token = str(fields[1]), str(fields[2])
    for token in strings(fields[3]):
        event.move_in_events.add(source_partition_token=token)
    for token in strings(fields[4]):
        event.move_out_events.add(destination_partition_token=token)


def fill_data(record: Message, fields: Sequence[object]) -> None:
    """A data change record, whose fields are in the order in which the engine keeps them."""
    data = record.data_change_record
    fill_time(data.commit_timestamp, fields[0])
    data.record_sequence, data.server_transaction_id = str(fields[1]), str(fields[2])
    data.is_last_record_in_transaction_in_partition = bool(fields[3])
    data.table = str(fields[4])
    indexes = fill_columns(data, fields[5])
    for keys, new, old in pairs(fields[6]):
        mod = data.mods.add()
        fill_values(mod.keys, indexes, str(keys))
        fill_values(mod.new_values, indexes, str(new))
        fill_values(mod.old_values, indexes, str(old))
    data.mod_type = data.ModType.Value(str(fields[7]))
    data.value_capture_type = data.ValueCaptureType.Value(str(fields[8]))
    data.number_of_records_in_transaction = int(str(fields[9]))
    data.number_of_partitions_in_transaction = int(str(fields[10]))
    data.transaction_tag, data.is_system_transaction = str(fields[11]), bool(fields[12])


def fill_columns(data: Message, columns: object) -> dict[str, int]:
    """The columns of a record; their indexes by their names."""
    indexes: dict[str, int] = {}
    for index, (name, type_, is_key, ordinal) in enumerate(pairs(columns)):
        column = data.column_metadata.add(
            name=str(name), is_primary_key=bool(is_key), ordinal_position=int(str(ordinal))
        )
        ParseDict(json.loads(str(type_)), column.type_)
        indexes[str(name)] = index
    return indexes


def fill_values(target: Message, indexes: Mapping[str, int], text: str) -> None:
    """The values of some columns, from an object of JSON."""
    for name, value in json.loads(text).items():
        added = target.add(column_metadata_index=indexes[name])
        if value is None:
            added.value.null_value = 0
        else:
            ParseDict(value, added.value)


def fill_time(target: Message, form: object) -> None:
    """A timestamp, from the form of storage."""
    times.fill_timestamp(target, micros_from_timestamp(str(form)))


def strings(value: object) -> list[str]:
    """A list of texts."""
    return [str(item) for item in value] if isinstance(value, list) else []


def pairs(value: object) -> list[list[object]]:
    """A list of lists."""
    return value if isinstance(value, list) else []


FILLERS = {
    "data": fill_data,
    "heartbeat": fill_heartbeat,
    "start": fill_start,
    "end": fill_end,
    "event": fill_event,
}
