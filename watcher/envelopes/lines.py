"""The messages of an envelope as lines of JSON, for files and the standard output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from watcher.captures import Changed
from watcher.envelopes.batches import try_by_column
from watcher.envelopes.message import Envelope, Message
from watcher.envelopes.plain import Plain
from watcher.model.change import Change


@dataclass(frozen=True, slots=True)
class JsonLines:
    """A line is a value. In formats with a separate key, it is an object of ``key`` and ``value``,
    so that a tombstone is a line, too."""

    envelope: Envelope = field(default_factory=Plain)

    def encode(self, change: Change) -> Iterator[str]:
        """The lines of a change. Raises EnvelopeError if the change lacks something."""
        for message in self.envelope.encode(change):
            yield self._line(message)

    def encode_rows(self, rows: Changed, database: str) -> bytes | None:
        """The lines of a batch, each with its newline; None where they are to be written change by
        change, as ``try_by_column``."""
        messages = try_by_column(rows, database, self.envelope)
        return None if messages is None else self.join(messages)

    def join(self, messages: pa.RecordBatch) -> bytes:
        """The lines of messages, rows of ``watcher.envelopes.batches.MESSAGE``."""
        value = pc.fill_null(messages.column("value"), b"null")
        if not self.envelope.has_key:
            return join_lines(value)
        key = pc.fill_null(messages.column("key"), b"null")
        return join_lines(b'{"key":', key, b',"value":', value, b"}")

    def encode_resolved(self, micros: int) -> Iterator[str]:
        """The line that says that every change up to this timestamp precedes it, if there is
        one."""
        for message in self.envelope.encode_resolved(micros):
            yield self._line(message)

    def _line(self, message: Message) -> str:
        if self.envelope.has_key:
            return f'{{"key":{decode_part(message.key)},"value":{decode_part(message.value)}}}'
        return decode_part(message.value)


def decode_part(part: bytes | None) -> str:
    """A key or a value, which is JSON already."""
    return "null" if part is None else part.decode()


def join_lines(*parts: pa.Array | bytes) -> bytes:
    """The lines of a batch from their parts; each ends with a newline."""
    wide = pa.large_binary()  # all lines together may have more than 2 GB
    columns = [pa.scalar(p, wide) if isinstance(p, bytes) else p.cast(wide) for p in parts]
    newline, nothing = pa.scalar(b"\n", wide), pa.scalar(b"", wide)
    lines = pc.binary_join_element_wise(*columns, newline, nothing)
    flattened = pc.binary_join(pa.LargeListArray.from_arrays([0, len(lines)], lines), nothing)
    text: bytes = flattened[0].as_py()
    return text
