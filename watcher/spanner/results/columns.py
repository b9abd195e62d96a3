"""Spanner results -> Arrow columns: decoded by column, without a Python object per row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ddl.schema import Type, TypeCode
from watcher.errors import LossyNumericError, WatcherError
from watcher.spanner.results import base64_column
from watcher.spanner.results.cells import (
    decode_booleans,
    decode_lists,
    decode_numbers,
    decode_texts,
    scan_cells,
)
from watcher.spanner.results.sent_types import check_types
from watcher.spanner.results.sent_values import TEXT, VARINT_STEPS, SentValues
from watcher.spanner.results.supported_types import Nanoseconds
from watcher.spanner.results.timestamp_columns import (
    MICROSECONDS,
    normalize_timestamps,
    refuse_finer,
    truncate_timestamps,
)
from watcher.spanner.results.wire import ResultPart, collect_rows, parse_elements

Decoder = Callable[[Sequence[bytes]], pa.Array]

TIMESTAMP = MICROSECONDS
NUMERIC = pa.decimal128(38, 9)
FITS = r"^-?0*\d{1,29}(\.\d{0,9}0*)?$"
"""Decimal texts that fit into it."""

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
    TypeCode.INTERVAL: pa.string(),
    TypeCode.PG_NUMERIC: NUMERIC,
    TypeCode.PG_JSONB: pa.string(),
    TypeCode.PROTO: pa.binary(),
    TypeCode.ENUM: pa.int64(),
}


class UnsupportedTypeError(WatcherError):
    """A column of a type that cannot be converted to Arrow."""


def convert_type(type_: Type, nanoseconds: Nanoseconds = Nanoseconds.TRUNCATE) -> pa.DataType:
    """The Arrow type of a Spanner type."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        return pa.list_(convert_type(type_.element, nanoseconds))
    if type_.code is TypeCode.TIMESTAMP and nanoseconds is Nanoseconds.STRING:
        return pa.string()
    if type_.code not in ARROW:
        raise UnsupportedTypeError(
            f"columns of type {type_.code.value} cannot be delivered; leave the column out"
        )
    return ARROW[type_.code]


def build_schema(
    columns: Iterable[tuple[str, Type]],
    nanoseconds: Nanoseconds = Nanoseconds.TRUNCATE,
    key: Collection[str] = (),
) -> pa.Schema:
    """Names and types as an Arrow schema; every column may be NULL. TIMESTAMPs of the ``key`` are
    text."""
    return pa.schema(
        [
            pa.field(name, convert_type(type_, choose_nanoseconds(nanoseconds, type_, name in key)))
            for name, type_ in columns
        ]
    )


def choose_nanoseconds(nanoseconds: Nanoseconds, type_: Type, of_key: bool) -> Nanoseconds:
    """How a column is kept: a TIMESTAMP of a key as text."""
    return Nanoseconds.STRING if of_key and type_.code is TypeCode.TIMESTAMP else nanoseconds


def decode_batches(
    results: Iterable[ResultPart],
    schema: pa.Schema,
    types: Sequence[Type],
    nanoseconds: Nanoseconds = Nanoseconds.TRUNCATE,
    key: Collection[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Batches of whole rows, of some megabytes each; none for a result without rows.

    ``schema`` is that of ``build_schema``. Raises SchemaChangedError when a column is of another
    type than it was, LossyTimestampError for a value that is to be refused.
    """
    columns = zip(schema.names, types, strict=True)
    decoders = [choose_decoder(type_, nanoseconds, name in key) for name, type_ in columns]
    for values in collect_rows(check_types(results, schema.names, types), len(decoders)):
        yield decode_batch(values, schema, decoders)


def decode_batch(
    values: Sequence[bytes], schema: pa.Schema, decoders: Sequence[Decoder]
) -> pa.RecordBatch:
    """The values of whole rows, row by row, as columns."""
    width = len(decoders)
    arrays = [decode(values[i::width]) for i, decode in enumerate(decoders)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def choose_decoder(
    type_: Type, nanoseconds: Nanoseconds = Nanoseconds.TRUNCATE, of_key: bool = False
) -> Decoder:
    """The function that decodes a column of a type; a TIMESTAMP of a key as normalized text."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        return make_array_decoder(type_, nanoseconds)
    if type_.code is TypeCode.TIMESTAMP:
        return (KEY_DECODERS if of_key else TIMESTAMP_DECODERS)[nanoseconds]
    return DECODERS[type_.code]


def decode_strings(values: Sequence[bytes]) -> pa.Array:
    """STRING, JSON, UUID."""
    return decode_texts(scan_cells(values))


def make_cast_decoder(target: pa.DataType) -> Decoder:
    """A type whose text Arrow reads by itself, a whole column at a time."""
    return lambda values: decode_strings(values).cast(target)


def decode_timestamps(values: Sequence[bytes]) -> pa.Array:
    """TIMESTAMP: what is finer than microseconds is cut off."""
    return truncate_timestamps(decode_strings(values))


def decode_exact_timestamps(values: Sequence[bytes]) -> pa.Array:
    """TIMESTAMP: zeros may be finer than microseconds, nothing else."""
    return truncate_timestamps(refuse_finer(decode_strings(values)))


def decode_decimals(values: Sequence[bytes]) -> pa.Array:
    """numeric of the PostgreSQL dialect, of those values that DECIMAL(38, 9) has. Raises
    LossyNumericError for any other: NaN, more than 29 digits before the point, 9 behind it."""
    return convert_decimals(decode_strings(values))


def convert_decimals(texts: pa.Array) -> pa.Array:
    """As ``decode_decimals``, of texts."""
    if (wide := find_wide(texts)) is not None:
        raise LossyNumericError(
            f"the numeric {wide} does not fit into DECIMAL(38, 9); read such columns as text: name"
            " them in 'text_columns' of their table (of a Spark query: the option 'textColumns')"
        )
    return trim_scale(texts).cast(NUMERIC)


def trim_scale(texts: pa.Array) -> pa.Array:
    """Decimal texts without zeros at the end of a fraction."""
    shorter = pc.replace_substring_regex(texts, r"(\.\d*?)0+$", r"\1")
    return pc.replace_substring_regex(shorter, r"\.$", "")


def find_wide(texts: pa.Array) -> str | None:
    """A decimal text that DECIMAL(38, 9) does not have; None without one."""
    fits = pc.match_substring_regex(texts, FITS)
    wide = texts.filter(pc.invert(pc.fill_null(fits, True)))
    return wide[0].as_py() if len(wide) else None


def decode_bytes(values: Sequence[bytes]) -> pa.Array:
    """BYTES, and the messages of PROTO: base64 on the wire."""
    column = scan_cells(values)
    column.check_kind(TEXT)
    return base64_column.decode_base64(column.extract_payloads())


def make_float_decoder(target: pa.DataType) -> Decoder:
    """FLOAT64 and FLOAT32: numbers, or the words NaN, Infinity and -Infinity."""
    return lambda values: decode_numbers(scan_cells(values)).cast(target, safe=False)


def make_array_decoder(type_: Type, nanoseconds: Nanoseconds) -> Decoder:
    """ARRAY: the elements of all rows are decoded as one column."""
    assert type_.element is not None
    inner = choose_decoder(type_.element, nanoseconds)
    target = convert_type(type_, nanoseconds)

    def decode(values: Sequence[bytes]) -> pa.Array:
        lists = decode_lists(scan_cells(values))
        _, offsets, content = lists.buffers()
        ends = np.frombuffer(offsets, np.int32)[1 : len(lists) + 1]
        items = parse_elements(content.to_pybytes()[: ends[-1]]) if len(ends) and content else []
        rows = pa.array(np.concatenate(([0], count_elements(items, ends))), pa.int32())
        arrays = pa.ListArray.from_arrays(rows, inner(items).cast(target.value_type))
        bitmap = lists.buffers()[0]
        return pa.Array.from_buffers(
            target, len(lists), [bitmap, arrays.buffers()[1]], children=[arrays.values]
        )

    return decode


def count_elements(items: Sequence[bytes], ends: NDArray[np.int32]) -> NDArray[np.int64]:
    """How many elements lie before each end, which counts bytes of ListValues."""
    if isinstance(items, SentValues):
        # The head of an element is shorter than the elements before it: its value tells as well.
        return np.searchsorted(items.starts, ends)
    lengths = np.fromiter(map(len, items), np.int64, len(items))
    headers = 2 + sum((lengths >= step).astype(np.int64) for step in VARINT_STEPS)
    return np.searchsorted(np.cumsum(lengths + headers), ends, side="right")


DECODERS: dict[TypeCode, Decoder] = {
    TypeCode.BOOL: lambda values: decode_booleans(scan_cells(values)),
    TypeCode.INT64: make_cast_decoder(pa.int64()),
    TypeCode.FLOAT32: make_float_decoder(pa.float32()),
    TypeCode.FLOAT64: make_float_decoder(pa.float64()),
    TypeCode.NUMERIC: make_cast_decoder(NUMERIC),
    TypeCode.STRING: decode_strings,
    TypeCode.BYTES: decode_bytes,
    TypeCode.DATE: make_cast_decoder(pa.date32()),
    TypeCode.JSON: decode_strings,
    TypeCode.UUID: decode_strings,
    TypeCode.INTERVAL: decode_strings,
    TypeCode.PG_NUMERIC: decode_decimals,
    TypeCode.PG_JSONB: decode_strings,
    TypeCode.PROTO: decode_bytes,
    TypeCode.ENUM: make_cast_decoder(pa.int64()),
}

TIMESTAMP_DECODERS: dict[Nanoseconds, Decoder] = {
    Nanoseconds.TRUNCATE: decode_timestamps,
    Nanoseconds.REFUSE: decode_exact_timestamps,
    Nanoseconds.STRING: decode_strings,
}

KEY_DECODERS: dict[Nanoseconds, Decoder] = {
    Nanoseconds.TRUNCATE: lambda values: normalize_timestamps(decode_strings(values)),
    Nanoseconds.REFUSE: lambda values: normalize_timestamps(refuse_finer(decode_strings(values))),
    Nanoseconds.STRING: decode_strings,
}
