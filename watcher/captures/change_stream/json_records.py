"""The records of a change stream of the PostgreSQL dialect: each a row with one jsonb.

Spanner: details of change streams, "Change stream record format", PostgreSQL.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from watcher.captures.change_stream.record_values import (
    ChildPartition,
    DataRecord,
    Heartbeat,
    Record,
    StreamMod,
    decode_type,
)
from watcher.model.change import Operation, Shape, ValueCapture
from watcher.spanner.timestamps import to_micros

DUMP = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
Fields = Mapping[str, Any]


def decode_json(text: str) -> Iterator[Record]:
    """The records of a row: one, or the child partitions of one."""
    for kind, fields in json.loads(text).items():
        if fields is not None:
            yield from DECODERS[kind](fields)


def decode_time(text: str) -> int:
    """A timestamp in microseconds since 1970."""
    return to_micros(datetime.fromisoformat(text))


def decode_data(fields: Fields) -> Iterator[Record]:
    """A data change record."""
    operation = Operation(fields["mod_type"])
    captured = ValueCapture(fields["value_capture_type"])
    yield DataRecord(
        commit_timestamp=decode_time(fields["commit_timestamp"]),
        sequence=fields["record_sequence"],
        transaction_id=fields["server_transaction_id"],
        last_in_partition=fields["is_last_record_in_transaction_in_partition"],
        shape=decode_shape(fields["table_name"], DUMP(fields["column_types"])),
        mods=tuple(decode_mod(each, operation, captured) for each in fields["mods"]),
        operation=operation,
        captured=captured,
        records_in_transaction=int(fields["number_of_records_in_transaction"]),
        partitions_in_transaction=int(fields["number_of_partitions_in_transaction"]),
        tag=fields.get("transaction_tag") or "",
        system=bool(fields.get("is_system_transaction")),
    )


def decode_mod(mod: Fields, operation: Operation, captured: ValueCapture) -> StreamMod:
    """A changed row; values are objects here, and stay objects of JSON."""
    deleted = operation is Operation.DELETE
    return StreamMod(
        DUMP(mod["keys"]),
        None if deleted else DUMP(mod.get("new_values") or {}),
        DUMP(mod.get("old_values") or {}) if captured.keeps_old else None,
    )


@lru_cache(maxsize=1024)
def decode_shape(table: str, columns: str) -> Shape:
    """The columns of a record. Most records of a table have the same ones."""
    described = json.loads(columns)
    return Shape(
        table,
        tuple((each["name"], decode_type(each["type"])) for each in described),
        tuple(each["name"] for each in described if each["is_primary_key"]),
        tuple(int(each["ordinal_position"]) for each in described),
    )


def decode_heartbeat(fields: Fields) -> Iterator[Record]:
    """A heartbeat."""
    yield Heartbeat(decode_time(fields["timestamp"]))


def decode_children(fields: Fields) -> Iterator[Record]:
    """The partitions of a child partitions record."""
    start = decode_time(fields["start_timestamp"])
    for each in fields["child_partitions"]:
        parents = tuple(each.get("parent_partition_tokens") or ())
        yield ChildPartition(each["token"], parents, start)


DECODERS = {
    "data_change_record": decode_data,
    "heartbeat_record": decode_heartbeat,
    "child_partitions_record": decode_children,
}
