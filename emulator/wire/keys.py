"""Key sets from their proto."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from emulator.engine.keys import key_parts
from emulator.engine.refusals import unknown_index, unknown_table, wrong_key_size
from emulator.errors import SpannerError, failed_precondition, invalid_argument
from emulator.values.protos import types_of
from emulator.values.requests import KeyRange, KeySet, Stored
from emulator.wire.messages import Message
from emulator.wire.values import Decoder, decoder
from spanner_schema.model.column_types import Type
from spanner_schema.model.schema import Index, Schema, Table


@dataclass(frozen=True, slots=True)
class KeyDecoders:
    """How the parts of the key of a table or an index are read: its name, the number of parts of a
    whole key, and a decoder for each part; an index has those of the table's key behind its own."""

    name: str
    size: int
    decoders: tuple[Decoder, ...]


def key_decoders(schema: Schema, table_name: str, index_name: str = "") -> KeyDecoders:
    """How the parts of a table's key, or of an index key, are read."""
    table = schema.find_table(table_name)
    if table is None:
        raise unknown_table(table_name)
    index: Index | None = None
    if index_name:
        index = schema.index(index_name)
        if index is None or index.table.casefold() != table.name.casefold():
            raise unknown_index(index_name, table.name)
    types = types_of(schema)
    return KeyDecoders(
        table.name if index is None else index.name,
        len(table.primary_key if index is None else index.parts),
        tuple(decoder(column_type(table, part.column), types) for part in key_parts(table, index)),
    )


def column_type(table: Table, name: str) -> Type:
    """The type of a column that the schema vouches for."""
    column = table.column(name)
    if column is None:
        raise invalid_argument(f"Column not found in table {table.name}: {name}")
    return column.type


def read_key(key: KeyDecoders, values: Sequence[Message]) -> tuple[Stored, ...]:
    """A whole key. Raises FAILED_PRECONDITION for another number of parts, or other types."""
    if len(values) != key.size:
        raise refuse_size(key, values)
    return read_parts(key, values)


def refuse_size(key: KeyDecoders, values: Sequence[Message]) -> SpannerError:
    """The error of a key with another number of parts."""
    parts = [plain_part(value) for value in values]
    return wrong_key_size(key.name, key.size, json.dumps(parts, separators=(",", ":")))


def plain_part(value: Message) -> object:
    """A part of a key as JSON has it; protobuf's own writer knows no NaN."""
    kind = value.WhichOneof("kind")
    if kind == "list_value":
        return [plain_part(each) for each in value.list_value.values]
    if kind == "struct_value":
        return {name: plain_part(each) for name, each in value.struct_value.fields.items()}
    return None if kind in {None, "null_value"} else getattr(value, kind)


def read_parts(key: KeyDecoders, values: Sequence[Message]) -> tuple[Stored, ...]:
    """The first parts of a key, or all."""
    if len(values) > len(key.decoders):
        raise refuse_size(key, values)
    parts: list[Stored] = []
    for decode, value in zip(key.decoders, values, strict=False):
        try:
            parts.append(decode(value))
        except ValueError as error:
            raise failed_precondition(f"Invalid value for a key part: {error}") from error
    return tuple(parts)


def read_key_range(key: KeyDecoders, proto: Message) -> KeyRange:
    """Keys between two prefixes; both ends must be given."""
    start, end = proto.WhichOneof("start_key_type"), proto.WhichOneof("end_key_type")
    if start is None or end is None:
        raise invalid_argument("KeyRange must have a start and an end.")
    return KeyRange(
        read_parts(key, getattr(proto, start).values),
        read_parts(key, getattr(proto, end).values),
        start_closed=start == "start_closed",
        end_closed=end == "end_closed",
    )


def read_key_set(key: KeyDecoders, proto: Message) -> KeySet:
    """The keys and ranges of a request."""
    if proto.all_:
        return KeySet(all=True)
    return KeySet(
        tuple(read_key(key, item.values) for item in proto.keys),
        tuple(read_key_range(key, item) for item in proto.ranges),
    )
