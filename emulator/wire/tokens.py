"""Resume and partition tokens: everything that is needed to go on, in opaque bytes."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from emulator.errors import invalid_argument

LAYOUT = struct.Struct(">4sqqI")
MAGIC = b"swr1"


@dataclass(frozen=True, slots=True)
class Resume:
    """A place in a stream: its read timestamp, the rows before it, and their checksum."""

    read_timestamp_micros: int = 0
    rows: int = 0
    checksum: int = 0

    def to_bytes(self) -> bytes:
        """The token that the client sends back."""
        return LAYOUT.pack(MAGIC, self.read_timestamp_micros, self.rows, self.checksum)

    @classmethod
    def from_bytes(cls, token: bytes) -> Resume:
        """Reads a token. Raises INVALID_ARGUMENT for one that is not ours."""
        try:
            magic, micros, rows, checksum = LAYOUT.unpack(token)
        except struct.error as error:
            raise invalid_argument("Invalid resume token.") from error
        if magic != MAGIC or rows < 0 or micros < 0:
            raise invalid_argument("Invalid resume token.")
        return cls(micros, rows, checksum)
