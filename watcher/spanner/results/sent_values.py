"""Many serialized values in one buffer, found by vectors: no Python object a value.

A field of a message is its tag, its length, and its bytes. Every byte that equals the tag may begin
one. Those where a value of the usual encoding follows are kept, and the whole buffer must be these
fields and nothing else, one after the other: what has passed that is what a parser would find.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from watcher.model.errors import WatcherError

Bytes = NDArray[np.uint8]
Lengths = NDArray[np.int64]
Mask = NDArray[np.bool_]

# The first byte of a serialized google.protobuf.Value: the tag of the field that is set.
NULL, NUMBER, TEXT, BOOLEAN, LIST = 0x08, 0x11, 0x1A, 0x20, 0x32

# A payload of so many bytes or more has a length of one byte more before it (a varint).
VARINT_STEPS = (1 << 7, 1 << 14, 1 << 21, 1 << 28)
VARINT_BYTES_MAX = len(VARINT_STEPS) + 1
PADDING = bytes(16)
"""Behind the fields of a buffer, so that what looks like the head of a field can be read to its
end."""

SHORT_MAX = 2 + VARINT_STEPS[0] - 1
"""The longest string or list, tag and length included, whose length takes one byte."""
SIZED = 0xFF
SIZES = np.zeros(256, np.uint8)
"""The length of a value by its first byte; ``SIZED`` where it says so itself."""
SIZES[[NULL, BOOLEAN]] = 2
SIZES[NUMBER] = 9
SIZES[[TEXT, LIST]] = SIZED
SECOND_MAX = np.full(256, 0xFF, np.uint8)
"""The largest second byte of a value by its first one."""
SECOND_MAX[[NULL, BOOLEAN]] = 0, 1
UNBOUNDED = 1 << 40
FALSE_HEADS_MAX = 10_000


class UnexpectedValueError(WatcherError):
    """Spanner sent a value that the type of its column does not have."""


@dataclass(frozen=True, slots=True, eq=False)
class SentValues(Sequence[bytes]):
    """Values in the usual encoding. ``starts`` and ``lengths`` are of their bytes in ``data``;
    ``kinds`` are their first bytes."""

    data: Bytes
    starts: Lengths
    lengths: Lengths
    kinds: Bytes

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> SentValues: ...
    def __getitem__(self, index: int | slice) -> bytes | SentValues:
        if isinstance(index, slice):
            return SentValues(self.data, self.starts[index], self.lengths[index], self.kinds[index])
        start = int(self.starts[index])
        return self.data[start : start + int(self.lengths[index])].tobytes()

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[bytes]:
        whole = self.data.tobytes()
        for start, length in zip(self.starts.tolist(), self.lengths.tolist(), strict=True):
            yield whole[start : start + length]

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

    def select(self, chosen: Mask) -> SentValues:
        """Some of the values."""
        return SentValues(self.data, self.starts[chosen], self.lengths[chosen], self.kinds[chosen])

    def extract_payloads(self) -> pa.Array:
        """The content of strings and lists as binary; NULL where the value is NULL."""
        count = len(self.starts)
        if not count:
            return pa.array([], pa.binary())
        # Every other string of this array is what lies between two contents.
        offsets = np.empty(2 * count, np.int32)
        offsets[::2] = self.starts + header_lengths(self.lengths)
        offsets[1::2] = self.starts + self.lengths
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        everything = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers)
        nulls = self.nulls
        indexes = np.arange(0, 2 * count - 1, 2)
        return everything.take(pa.array(indexes, mask=nulls if nulls.any() else None))


def find_values(data: Bytes, tag: int) -> SentValues | None:
    """The values of fields with a tag, which are all there is in ``data`` before its padding.

    None where something else is there too, or a value is not in the usual encoding.
    """
    end = len(data) - len(PADDING)
    heads = np.flatnonzero(data[:end] == tag)
    starts, lengths = read_heads(data, heads)
    kinds, usual = check_encoding(data, starts, lengths)
    if not usual.all():
        heads, starts, lengths, kinds = heads[usual], starts[usual], lengths[usual], kinds[usual]
    chained = chain_fields(heads, starts + lengths, end)
    if chained is None:
        return None
    values = SentValues(data, starts, lengths, kinds)
    if len(chained) == len(values):
        return values
    return SentValues(data, starts[chained], lengths[chained], kinds[chained])


def read_heads(data: Bytes, heads: Lengths) -> tuple[Lengths, Lengths]:
    """Where the values of fields start, and their lengths; ``UNBOUNDED`` for what is no
    length."""
    lengths = data[heads + 1].astype(np.int64)
    starts = heads + 2
    longer = np.flatnonzero(lengths >= VARINT_STEPS[0])
    lengths[longer] &= 0x7F
    for shift in range(7, 7 * VARINT_BYTES_MAX, 7):
        if not len(longer):
            break
        more = data[starts[longer]]
        lengths[longer] |= (more & 0x7F).astype(np.int64) << shift
        starts[longer] += 1
        longer = longer[more >= VARINT_STEPS[0]]
    lengths[longer] = UNBOUNDED
    return starts, lengths


def check_encoding(data: Bytes, starts: Lengths, lengths: Lengths) -> tuple[Bytes, Mask]:
    """The first bytes of values, and which values are in the usual encoding: as long as their kind
    and their own length say."""
    kinds, second = data[starts], data[starts + 1]
    expected = SIZES[kinds]
    sized = expected == SIZED
    usual = np.where(sized, second == lengths - 2, expected == lengths)
    usual &= second <= SECOND_MAX[kinds]
    longer = np.flatnonzero(sized & (lengths > SHORT_MAX))
    if len(longer):
        usual[longer] = check_long_encoding(data, starts[longer], lengths[longer])
    return kinds, usual


def check_long_encoding(data: Bytes, starts: Lengths, lengths: Lengths) -> Mask:
    """Which strings and lists, longer than ``SHORT_MAX``, say their own length."""
    heads = header_lengths(lengths)
    content = lengths - heads
    usual = np.ones(len(starts), bool)
    longer = np.arange(len(starts))
    for index in range(VARINT_BYTES_MAX):
        right = data[starts[longer] + 1 + index] == encode_varint_byte(
            content[longer], heads[longer], index
        )
        usual[longer[~right]] = False
        longer = longer[right & (heads[longer] > 2 + index)]
        if not len(longer):
            break
    return usual


def encode_varint_byte(content: Lengths, heads: Lengths, index: int) -> Lengths:
    """One byte of the lengths of contents, of heads that are so long."""
    bits = (content >> 7 * index) & 0x7F
    return bits + ((heads > 2 + index) * np.int64(0x80))


def header_lengths(lengths: Lengths) -> Lengths:
    """How many bytes the tag and the length of a string or list take, from its whole length."""
    sizes = np.full(len(lengths), 2, np.int64)
    longest = int(np.max(lengths, initial=0))
    for extra, step in enumerate(VARINT_STEPS):
        if longest < step + 3 + extra:
            break
        sizes += lengths >= step + 3 + extra
    return sizes


def chain_fields(heads: Lengths, ends: Lengths, end: int) -> Lengths | None:
    """Which of the fields follow each other without a gap from 0 to ``end``; None when none do.

    What only looks like a field lies within another one.
    """
    if not len(heads):
        return heads if end == 0 else None
    if heads[0] != 0:
        return None
    breaks = np.flatnonzero(heads[1:] != ends[:-1])
    if not len(breaks):
        return heads if ends[-1] == end else None
    if len(breaks) > FALSE_HEADS_MAX:
        return None
    kept = np.ones(len(heads), bool)
    reached = 0
    for index in breaks.tolist():
        if index < reached:
            continue
        reached = int(np.searchsorted(heads, ends[index]))
        kept[index + 1 : reached] = False
        if reached == len(heads):
            break
        if heads[reached] != ends[index]:
            return None
    indexes = np.flatnonzero(kept)
    return indexes if ends[indexes[-1]] == end else None
