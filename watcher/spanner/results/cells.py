"""The values of one column as Arrow buffers: kinds, NULLs and payloads, by vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.struct_pb2 import Value
from numpy.typing import NDArray

from watcher.errors import WatcherError

Bytes = NDArray[np.uint8]
Lengths = NDArray[np.int64]
Mask = NDArray[np.bool_]

# The first byte of a serialized google.protobuf.Value: the tag of the field that is set.
NULL, NUMBER, TEXT, BOOLEAN, LIST = 0x08, 0x11, 0x1A, 0x20, 0x32

# A payload of so many bytes or more has a length of one byte more before it (a varint).
VARINT_STEPS = (1 << 7, 1 << 14, 1 << 21, 1 << 28)


class UnexpectedValueError(WatcherError):
    """Spanner sent a value that the type of its column does not have."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Serialized values of a column. ``starts`` and ``lengths`` are of their bytes in ``data``."""

    raw: pa.Array
    data: Bytes
    starts: Lengths
    lengths: Lengths
    kinds: Bytes

    @property
    def nulls(self) -> Mask:
        """Which values are NULL."""
        nulls: Mask = self.kinds == NULL
        return nulls

    def check_kind(self, *kinds: int) -> None:
        """Raises UnexpectedValueError when a value is neither NULL nor of one of the kinds."""
        known = self.nulls
        for kind in kinds:
            known = known | (self.kinds == kind)
        if not known.all():
            kind = int(self.kinds[~known][0])
            raise UnexpectedValueError(f"Spanner sent a value of the wire kind {kind:#04x}")


def scan_cells(values: Sequence[bytes]) -> Cells:
    """The values of a column. Values that are not in the usual encoding are encoded again first."""
    column = scan_canonical(values)
    if column is None:
        column = scan_canonical([Value.FromString(value).SerializeToString() for value in values])
    if column is None:
        raise UnexpectedValueError("Spanner sent a value without a kind")
    return column


def scan_canonical(values: Sequence[bytes]) -> Cells | None:
    """The values, or None when one is not in the usual encoding."""
    raw = pa.array(values, pa.binary())
    _, offsets, content = raw.buffers()
    bounds = np.frombuffer(offsets, np.int32)[: len(raw) + 1].astype(np.int64)
    data = np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
    data = data[: bounds[-1]]
    starts, lengths = bounds[:-1], np.diff(bounds)
    if len(raw) and lengths.min() < 2:
        return None
    column = Cells(raw, data, starts, lengths, data[starts])
    return column if is_canonical(column) else None


def is_canonical(column: Cells) -> bool:
    """Whether every value has the length that its kind and its own length byte say."""
    second = column.data[column.starts + 1]
    kinds, lengths = column.kinds, column.lengths
    sized = (kinds == TEXT) | (kinds == LIST)
    header = header_lengths(lengths)
    said = (second & 0x7F) == ((lengths - header) & 0x7F)
    said &= (second >= 0x80) == (header > 2)
    right = np.where(sized, said, False)
    right |= (kinds == NULL) & (lengths == 2) & (second == 0)
    right |= (kinds == BOOLEAN) & (lengths == 2) & (second <= 1)
    right |= (kinds == NUMBER) & (lengths == 9)
    return bool(right.all())


def header_lengths(lengths: Lengths) -> Lengths:
    """How many bytes the tag and the length of a string or list take, from its whole length."""
    sizes = np.full(len(lengths), 2, np.int64)
    for extra, step in enumerate(VARINT_STEPS):
        if not len(lengths) or lengths.max() < step + 3 + extra:
            break
        sizes += lengths >= step + 3 + extra
    return sizes


def extract_payloads(column: Cells) -> pa.Array:
    """The content of strings and lists as binary; NULL where the value is NULL."""
    header = header_lengths(column.lengths)
    shortest = int(header.min(initial=2))
    payloads = cut_heads(column.raw, shortest)
    for length in range(shortest + 1, int(header.max(initial=2)) + 1):
        longer = pa.array(header >= length)
        payloads = pc.if_else(longer, cut_heads(column.raw, length), payloads)
    nulls = column.nulls
    return pc.if_else(pa.array(nulls), None, payloads) if nulls.any() else payloads


def cut_heads(values: pa.Array, length: int) -> pa.Array:
    """Values without their first bytes."""
    return pc.binary_replace_slice(values, 0, length, b"")


def decode_numbers(column: Cells) -> pa.Array:
    """Doubles; NaN and the infinities come as words."""
    column.check_kind(NUMBER, TEXT)
    values = np.zeros(len(column.kinds), np.float64)
    numeric = column.kinds == NUMBER
    places = column.starts[numeric][:, None] + np.arange(1, 9)
    values[numeric] = column.data[places].view("<f8").reshape(-1)
    is_word = column.kinds == TEXT
    if is_word.any():
        words = extract_payloads(column).filter(pa.array(is_word)).cast(pa.string())
        values[is_word] = words.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return pa.array(values, pa.float64(), mask=column.nulls)


def decode_booleans(column: Cells) -> pa.Array:
    """True and False."""
    column.check_kind(BOOLEAN)
    return pa.array(column.data[column.starts + 1] == 1, mask=column.nulls)


def decode_texts(column: Cells) -> pa.Array:
    """Strings. Raises pyarrow's ArrowInvalid for what is not UTF-8."""
    column.check_kind(TEXT)
    return extract_payloads(column).cast(pa.string())


def decode_lists(column: Cells) -> pa.Array:
    """Each list as the bytes of its ListValue."""
    column.check_kind(LIST)
    return extract_payloads(column)
