"""From the storage form to the wire bytes of protobuf values, written by hand.

A result's values are field 2 of PartialResultSet, each a Value message. Building those messages
object by object costs several times more than the query. Rows are encoded column by column, as text
where possible: as long as every value is ASCII, each byte of the framing is a character of Latin-1,
and one ``join`` and one ``encode`` make the bytes of some hundred rows.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, compress

from emulator.values.requests import Stored
from emulator.values.served_types import SERVED_TYPES, Sent
from spanner_schema.model.column_types import Type

Row = tuple[Stored, ...]
Column = Sequence[Stored]

VALUES_FIELD = b"\x12"
NULL = b"\x08\x00"
FALSE, TRUE = b"\x20\x00", b"\x20\x01"
HEADS_MADE = 1_024
NULL_TEXT, FALSE_TEXT, TRUE_TEXT = "\x12\x02\x08\x00", "\x12\x02\x20\x00", "\x12\x02\x20\x01"
NULL_VALUE = NULL_TEXT.encode()
NUMBER = b"\x12\x09\x11"
DOUBLE = struct.Struct("<d")

SHORT_VARINTS = [bytes((number,)) for number in range(1 << 7)]


def varint(number: int) -> bytes:
    """An unsigned number as protobuf writes it."""
    if number < 1 << 7:
        return SHORT_VARINTS[number]
    if number < 1 << 14:
        return bytes((number & 127 | 128, number >> 7))
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def delimit(tag: bytes, content: bytes) -> bytes:
    """A field with a length."""
    return tag + varint(len(content)) + content


def head_of_string(size: int) -> bytes:
    """The bytes before a string of so many bytes: field and length of the Value, field and length
    inside."""
    inner = varint(size)
    return VALUES_FIELD + varint(size + 1 + len(inner)) + b"\x1a" + inner


HEADS = [head_of_string(size) for size in range(HEADS_MADE)]
TEXT_HEADS = [head.decode("latin-1") for head in HEADS]


def float_value(number: float | str) -> bytes:
    """The inside of a Value for a FLOAT."""
    if isinstance(number, str):
        return delimit(b"\x1a", number.encode())
    if math.isinf(number):
        return delimit(b"\x1a", b"Infinity" if number > 0 else b"-Infinity")
    return b"\x11" + DOUBLE.pack(number)


def encode_value(type_: Type, stored: object) -> bytes:
    """The inside of a Value message; elements of arrays come in their JSON form."""
    if stored is None:
        return NULL
    match SERVED_TYPES[type_.code].sent:
        case Sent.BOOL:
            return TRUE if stored else FALSE
        case Sent.FLOAT:
            return float_value(stored if isinstance(stored, str) else float(str(stored)))
        case Sent.PARTS:
            return list_value(encode_elements(type_, stored))
        case Sent.ASCII | Sent.TEXT:
            return delimit(b"\x1a", str(stored).encode())
        case convert:
            return delimit(b"\x1a", convert(stored).encode())


def encode_elements(type_: Type, stored: object) -> list[bytes]:
    """The Values of an array's elements or a struct's fields."""
    return [encode_value(inner, item) for inner, item in members(type_, stored)]


def members(type_: Type, stored: object) -> list[tuple[Type, object]]:
    """An array's elements or a struct's fields, each with its type."""
    items = json.loads(stored) if isinstance(stored, str) else stored
    if not isinstance(items, list):
        raise TypeError(f"{type_.code.value} is stored as {type(stored).__name__}")
    if type_.element is not None:
        element = type_.element
        return [(element, item) for item in items]
    return [(field.type, item) for field, item in zip(type_.fields, items, strict=True)]


def list_value(values: Iterable[bytes]) -> bytes:
    """A Value that holds a list."""
    return delimit(b"\x32", b"".join([delimit(b"\x0a", item) for item in values]))


def frame_value(inside: bytes) -> bytes:
    """A Value as one of the values of a PartialResultSet."""
    return delimit(VALUES_FIELD, inside)


class RowEncoder:
    """Encodes rows of given column types."""

    def __init__(self, types: Sequence[Type]) -> None:
        self.types = tuple(types)
        self._text: list[Callable[[Column], list[str]]] | None = None
        columns = [text_column(type_) for type_ in self.types]
        if all(column is not None for column in columns):
            self._text = [column for column in columns if column is not None]
        self._bytes = [bytes_column(type_) for type_ in self.types]
        self._may_be_unicode = [SERVED_TYPES[type_.code].sent is Sent.TEXT for type_ in self.types]

    def encode(self, rows: Sequence[Row]) -> bytes:
        """The values fields of these rows, one after another."""
        if not self.types or not rows:
            return b""
        columns = list(zip(*rows, strict=True))
        if self._text is not None and (data := self._encode_text(self._text, columns)):
            return data
        pieces = [f(c) for f, c in zip(self._bytes, columns, strict=True)]
        return b"".join(chain.from_iterable(zip(*pieces, strict=True)))

    def _encode_text(
        self, encoders: Sequence[Callable[[Column], list[str]]], columns: Sequence[Column]
    ) -> bytes:
        """The rows by way of text; nothing when a value is long or not ASCII."""
        if not all(map(is_ascii, compress(columns, self._may_be_unicode))):
            return b""
        try:
            parts = [f(c) for f, c in zip(encoders, columns, strict=True)]
        except IndexError:
            return b""
        return "".join(chain.from_iterable(zip(*parts, strict=True))).encode("latin-1")

    def values(self, row: Row) -> list[bytes]:
        """The insides of one row's Values."""
        return [encode_value(type_, stored) for type_, stored in zip(self.types, row, strict=True)]


def text_column(type_: Type) -> Callable[[Column], list[str]] | None:
    """Encodes a column as text; None for types whose bytes are not text."""
    match SERVED_TYPES[type_.code].sent:
        case Sent.ASCII | Sent.TEXT:
            return plain_text
        case Sent.BOOL:
            return bool_text
        case Sent.FLOAT | Sent.PARTS:
            return None
        case convert:
            return partial(converted_text, convert)


def converted_text(convert: Callable[..., str], column: Column) -> list[str]:
    """What a function makes of the values."""
    heads = TEXT_HEADS
    return [NULL_TEXT if v is None else heads[len(text := convert(v))] + text for v in column]


def is_ascii(column: Column) -> bool:
    """Whether all strings of a column are ASCII."""
    return "".join(filter(None, column)).isascii()  # type: ignore[arg-type]


def plain_text(column: Column) -> list[str]:
    """Strings that are sent as they are stored."""
    heads = TEXT_HEADS
    return [NULL_TEXT if v is None else heads[len(v)] + v for v in column]  # type: ignore[arg-type, operator]


def bool_text(column: Column) -> list[str]:
    """BOOL."""
    return [NULL_TEXT if v is None else TRUE_TEXT if v else FALSE_TEXT for v in column]


def bytes_column(type_: Type) -> Callable[[Column], list[bytes]]:
    """Encodes a column of any type and any length."""
    match SERVED_TYPES[type_.code].sent:
        case Sent.ASCII | Sent.TEXT:
            return plain_bytes
        case Sent.FLOAT:
            return float_bytes
        case Sent.BOOL | Sent.PARTS:
            return lambda column: [frame_value(encode_value(type_, v)) for v in column]
        case convert:
            return lambda column: plain_bytes([None if v is None else convert(v) for v in column])


def float_bytes(column: Column) -> list[bytes]:
    """FLOAT64 and FLOAT32."""
    pack = DOUBLE.pack
    return [
        NUMBER + pack(v)
        if isinstance(v, float) and v - v == 0.0
        else frame_value(NULL if v is None else float_value(v if isinstance(v, str) else float(v)))
        for v in column
    ]


def plain_bytes(column: Column) -> list[bytes]:
    """Strings of any length and alphabet."""
    heads, made = HEADS, HEADS_MADE
    texts = [None if v is None else str(v).encode() for v in column]
    return [
        NULL_VALUE
        if t is None
        else (heads[len(t)] if len(t) < made else head_of_string(len(t))) + t
        for t in texts
    ]
