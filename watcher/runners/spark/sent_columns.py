"""The JSON objects of a change stream -> the columns of their table, as Arrow keeps them.

A column whose values are of the kinds that Spanner sends is converted at once; another one goes
value by value through Spanner's messages, whose decoder knows what to accept and what to say.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.struct_pb2 import NULL_VALUE, ListValue, Value

from ddl.model.schema import Type
from watcher.envelopes.by_column.sent_cells import convert_sent_values
from watcher.envelopes.by_column.sent_members import read_members
from watcher.envelopes.by_column.sent_objects import SentObject, parse_objects
from watcher.model.value_types import describe_values
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
        self._batch = batch
        keys = read_members(batch.column("key"), [each for each in columns if each[0] in key])
        if keys is None or any(each.null_count for each in keys.values()):
            self._members: dict[str, pa.Array] = {}
        else:
            others = [each for each in columns if each[0] not in key]
            news = read_members(batch.column("new_values"), others)
            self._members = {} if news is None else keys | news

    def decode(self, name: str, type_: Type, nanoseconds: Nanoseconds, of_key: bool) -> pa.Array:
        """A column of the table; NULL where a row does not have it. Raises what the decoder of
        Spanner's results raises."""
        sent = self._members.get(name)
        if sent is not None:
            with suppress(pa.ArrowInvalid, ValueError):
                return convert_column(sent, type_, nanoseconds, of_key)
        return decode_column(self._list_values(name), type_, nanoseconds, of_key)

    @cached_property
    def _keys(self) -> list[SentObject]:
        return parse_objects(self._batch.column("key"))

    @cached_property
    def _news(self) -> list[SentObject]:
        return parse_objects(self._batch.column("new_values"))

    @cached_property
    def _key_names(self) -> frozenset[str]:
        return frozenset().union(*self._keys)

    @cached_property
    def _new_names(self) -> frozenset[str]:
        return frozenset().union(*self._news)

    def _list_values(self, name: str) -> list[object]:
        """The values of a column as they were sent; None where a row does not have it."""
        if name not in self._key_names:
            return [new.get(name) for new in self._news]
        if name not in self._new_names:
            return [key.get(name) for key in self._keys]
        both = zip(self._keys, self._news, strict=True)
        return [find_value(name, new, key) for key, new in both]


def find_value(name: str, new: SentObject, key: SentObject) -> object:
    """The new value where there is one, be it NULL."""
    return new[name] if name in new else key.get(name)


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
        target = convert_type(type_, nanoseconds)
        return convert_lists(sent, type_.element, nanoseconds).cast(target)
    return convert_sent(sent, describe_values(type_).form, nanoseconds, of_key)


def convert_lists(lists: pa.Array, element: Type, nanoseconds: Nanoseconds) -> pa.Array:
    """Lists of converted values."""
    values = convert_column(lists.flatten(), element, nanoseconds)
    lengths = pc.fill_null(lists.value_lengths(), 0).to_numpy()
    offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int32())
    return pa.ListArray.from_arrays(offsets, values, mask=lists.is_null())


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
