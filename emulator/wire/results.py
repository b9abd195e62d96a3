"""Results as a stream of PartialResultSet messages, cut into chunks, also inside long values."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import grpc

from emulator import limits
from emulator.errors import SpannerError
from emulator.values.requests import ResultRows
from emulator.wire.encoding import (
    Row,
    RowEncoder,
    delimit,
    encode_value,
    frame_value,
    list_value,
    members,
)
from emulator.wire.tokens import Resume
from emulator.wrong import Wrong, is_wrong
from spanner_schema.model.column_types import Type, TypeCode

METADATA, CHUNKED, TOKEN, STATS, LAST = (
    b"\x0a",
    b"\x18\x01",
    b"\x22",
    b"\x2a",
    b"\x48\x01",
)
"""The fields of PartialResultSet with their wire types."""

NOT_CHUNKABLE = {TypeCode.BOOL, TypeCode.FLOAT32, TypeCode.FLOAT64}
NESTED = {TypeCode.ARRAY, TypeCode.STRUCT}


class MessageWriter:
    """Puts the values of rows together to messages, which end on a row unless a row is cut."""

    def __init__(self, encoder: RowEncoder, metadata: bytes | None, piece_bytes: int) -> None:
        """``metadata`` is in the first message; None where a stream continues: whoever resumes it
        has them, and Google's client in Rust fails when they come again."""
        self._encoder = encoder
        self._piece_bytes = piece_bytes
        self._head = b"" if metadata is None else delimit(METADATA, metadata)
        self._pending: list[bytes] = []
        self.size = 0
        """The bytes of the rows of the next message."""

    def add(self, values: bytes) -> None:
        """The values of whole rows go into the next message."""
        self._pending.append(values)
        self.size += len(values)

    def flush(self, token: bytes, ending: bytes = b"") -> bytes:
        """A message that ends on a row, with a resume token unless that is empty."""
        shown = delimit(TOKEN, token) if token else b""
        message = b"".join((self._head, *self._pending, shown, ending))
        self._head, self.size = b"", 0
        self._pending.clear()
        return message

    def cut_row(self, row: Row) -> Iterator[bytes]:
        """All messages of a long row but the last, whose values are left for the next message.
        What was added before must be flushed."""
        size = self._piece_bytes
        room, message = size, bytearray()
        values = self._encoder.values(row)
        for type_, stored, inside in zip(self._encoder.types, row, values, strict=True):
            if len(inside) <= room:
                message += frame_value(inside)
                room -= len(inside)
                continue
            *pieces, last = cut_value(type_, stored, inside, room, size)
            for piece in pieces:
                yield self._head + bytes(message) + frame_value(piece) + CHUNKED
                self._head = b""
                message.clear()
            message += frame_value(last)
            room = size - len(last)
        self.add(bytes(message))


class ResultStream:
    """Encodes one result; without ``metadata`` where it continues. ``resume`` is how much of it
    the client has after the last whole chunk."""

    def __init__(
        self,
        rows: ResultRows,
        metadata: bytes | None,
        read_timestamp_micros: int,
        *,
        chunk_bytes: int = limits.CHUNK_BYTES,
        piece_bytes: int = limits.PIECE_BYTES,
        resumable: bool = True,
    ) -> None:
        self._rows = rows
        self._encoder = RowEncoder([c.type for c in rows.columns])
        self._writer = MessageWriter(self._encoder, metadata, piece_bytes)
        self._chunk_bytes = chunk_bytes
        self._piece_bytes = piece_bytes
        self._resumable = resumable
        self.resume = Resume(read_timestamp_micros)

    def skip(self, resume: Resume) -> None:
        """Passes over the rows that the client has. Raises when they are not the same rows."""
        if is_wrong(Wrong.RESUME_TOKEN):
            list(islice(self._rows.rows, resume.rows - 1))
            self.resume = resume
            return
        left, checksum = resume.rows, 0
        while left > 0:
            rows = list(islice(self._rows.rows, min(left, limits.ROWS_AT_ONCE_MAX)))
            if not rows:
                break
            left -= len(rows)
            checksum = zlib.crc32(self._encoder.encode(rows), checksum)
        if left or checksum != resume.checksum:
            raise SpannerError(
                grpc.StatusCode.DATA_LOSS,
                "The stream cannot be resumed: its rows come in another order now. Add an ORDER BY "
                "or read again from the start.",
            )
        self.resume = resume

    def chunks(self, ending: Callable[[], bytes], *, rows_in_chunk_max: int = 0) -> Iterator[bytes]:
        """The messages; ``ending`` gives the fields of the last one, when all rows are read.

        ``rows_in_chunk_max`` makes small chunks (0: no limit beside their size).
        """
        most = rows_in_chunk_max or limits.ROWS_AT_ONCE_MAX
        at_once = min(limits.ROWS_AT_ONCE_MIN, most)
        while rows := list(islice(self._rows.rows, at_once)):
            data = self._encoder.encode(rows)
            if len(data) > 2 * self._chunk_bytes:
                yield from self._long_rows(rows)
                at_once = max(1, at_once // 4)
                continue
            self._keep(data, len(rows))
            if self._writer.size >= self._chunk_bytes or rows_in_chunk_max:
                yield self._flush()
            if at_once < most and len(data) * 2 < self._chunk_bytes:
                at_once = min(at_once * 2, most)
        yield self._flush(ending() + LAST)

    def _keep(self, data: bytes, rows: int) -> None:
        """Whole rows go into the next chunk."""
        self._writer.add(data)
        self._advance(data, rows)

    def _advance(self, data: bytes, rows: int) -> None:
        """The next token says that these rows were sent."""
        resume = self.resume
        checksum = zlib.crc32(data, resume.checksum)
        self.resume = Resume(resume.read_timestamp_micros, resume.rows + rows, checksum)

    def _flush(self, ending: bytes = b"") -> bytes:
        """A chunk that ends on a row."""
        return self._writer.flush(self.resume.to_bytes() if self._resumable else b"", ending)

    def _long_rows(self, rows: Sequence[Row]) -> Iterator[bytes]:
        """Rows that may be long, one by one; what is longer than a piece is cut."""
        for row in rows:
            data = self._encoder.encode([row])
            if len(data) <= self._piece_bytes:
                self._keep(data, 1)
            else:
                if self._writer.size:
                    yield self._flush()
                yield from self._writer.cut_row(row)
                self._advance(data, 1)
            if self._writer.size >= self._chunk_bytes:
                yield self._flush()


def cut_value(type_: Type, stored: object, inside: bytes, first: int, size: int) -> list[bytes]:
    """A Value in pieces that the client puts together; the first has less room."""
    if type_.code in NOT_CHUNKABLE or inside[:1] == b"\x08":
        return [inside]
    if type_.code not in NESTED:
        text = inside[text_start(inside) :]
        return [delimit(b"\x1a", piece) for piece in cut_text(text, first, size)]
    return cut_list(members(type_, stored), first, size)


def text_start(inside: bytes) -> int:
    """Where the text of a string Value begins: after the tag and the length."""
    position = 1
    while inside[position] & 128:
        position += 1
    return position + 1


def cut_text(text: bytes, first: int, size: int) -> list[bytes]:
    """UTF-8 in pieces that are UTF-8 themselves."""
    pieces: list[bytes] = []
    position, room = 0, max(first, 16)
    while position < len(text):
        end = min(position + room, len(text))
        while end < len(text) and text[end] & 0xC0 == 0x80:
            end -= 1
        pieces.append(text[position:end])
        position, room = end, size
    return pieces or [b""]


def cut_list(values: list[tuple[Type, object]], first: int, size: int) -> list[bytes]:
    """A list in pieces, also inside its members.

    The client joins the two members at a seam when they are of one kind: what follows a whole
    string or list begins with an empty one.
    """
    pieces: list[bytes] = []
    items: list[bytes] = []
    room = max(first, 16)
    for type_, stored in values:
        item = encode_value(type_, stored)
        parts = [item] if len(item) <= room else cut_value(type_, stored, item, room, size)
        for number, part in enumerate(parts):
            if number or (room < len(part) and items):
                seam = [] if number else EMPTY.get(items[-1][:1], [])
                pieces.append(list_value(items))
                items, room = list(seam), size
            items.append(part)
            room -= len(part)
    pieces.append(list_value(items))
    return pieces


EMPTY = {b"\x1a": [b"\x1a\x00"], b"\x32": [b"\x32\x00"]}
"""An empty string and an empty list, by the tag that they have as Values."""
