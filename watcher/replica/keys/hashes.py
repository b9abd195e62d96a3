"""Keys of rows as numbers of 122 bits, column by column.

A key is the words of its columns, 32 bits each, one after another; these are the coefficients of a
polynomial, whose value at two random points modulo 2^61 - 1 is the hash. Two different keys of n
words have the same hash with a probability of (n / 2^61)^2 at most, whatever the keys are, because
nobody who chooses keys knows the points: with 10^9 keys of 100 words below 10^-15 for all of them.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from watcher.model.errors import ReplicaError
from watcher.spanner.key_values import identify_column

BITS = 61
PRIME = (1 << BITS) - 1
WORD, WORD_BYTES = 32, 4
LOW = np.uint64((1 << WORD) - 1)
MASKS = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF], np.uint32)
"""The bytes of a word that belong to a text of which 0 to 4 are left."""
BATCH_ROWS = 16_384
"""As many as the caches of a processor hold with all that is computed of them."""
Words = NDArray[np.uint64]


def draw_points() -> tuple[int, int]:
    """Two points at which keys are hashed."""
    return (secrets.randbelow(PRIME - 1) + 1, secrets.randbelow(PRIME - 1) + 1)


def hash_keys(rows: pa.RecordBatch | pa.Table, points: tuple[int, int]) -> tuple[Words, Words]:
    """The hashes of keys, whose columns are all those of ``rows``. Values that Spanner's keys take
    for the same have the same: NULL, NaN, -0.0 and 0.0."""
    parts = [hash_batch(batch, points) for batch in split_batches(rows)]
    first, second = (
        np.concatenate([part[number] for part in parts]) if parts else np.empty(0, np.uint64)
        for number in (0, 1)
    )
    return first, second


def split_batches(rows: pa.RecordBatch | pa.Table) -> Sequence[pa.RecordBatch]:
    """Rows as small batches."""
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    batches: Sequence[pa.RecordBatch] = table.to_batches(max_chunksize=BATCH_ROWS)
    return batches


def hash_batch(batch: pa.RecordBatch, points: tuple[int, int]) -> tuple[Words, Words]:
    """The same of a batch."""
    hashes = [np.ones(batch.num_rows, np.uint64) for _ in points]
    for column in batch.columns:
        for rows, words in iterate_words(column):
            for values, point in zip(hashes, points, strict=True):
                if rows is None:
                    values[:] = add_modulo(multiply_modulo(values, point), words)
                else:
                    values[rows] = add_modulo(multiply_modulo(values[rows], point), words)
    return hashes[0], hashes[1]


def iterate_words(column: pa.Array) -> Iterator[tuple[NDArray[np.intp] | None, Words]]:
    """The words of a column, one of each row at a time, with the rows that have it (None: all).
    The first one says whether the cell is NULL, and how long it is: no key begins another one."""
    type_ = column.type
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        yield from iterate_text_words(column)
    elif pa.types.is_boolean(type_) or pa.types.is_integer(type_):
        yield from iterate_fixed_words(column.cast(pa.int64()), 2)
    elif pa.types.is_floating(type_):
        yield from iterate_fixed_words(identify_column(column), type_.bit_width // WORD)
    elif pa.types.is_decimal(type_) or pa.types.is_timestamp(type_) or pa.types.is_date32(type_):
        yield from iterate_fixed_words(column, type_.bit_width // WORD)
    else:
        raise ReplicaError(f"a key has a column of type {type_}, which no key of Spanner has")


def iterate_fixed_words(column: pa.Array, count: int) -> Iterator[tuple[None, Words]]:
    """The words of values that all have as many."""
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    yield None, valid.astype(np.uint64)
    data: Any = np.frombuffer(column.buffers()[1] or b"", np.uint32)
    cells = data[column.offset * count : (column.offset + len(column)) * count]
    for words in cells.reshape(len(column), count).T:
        yield None, np.where(valid, words, 0).astype(np.uint64)


def iterate_text_words(column: pa.Array) -> Iterator[tuple[NDArray[np.intp] | None, Words]]:
    """The words of texts: the length, then four bytes at a time."""
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    ends: Any = np.frombuffer(column.buffers()[1] or bytes(4), np.int32).astype(np.int64)
    starts = ends[column.offset : column.offset + len(column)]
    ends = ends[column.offset + 1 : column.offset + len(column) + 1]
    lengths = np.where(valid, ends - starts, 0)
    yield None, np.where(valid, lengths + 1, 0).astype(np.uint64)
    rows = np.flatnonzero(lengths)
    if not len(rows):
        return
    first = int(starts[rows[0]])
    data = bytes(memoryview(column.buffers()[2])[first : int(ends[rows[-1]])]) + bytes(WORD_BYTES)
    # A word at each byte.
    every = np.ndarray(len(data) - WORD_BYTES, "<u4", data, strides=(1,))
    offset = 0
    while len(rows):
        left = np.minimum(lengths[rows] - offset, WORD_BYTES)
        words = every[starts[rows] + (offset - first)] & MASKS[left]
        yield (None if len(rows) == len(column) else rows), words.astype(np.uint64)
        offset += WORD_BYTES
        rows = rows[lengths[rows] > offset]


def multiply_modulo(values: Words, point: int) -> Words:
    """Products modulo the prime, of factors below it: by halves of 32 bits, because no product
    may have more than 64."""
    high, low = values >> np.uint64(WORD), values & LOW
    point_high, point_low = np.uint64(point >> WORD), np.uint64(point & (1 << WORD) - 1)
    middle = high * point_low + low * point_high
    lowest = low * point_low
    total = (high * point_high << np.uint64(2 * WORD - BITS)) + (middle >> np.uint64(BITS - WORD))
    total += (middle & np.uint64((1 << BITS - WORD) - 1)) << np.uint64(WORD)
    total += (lowest & np.uint64(PRIME)) + (lowest >> np.uint64(BITS))
    return reduce_modulo(total)


def add_modulo(values: Words, words: Words) -> Words:
    """Sums modulo the prime."""
    return reduce_modulo(values + words)


def reduce_modulo(values: Words) -> Words:
    """Numbers below 2^64 modulo the prime."""
    values = (values & np.uint64(PRIME)) + (values >> np.uint64(BITS))
    return np.where(values >= np.uint64(PRIME), values - np.uint64(PRIME), values)
