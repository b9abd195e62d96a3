"""Key sets from their proto."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.engine.keys import key_parts
from emulator.engine.refusals import unknown_index, unknown_table
from emulator.errors import failed_precondition, invalid_argument
from emulator.values.protos import types_of
from emulator.values.requests import KeyRange, KeySet, Stored
from emulator.wire.messages import Message
from emulator.wire.values import Decoder, decoder
from spanner_schema.model.column_types import Type
from spanner_schema.model.schema import Index, Schema, Table


def key_decoders(schema: Schema, table_name: str, index_name: str = "") -> list[Decoder]:
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
    return [decoder(column_type(table, part.column), types) for part in key_parts(table, index)]


def column_type(table: Table, name: str) -> Type:
    """The type of a column that the schema vouches for."""
    column = table.column(name)
    if column is None:
        raise invalid_argument(f"Column not found in table {table.name}: {name}")
    return column.type


def read_key(decoders: Sequence[Decoder], values: Sequence[Message]) -> tuple[Stored, ...]:
    """One key, or a prefix of one. Raises FAILED_PRECONDITION for values of other types."""
    if len(values) > len(decoders):
        raise failed_precondition(
            f"Wrong number of key parts: expected at most {len(decoders)}, found {len(values)}."
        )
    parts: list[Stored] = []
    for decode, value in zip(decoders, values, strict=False):
        try:
            parts.append(decode(value))
        except ValueError as error:
            raise failed_precondition(f"Invalid value for a key part: {error}") from error
    return tuple(parts)


def read_key_range(decoders: Sequence[Decoder], proto: Message) -> KeyRange:
    """Keys between two prefixes; both ends must be given."""
    start, end = proto.WhichOneof("start_key_type"), proto.WhichOneof("end_key_type")
    if start is None or end is None:
        raise invalid_argument("KeyRange must have a start and an end.")
    return KeyRange(
        read_key(decoders, getattr(proto, start).values),
        read_key(decoders, getattr(proto, end).values),
        start_closed=start == "start_closed",
        end_closed=end == "end_closed",
    )


def read_key_set(decoders: Sequence[Decoder], proto: Message) -> KeySet:
    """The keys and ranges of a request."""
    if proto.all_:
        return KeySet(all=True)
    return KeySet(
        tuple(read_key(decoders, item.values) for item in proto.keys),
        tuple(read_key_range(decoders, item) for item in proto.ranges),
    )
