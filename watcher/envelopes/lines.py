"""The messages of an envelope as lines of JSON: what files and the standard output take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from watcher.change import Change
from watcher.envelopes.message import Envelope, Message
from watcher.envelopes.plain import Plain


@dataclass(frozen=True, slots=True)
class JsonLines:
    """A line is a value; in formats whose key stands apart, an object of ``key`` and ``value``, so
    that a tombstone is a line, too."""

    envelope: Envelope = field(default_factory=Plain)

    def of(self, change: Change) -> Iterator[str]:
        """The lines of a change. Raises EnvelopeError when the change lacks something."""
        for message in self.envelope.encode(change):
            yield self._line(message)

    def resolved(self, micros: int) -> Iterator[str]:
        """What says that every change up to this timestamp stands above, if the format can."""
        for message in self.envelope.resolved(micros):
            yield self._line(message)

    def _line(self, message: Message) -> str:
        if self.envelope.keyed:
            return f'{{"key":{text(message.key)},"value":{text(message.value)}}}'
        return text(message.value)


def text(part: bytes | None) -> str:
    """A key or a value, which are JSON already."""
    return "null" if part is None else part.decode()
