"""Change records as PartialResultSet messages: several in one, or one in several."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from emulator import limits
from emulator.engine.change_streams.reading import Place
from emulator.errors import invalid_argument
from emulator.sql.change_streams import CHANGE_RECORD
from emulator.values.types import STRING
from emulator.wire.change_records import encode_record
from emulator.wire.encoding import RowEncoder
from emulator.wire.record_encoding import frame_change_record
from emulator.wire.results import MessageWriter

TOKEN_LAYOUT = struct.Struct(">4sqq")
MAGIC = b"swc1"


class RecordWriter:
    """Puts records together to messages, and cuts those that are too long for one."""

    def __init__(self, as_message: bool, metadata: bytes) -> None:
        self._as_message = as_message
        self._encoder = RowEncoder([STRING if as_message else CHANGE_RECORD])
        self._writer = MessageWriter(self._encoder, metadata, limits.PIECE_BYTES)
        self._place: Place | None = None

    @property
    def full(self) -> bool:
        """Whether the next message has reached its size."""
        return self._writer.size >= limits.CHUNK_BYTES

    def add(self, place: Place, text: str) -> Iterator[bytes]:
        """A record goes into the next message; gives the messages that had to go out first."""
        if self._as_message:
            text = encode_record(text)
            data = self._encoder.encode([(text,)])
        else:
            data = frame_change_record(text)
        if len(data) <= limits.PIECE_BYTES:
            self._writer.add(data)
        else:
            if self._writer.size:
                yield self.flush()
            yield from self._writer.cut_row((text,))
        self._place = place

    def flush(self) -> bytes:
        """The message with what was added, and the token of the last record."""
        token = TOKEN_LAYOUT.pack(MAGIC, *self._place) if self._place else b""
        return self._writer.flush(token)


def parse_token(token: bytes) -> Place | None:
    """Where a broken stream resumes."""
    if not token:
        return None
    try:
        magic, micros, number = TOKEN_LAYOUT.unpack(token)
    except struct.error as error:
        raise invalid_argument("Invalid resume token.") from error
    if magic != MAGIC:
        raise invalid_argument("Invalid resume token.")
    return micros, number
