"""The JSON objects of a change stream -> the columns of their table, as Arrow keeps them.

A column whose values are of the kinds that Spanner sends is converted at once; another one goes
value by value through Spanner's messages, whose decoder knows what to accept and what to say.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from contextlib import suppress

import pyarrow as pa
from google.protobuf.struct_pb2 import NULL_VALUE, ListValue, Value

from spanner_schema.model.column_types import Type
from watcher.envelopes.by_column.sent_objects import SentObjects, convert_sent_values
from watcher.model.value_types import describe_values
from watcher.spanner.json_columns.objects import replace_items
from watcher.spanner.results.columns import (
    choose_decoder,
    choose_nanoseconds,
    convert_sent,
    convert_type,
)
from watcher.spanner.results.supported_types import Nanoseconds


class SentRows:
    """The rows of changes: the values afterwards, and the key. ``columns`` and ``key`` are those of
    the table: where changes have the same ones, their values are not parsed to Python's."""

    def __init__(
        self, batch: pa.RecordBatch, columns: Sequence[tuple[str, Type]], key: Collection[str]
    ) -> None:
        of_key = [each for each in columns if each[0] in key]
        others = [each for each in columns if each[0] not in key]
        self._keys = SentObjects(batch.column("key"), of_key)
        self._news = SentObjects(batch.column("new_values"), others)

    def decode(self, name: str, type_: Type, nanoseconds: Nanoseconds, of_key: bool) -> pa.Array:
        """A column of the table; NULL where a row does not have it. Raises what the decoder of
        Spanner's results raises."""
        if self._keys.as_expected and self._news.as_expected:
            sent = (self._keys if of_key else self._news).get_sent(name)
            with suppress(pa.ArrowInvalid, ValueError):
                return convert_column(sent, type_, nanoseconds, of_key)
        return decode_column(self._list_values(name), type_, nanoseconds, of_key)

    def _list_values(self, name: str) -> list[object]:
        """The values of a column as they were sent: the new one where there is one, be it NULL;
        None where a row does not have it."""
        both = zip(self._news.parsed, self._keys.parsed, strict=True)
        return [new[name] if name in new else key.get(name) for new, key in both]


def decode_column(
    values: list[object], type_: Type, nanoseconds: Nanoseconds, of_key: bool
) -> pa.Array:
    """The values of a column. Raises what the decoder of Spanner's results raises."""
    column = convert_at_once(values, type_, nanoseconds, of_key)
    if column is not None:
        return column
    decode = choose_decoder(type_, nanoseconds, of_key)
    decoded = decode([encode_value(value).SerializeToString() for value in values])
    target = convert_type(type_, choose_nanoseconds(nanoseconds, type_, of_key))
    return decoded.cast(target)


def convert_at_once(
    values: list[object], type_: Type, nanoseconds: Nanoseconds, of_key: bool
) -> pa.Array | None:
    """The values of a column; None if one is not as Spanner sends it."""
    sent = convert_sent_values(values, type_)
    try:
        return None if sent is None else convert_column(sent, type_, nanoseconds, of_key)
    except (pa.ArrowInvalid, ValueError):
        return None


def convert_column(
    sent: pa.Array, type_: Type, nanoseconds: Nanoseconds, of_key: bool = False
) -> pa.Array:
    """A column of values as they were sent, in the type that Arrow keeps them in."""
    if type_.element is not None:
        items = convert_column(sent.flatten(), type_.element, nanoseconds)
        return replace_items(sent, items).cast(convert_type(type_, nanoseconds))
    return convert_sent(sent, describe_values(type_).form, nanoseconds, of_key)


def encode_value(value: object) -> Value:
    """A value of JSON as Spanner's API writes it."""
    if value is None:
        return Value(null_value=NULL_VALUE)
    if isinstance(value, bool):
        return Value(bool_value=value)
    if isinstance(value, int | float):
        return Value(number_value=value)
    if isinstance(value, list):
        return Value(list_value=ListValue(values=[encode_value(item) for item in value]))
    return Value(string_value=value if isinstance(value, str) else json.dumps(value))
