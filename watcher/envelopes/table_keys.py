"""Message keys that name the table, where rows of several tables share a topic or a file."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from watcher.envelopes.message import Message, json_bytes, json_text
from watcher.envelopes.wrapped import WrappedEnvelope
from watcher.model.change import Change

TABLE_FIELD = "__dbz__physicalTableIdentifier"
"""What Debezium's router calls the table in the key of a topic of several tables."""
CONNECT_FIELD = {"type": "string", "optional": False, "field": TABLE_FIELD}


@dataclass(frozen=True, slots=True)
class TableKeys(WrappedEnvelope):
    """An ``Envelope`` whose keys begin with the table: rows of two tables may have equal keys, and
    a tombstone or a newer version of one would remove the other's."""

    def encode(self, change: Change) -> tuple[Message, ...]:
        """As ``Envelope.encode``."""
        return tuple(
            replace(message, key=add_table(message.key, change.table))
            for message in self.inside.encode(change)
        )


def add_table(key: bytes | None, table: str) -> bytes | None:
    """A key that is a JSON array, an object, or Kafka Connect's object with its schema: with the
    table as the first element or member."""
    if key is None:
        return None
    name = json_text(table).encode()
    if key.startswith(b"["):
        return b"[" + name + separate(key) + key[1:]
    if key.startswith(b'{"schema":{'):
        connect: dict[str, Any] = json.loads(key)
        schema, payload = connect["schema"], connect["payload"]
        schema = {**schema, "fields": [CONNECT_FIELD, *schema["fields"]]}
        return json_bytes({"schema": schema, "payload": {TABLE_FIELD: table, **payload}})
    return b'{"' + TABLE_FIELD.encode() + b'":' + name + separate(key) + key[1:]


def separate(key: bytes) -> bytes:
    """What comes before the other parts of a key; nothing where it has none, as in a table of one
    row."""
    return b"" if len(key) == len(b"[]") else b","
