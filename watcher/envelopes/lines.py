"""The messages of an envelope as lines of JSON, for files and the standard output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

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
