"""The project's own JSON: what ``spanner-watcher watch`` prints unless told otherwise."""

from __future__ import annotations

import json

from watcher.change import Change
from watcher.changes import plain, plain_change
from watcher.envelopes.message import Known, Message, Options, id_header


class Plain(Options):
    """A change as one JSON object with its id, key, values and window."""

    def check(self, known: Known) -> None:
        """Every capture will do: what it does not know is not in it."""

    def encode(self, change: Change) -> tuple[Message, ...]:
        """As ``Envelope.encode``."""
        key = json.dumps([plain(value) for value in change.key.values()], ensure_ascii=False)
        value = json.dumps(plain_change(change), ensure_ascii=False)
        return (Message(key.encode(), value.encode(), id_header(change)),)
