"""Spanner results -> Arrow columns: decoded by column, without a Python object per row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spanner_schema.model.column_types import Type, TypeCode
from watcher.model.errors import LossyNumericError
from watcher.model.value_types import Form, describe_values
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

ARROW: Mapping[Form, pa.DataType] = {
    Form.BOOL: pa.bool_(),
    Form.INTEGER: pa.int64(),
    Form.FLOAT32: pa.float32(),
    Form.FLOAT64: pa.float64(),
    Form.NUMERIC: NUMERIC,
    Form.WIDE_NUMERIC: NUMERIC,
    Form.TEXT: pa.string(),
    Form.BYTES: pa.binary(),
    Form.DATE: pa.date32(),
    Form.TIMESTAMP: TIMESTAMP,
    Form.JSON: pa.string(),
}


def convert_type(type_: Type, nanoseconds: Nanoseconds = Nanoseconds.TRUNCATE) -> pa.DataType:
    """The Arrow type of a Spanner type. Raises UnsupportedTypeError."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        return pa.list_(convert_type(type_.element, nanoseconds))
    if type_.code is TypeCode.TIMESTAMP and nanoseconds is Nanoseconds.STRING:
        return pa.string()
    return ARROW[describe_values(type_).form]


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
    form = describe_values(type_).form
    return lambda values: convert_sent(scan_sent(values, form), form, nanoseconds, of_key)


def scan_sent(values: Sequence[bytes], form: Form) -> pa.Array:
    """Values in Spanner's messages as booleans, doubles or texts; base64 as binary."""
    cells = scan_cells(values)
    match form:
        case Form.BOOL:
            return decode_booleans(cells)
        case Form.FLOAT32 | Form.FLOAT64:
            return decode_numbers(cells)
        case Form.BYTES:
            cells.check_kind(TEXT)
            return cells.extract_payloads()
        case (Form.INTEGER | Form.NUMERIC | Form.WIDE_NUMERIC) | (
            Form.DATE | Form.TIMESTAMP | Form.TEXT | Form.JSON
        ):
            return decode_texts(cells)
    assert_never(form)


def convert_sent(
    sent: pa.Array, form: Form, nanoseconds: Nanoseconds, of_key: bool = False
) -> pa.Array:
    """A column of values as they were sent (booleans, doubles, texts) in the type that Arrow keeps
    them in."""
    match form:
        case Form.BOOL | Form.FLOAT64 | Form.TEXT | Form.JSON:
            return sent
        case Form.INTEGER | Form.DATE | Form.NUMERIC:
            return sent.cast(ARROW[form])
        case Form.FLOAT32:
            return sent.cast(pa.float32(), safe=False)
        case Form.WIDE_NUMERIC:
            return convert_decimals(sent)
        case Form.BYTES:
            return base64_column.decode_base64(sent.cast(pa.binary()))
        case Form.TIMESTAMP:
            return convert_timestamps(sent, nanoseconds, of_key)
    assert_never(form)


def convert_timestamps(texts: pa.Array, nanoseconds: Nanoseconds, of_key: bool) -> pa.Array:
    """TIMESTAMPs as Arrow's or as texts; of a key as normalized texts."""
    if nanoseconds is Nanoseconds.STRING:
        return texts
    if nanoseconds is Nanoseconds.REFUSE:
        texts = refuse_finer(texts)
    return normalize_timestamps(texts) if of_key else truncate_timestamps(texts)


def decode_strings(values: Sequence[bytes]) -> pa.Array:
    """STRING, JSON, UUID."""
    return decode_texts(scan_cells(values))


def decode_timestamps(values: Sequence[bytes]) -> pa.Array:
    """TIMESTAMP: what is finer than microseconds is cut off."""
    return truncate_timestamps(decode_strings(values))


def convert_decimals(texts: pa.Array) -> pa.Array:
    """numeric of the PostgreSQL dialect, of those values that DECIMAL(38, 9) has. Raises
    LossyNumericError for any other: NaN, more than 29 digits before the point, 9 behind it."""
    with suppress(pa.ArrowInvalid):
        return texts.cast(NUMERIC)
    # A fraction may end with zeros that are too many for Arrow.
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
