"""Message keys that are a plain text, for readers that take keys as strings."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spanner_schema.model.column_types import TypeCode
from watcher.envelopes.message import Message, json_text
from watcher.envelopes.values import PLAIN_CELLS
from watcher.envelopes.wrapped import WrappedEnvelope
from watcher.model.change import Change
from watcher.model.errors import EnvelopeError

ANY_TEXT = (TypeCode.STRING, TypeCode.BYTES)
"""Types with a value whose text is ``null``, as that of NULL."""


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
    """The key as a text, its cells as the format ``plain`` writes them. Raises EnvelopeError for
    one that another row could have."""
    types = dict(change.shape.columns)
    names = change.shape.primary_key
    cells = [PLAIN_CELLS.format_cell(change.key[name], types[name]) for name in names]
    if len(cells) != 1:
        return json_text(cells)
    if cells[0] is None and types[names[0]].code in ANY_TEXT:
        raise EnvelopeError(
            f"the key {names[0]} of {change.table} is NULL, which delivery.kafka.text_keys writes"
            " as null, as the text 'null': remove text_keys, and write to a new topic"
        )
    return cells[0] if isinstance(cells[0], str) else json_text(cells[0])
