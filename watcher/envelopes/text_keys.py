"""Message keys that are a plain text, for readers that take keys as strings."""

from __future__ import annotations

from dataclasses import dataclass, replace

from watcher.envelopes.message import Message, json_text
from watcher.envelopes.values import PLAIN_CELLS
from watcher.envelopes.wrapped import WrappedEnvelope
from watcher.model.change import Change


@dataclass(frozen=True, slots=True)
class TextKeys(WrappedEnvelope):
    """An ``Envelope`` whose keys are the text of the one key column, without quotes: ``7``,
    ``Bern``. A key of several columns is a JSON array in every format."""

    def encode(self, change: Change) -> tuple[Message, ...]:
        """As ``Envelope.encode``."""
        key = write_key(change).encode()
        return tuple(
            message if message.key is None else replace(message, key=key)
            for message in self.inside.encode(change)
        )


def write_key(change: Change) -> str:
    """The key as a text, its cells as the format ``plain`` writes them."""
    types = dict(change.shape.columns)
    cells = [
        PLAIN_CELLS.format_cell(change.key[name], types[name]) for name in change.shape.primary_key
    ]
    if len(cells) == 1 and isinstance(cells[0], str):
        return cells[0]
    return json_text(cells[0] if len(cells) == 1 else cells)
