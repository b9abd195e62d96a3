"""Spanner results -> Arrow columns: decoded by column, without a Python object per row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
from google.cloud.spanner_v1 import ResultSetMetadata
from google.cloud.spanner_v1 import TypeCode as TypeCodePb
from numpy.typing import NDArray

from ddl.schema import Type, TypeCode
from watcher.errors import SchemaChangedError, WatcherError
from watcher.spanner.results import base64_column
from watcher.spanner.results.cells import (
    TEXT,
    VARINT_STEPS,
    booleans,
    cells,
    lists,
    numbers,
    payloads,
    texts,
)
from watcher.spanner.results.wire import ResultPart, elements, whole_rows
from watcher.spanner.timestamps import MICROSECONDS, exact, refuse_finer, truncated

Decode = Callable[[Sequence[bytes]], pa.Array]

TIMESTAMP = MICROSECONDS
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


class Nanoseconds(StrEnum):
    """What becomes of a TIMESTAMP, which Arrow and Spark keep in microseconds.

    In a primary key none is ever cut off: two rows would have one key.
    """

    TRUNCATE = "truncate"
    REFUSE = "refuse"
    """A value that is finer than microseconds is an error."""
    STRING = "string"
    """Every TIMESTAMP is text, as Spanner wrote it."""


class UnsupportedTypeError(WatcherError):
    """A column of a type that has no Arrow form here."""


def arrow_type(type_: Type, nanoseconds: Nanoseconds = Nanoseconds.TRUNCATE) -> pa.DataType:
    """The Arrow type of a Spanner type."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        return pa.list_(arrow_type(type_.element, nanoseconds))
    if type_.code is TypeCode.TIMESTAMP and nanoseconds is Nanoseconds.STRING:
        return pa.string()
    if type_.code not in ARROW:
        raise UnsupportedTypeError(
            f"columns of type {type_.code.value} cannot be delivered; leave the column out"
        )
    return ARROW[type_.code]


def arrow_schema(
    columns: Iterable[tuple[str, Type]],
    nanoseconds: Nanoseconds = Nanoseconds.TRUNCATE,
    key: Collection[str] = (),
) -> pa.Schema:
    """Names and types as an Arrow schema; every column may be NULL. TIMESTAMPs of the ``key`` are
    text."""
    return pa.schema(
        [
            pa.field(name, arrow_type(type_, exactly(nanoseconds, type_, name in key)))
            for name, type_ in columns
        ]
    )


def exactly(nanoseconds: Nanoseconds, type_: Type, of_key: bool) -> Nanoseconds:
    """How a column is kept: a TIMESTAMP of a key as text."""
    return Nanoseconds.STRING if of_key and type_.code is TypeCode.TIMESTAMP else nanoseconds


def record_batches(
    results: Iterable[ResultPart],
    schema: pa.Schema,
    types: Sequence[Type],
    nanoseconds: Nanoseconds = Nanoseconds.TRUNCATE,
    key: Collection[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Batches of whole rows, of some megabytes each; none for a result without rows.

    ``schema`` is that of ``arrow_schema``. Raises SchemaChangedError when a column is of another
    type than it was, LossyTimestampError for what is to be refused.
    """
    columns = zip(schema.names, types, strict=True)
    decoders = [decoder(type_, nanoseconds, name in key) for name, type_ in columns]
    for values in whole_rows(as_expected(results, schema, types), len(decoders)):
        yield record_batch(values, schema, decoders)


def as_expected(
    results: Iterable[ResultPart], schema: pa.Schema, types: Sequence[Type]
) -> Iterator[ResultPart]:
    """The messages, once the server says that it sends these types."""
    for part in results:
        if part.metadata:
            fields = ResultSetMetadata.pb().FromString(part.metadata).row_type.fields
            sent = [type_name(field.type_) for field in fields]
            expected = [type_name_of(type_) for type_ in types]
            if sent != expected:
                raise SchemaChangedError(changed_types(schema.names, expected, sent))
        yield part


def type_name(type_: Any) -> str:
    """The name of a type of the API, as ARRAY<INT64>."""
    if type_.code == TypeCodePb.ARRAY:
        return f"ARRAY<{type_name(type_.array_element_type)}>"
    return str(TypeCodePb(type_.code).name)


def type_name_of(type_: Type) -> str:
    """The name of a type of a schema."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        return f"ARRAY<{type_name_of(type_.element)}>"
    return type_.code.value


def changed_types(names: Sequence[str], expected: Sequence[str], sent: Sequence[str]) -> str:
    """Which columns are not what they were."""
    differing = [
        f"{name} was {before} and is {now}"
        for name, before, now in zip(names, expected, sent, strict=False)
        if before != now
    ]
    if not differing:
        return f"{len(expected)} columns were asked for, {len(sent)} came"
    return f"the schema has changed: column {'; column '.join(differing)}"


def record_batch(
    values: Sequence[bytes], schema: pa.Schema, decoders: Sequence[Decode]
) -> pa.RecordBatch:
    """The values of whole rows, row by row, as columns."""
    width = len(decoders)
    arrays = [decode(values[i::width]) for i, decode in enumerate(decoders)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def decoder(
    type_: Type, nanoseconds: Nanoseconds = Nanoseconds.TRUNCATE, of_key: bool = False
) -> Decode:
    """The function that decodes a column of a type; a TIMESTAMP of a key as text (``exact``)."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        return array_decoder(type_, nanoseconds)
    if type_.code is TypeCode.TIMESTAMP:
        return (KEY_DECODERS if of_key else TIMESTAMP_DECODERS)[nanoseconds]
    return DECODERS[type_.code]


def strings(values: Sequence[bytes]) -> pa.Array:
    """STRING, JSON, UUID."""
    return texts(cells(values))


def by_cast(target: pa.DataType) -> Decode:
    """A type whose text Arrow reads by itself, a whole column at a time."""
    return lambda values: strings(values).cast(target)


def timestamps(values: Sequence[bytes]) -> pa.Array:
    """TIMESTAMP: what is finer than microseconds is cut off."""
    return truncated(strings(values))


def exact_timestamps(values: Sequence[bytes]) -> pa.Array:
    """TIMESTAMP: zeros may be finer than microseconds, nothing else."""
    return truncated(refuse_finer(strings(values)))


def octets(values: Sequence[bytes]) -> pa.Array:
    """BYTES: base64 on the wire."""
    column = cells(values)
    column.of_kind(TEXT)
    return base64_column.decoded(payloads(column))


def floats(target: pa.DataType) -> Decode:
    """FLOAT64 and FLOAT32: numbers, or the words NaN, Infinity and -Infinity."""
    return lambda values: numbers(cells(values)).cast(target, safe=False)


def array_decoder(type_: Type, nanoseconds: Nanoseconds) -> Decode:
    """ARRAY: the elements of all rows are decoded as one column."""
    assert type_.element is not None
    inner = decoder(type_.element, nanoseconds)
    target = arrow_type(type_, nanoseconds)

    def decode(values: Sequence[bytes]) -> pa.Array:
        found = lists(cells(values))
        _, offsets, content = found.buffers()
        ends = np.frombuffer(offsets, np.int32)[1 : len(found) + 1]
        items = elements(content.to_pybytes()[: ends[-1]]) if len(ends) and content else []
        rows = pa.array(np.concatenate(([0], places(items, ends))), pa.int32())
        made = pa.ListArray.from_arrays(rows, inner(items).cast(target.value_type))
        bitmap = found.buffers()[0]
        return pa.Array.from_buffers(
            target, len(found), [bitmap, made.buffers()[1]], children=[made.values]
        )

    return decode


def places(items: Sequence[bytes], ends: NDArray[np.int32]) -> NDArray[np.int64]:
    """How many elements lie before each end, which counts bytes of ListValues."""
    lengths = np.fromiter(map(len, items), np.int64, len(items))
    headers = 2 + sum((lengths >= step).astype(np.int64) for step in VARINT_STEPS)
    return np.searchsorted(np.cumsum(lengths + headers), ends, side="right")


DECODERS: dict[TypeCode, Decode] = {
    TypeCode.BOOL: lambda values: booleans(cells(values)),
    TypeCode.INT64: by_cast(pa.int64()),
    TypeCode.FLOAT32: floats(pa.float32()),
    TypeCode.FLOAT64: floats(pa.float64()),
    TypeCode.NUMERIC: by_cast(NUMERIC),
    TypeCode.STRING: strings,
    TypeCode.BYTES: octets,
    TypeCode.DATE: by_cast(pa.date32()),
    TypeCode.JSON: strings,
    TypeCode.UUID: strings,
}

TIMESTAMP_DECODERS: dict[Nanoseconds, Decode] = {
    Nanoseconds.TRUNCATE: timestamps,
    Nanoseconds.REFUSE: exact_timestamps,
    Nanoseconds.STRING: strings,
}

KEY_DECODERS: dict[Nanoseconds, Decode] = {
    Nanoseconds.TRUNCATE: lambda values: exact(strings(values)),
    Nanoseconds.REFUSE: lambda values: exact(refuse_finer(strings(values))),
    Nanoseconds.STRING: strings,
}
