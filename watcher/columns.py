"""Spanner results -> Arrow columns: decoded by column, without a Python object per row."""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ddl.schema import Type, TypeCode
from watcher.errors import WatcherError
from watcher.stream import RawResult

Value = Any  # google.protobuf.Value
Decode = Callable[[Sequence[Value]], pa.Array]

TIMESTAMP = pa.timestamp("us", tz="UTC")
NUMERIC = pa.decimal128(38, 9)

ARROW = {
    TypeCode.BOOL: pa.bool_(),
    TypeCode.INT64: pa.int64(),
    TypeCode.FLOAT32: pa.float32(),
    TypeCode.FLOAT64: pa.float64(),
    TypeCode.NUMERIC: NUMERIC,
    TypeCode.STRING: pa.string(),
    TypeCode.BYTES: pa.binary(),
    TypeCode.DATE: pa.date32(),
    TypeCode.TIMESTAMP: TIMESTAMP,
    TypeCode.JSON: pa.string(),
    TypeCode.UUID: pa.string(),
}


class UnsupportedTypeError(WatcherError):
    """A column of a type that has no Arrow form here."""


def arrow_type(type_: Type) -> pa.DataType:
    """The Arrow type of a Spanner type. TIMESTAMP keeps microseconds: nanoseconds are cut off."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        return pa.list_(arrow_type(type_.element))
    if type_.code not in ARROW:
        raise UnsupportedTypeError(
            f"columns of type {type_.code.value} cannot be delivered; leave the column out"
        )
    return ARROW[type_.code]


def arrow_schema(columns: Iterable[tuple[str, Type]]) -> pa.Schema:
    """Names and types as an Arrow schema; every column may be NULL."""
    return pa.schema([pa.field(name, arrow_type(type_)) for name, type_ in columns])


def record_batches(
    results: Iterable[RawResult], schema: pa.Schema, types: Sequence[Type]
) -> Iterator[pa.RecordBatch]:
    """A batch for each message that completes rows; none for a result without rows."""
    decoders = [decoder(type_) for type_ in types]
    width = len(decoders)
    for values in whole_rows(results, width):
        arrays = [decode(values[i::width]) for i, decode in enumerate(decoders)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def whole_rows(results: Iterable[RawResult], width: int) -> Iterator[list[Value]]:
    """The values of whole rows, message by message; chunked values are put together."""
    pending: list[Value] = []
    chunk: Value | None = None
    for message in results:
        values = list(message.values)
        if chunk is not None and values:
            merge(chunk, values[0])
            values[0] = chunk
            chunk = None
        if message.chunked_value:
            chunk = values.pop()
        values = pending + values if pending else values
        complete = len(values) - len(values) % width
        pending = values[complete:]
        if complete:
            yield values if not pending else values[:complete]


def merge(left: Value, right: Value) -> None:
    """Appends the second part of a chunked value: strings are joined, lists at their seam."""
    if left.WhichOneof("kind") == "string_value":
        left.string_value += right.string_value
        return
    items, more = left.list_value.values, list(right.list_value.values)
    if items and more:
        kinds = {items[-1].WhichOneof("kind"), more[0].WhichOneof("kind")}
        if kinds in ({"string_value"}, {"list_value"}):
            merge(items[-1], more.pop(0))
    items.extend(more)


def decoder(type_: Type) -> Decode:
    """The function that decodes a column of a type."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        return array_decoder(type_)
    return DECODERS[type_.code]


def texts(values: Sequence[Value]) -> list[str | None]:
    """Strings of a type that is never empty: an empty one is NULL."""
    return [value.string_value or None for value in values]


def strings(values: Sequence[Value]) -> pa.Array:
    """STRING, JSON, UUID: an empty string must be looked at twice."""
    found: list[str | None] = [value.string_value for value in values]
    if "" in found:
        for number, text in enumerate(found):
            if not text and values[number].HasField("null_value"):
                found[number] = None
    return pa.array(found, pa.string())


def by_cast(target: pa.DataType) -> Decode:
    """A type whose text Arrow reads by itself, a whole column at a time."""
    return lambda values: pa.array(texts(values), pa.string()).cast(target)


def timestamps(values: Sequence[Value]) -> pa.Array:
    """TIMESTAMP: what is finer than microseconds is cut off."""
    found = pa.array(texts(values), pa.string())
    longest = pc.max(pc.binary_length(found)).as_py() or 0
    if longest > len("YYYY-MM-DDTHH:MM:SS.ffffffZ"):
        short = pc.utf8_slice_codeunits(pc.utf8_rtrim(found, "Z"), 0, 26)
        found = pc.binary_join_element_wise(short, "Z", "")
    return found.cast(TIMESTAMP)


def octets(values: Sequence[Value]) -> pa.Array:
    """BYTES: base64 on the wire; an empty one must be looked at twice."""
    found: list[bytes | None] = [a2b_base64(value.string_value) for value in values]
    if b"" in found:
        for number, data in enumerate(found):
            if not data and values[number].HasField("null_value"):
                found[number] = None
    return pa.array(found, pa.binary())


def booleans(values: Sequence[Value]) -> pa.Array:
    """BOOL: a false one must be looked at twice."""
    found = [True if v.bool_value else None if v.HasField("null_value") else False for v in values]
    return pa.array(found, pa.bool_())


def floats(target: pa.DataType) -> Decode:
    """FLOAT64 and FLOAT32: numbers, or the words NaN, Infinity and -Infinity."""

    def decode(values: Sequence[Value]) -> pa.Array:
        found = [v.number_value or zero(v) for v in values]
        return pa.array(found, target, from_pandas=False)

    return decode


def zero(value: Value) -> float | None:
    """What a value without a number is: zero, NULL, or a word."""
    kind = value.WhichOneof("kind")
    if kind == "null_value":
        return None
    return float(value.string_value) if kind == "string_value" else 0.0


def array_decoder(type_: Type) -> Decode:
    """ARRAY: the elements of all rows are decoded as one column."""
    assert type_.element is not None
    inner = decoder(type_.element)
    target = arrow_type(type_)

    def decode(values: Sequence[Value]) -> pa.Array:
        offsets: list[int | None] = [0]
        items: list[Value] = []
        for value in values:
            if value.HasField("null_value"):
                # Arrow: a null offset makes the list that begins there NULL.
                offsets[-1] = None
            else:
                items.extend(value.list_value.values)
            offsets.append(len(items))
        elements = inner(items).cast(target.value_type)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), elements).cast(target)

    return decode


DECODERS: dict[TypeCode, Decode] = {
    TypeCode.BOOL: booleans,
    TypeCode.INT64: by_cast(pa.int64()),
    TypeCode.FLOAT32: floats(pa.float32()),
    TypeCode.FLOAT64: floats(pa.float64()),
    TypeCode.NUMERIC: by_cast(NUMERIC),
    TypeCode.STRING: strings,
    TypeCode.BYTES: octets,
    TypeCode.DATE: by_cast(pa.date32()),
    TypeCode.TIMESTAMP: timestamps,
    TypeCode.JSON: strings,
    TypeCode.UUID: strings,
}
