"""Change records as PartialResultSet messages: several in one, or one in several."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from emulator import limits
from emulator.engine.change_streams.reading import Place
from emulator.errors import invalid_argument
from emulator.sql.change_streams import CHANGE_RECORD
from emulator.wire.encoding import RowEncoder
from emulator.wire.record_encoding import frame_change_record
from emulator.wire.results import MessageWriter
from spanner_schema.model.column_types import Type

TOKEN_LAYOUT = struct.Struct(">4sqq")
MAGIC = b"swc1"


@dataclass(frozen=True, slots=True)
class OtherForm:
    """The type of a record's column, and what makes its stored form of a stored ChangeRecord."""

    type: Type
    show: Callable[[str], str]


class RecordWriter:
    """Puts records together to messages, and cuts those that are too long for one."""

    def __init__(self, metadata: bytes | None, other: OtherForm | None = None) -> None:
        """``metadata`` as for ``MessageWriter``. ``other``: how records are shown that are not a
        ``ChangeRecord``."""
        self._show = other.show if other is not None else None
        self._encoder = RowEncoder([other.type if other is not None else CHANGE_RECORD])
        self._writer = MessageWriter(self._encoder, metadata, limits.PIECE_BYTES)
        self._place: Place | None = None

    @property
    def full(self) -> bool:
        """Whether the next message has reached its size."""
        return self._writer.size >= limits.CHUNK_BYTES

    def add(self, place: Place, text: str) -> Iterator[bytes]:
        """A record goes into the next message; gives the messages that had to go out first."""
        if self._show is not None:
            text = self._show(text)
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
