"""The project's own JSON: what ``spanner-watcher watch`` prints by default."""

from __future__ import annotations

import json

from watcher.captures.changes import to_json
from watcher.envelopes.message import EnvelopeOptions, Known, Message, id_header
from watcher.model.change import Change
from watcher.spanner.timestamps import format_timestamp

ENCODER = json.JSONEncoder(ensure_ascii=False)


class Plain(EnvelopeOptions):
    """A change as one JSON object with its id, key, values and window."""

    def check(self, known: Known) -> None:
        """Accepts every capture: what it does not know is left out."""

    def encode(self, change: Change) -> tuple[Message, ...]:
        """As ``Envelope.encode``."""
        key = ENCODER.encode([to_json(value) for value in change.key.values()])
        value = ENCODER.encode(plain_change(change))
        return (Message(key.encode(), value.encode(), id_header(change)),)


def plain_change(change: Change) -> dict[str, object]:
    """A change as one JSON object: what ``spanner-watcher watch`` prints."""
    key = {name: to_json(value) for name, value in change.key.items()}
    values = {name: to_json(value) for name, value in (change.new_values or {}).items()}
    order = [name for name, _ in change.shape.columns]
    row = key | values
    return {
        "id": change.id,
        "table": change.table,
        "operation": str(change.operation),
        "commit_timestamp": format_timestamp(change.commit_timestamp),
        "shard": change.shard_id,
        "key": key,
        "values": {name: row[name] for name in order if name in row},
        **describe_origin(change),
        "window": {
            "start": format_timestamp(change.window.start),
            "end": format_timestamp(change.window.end),
        },
    }


def describe_origin(change: Change) -> dict[str, object]:
    """The fields that only a change stream fills."""
    if change.origin is None:
        return {}
    old = change.old_values
    return {
        "old_values": {n: to_json(v) for n, v in old.items()} if old is not None else None,
        "transaction": {
            "id": change.origin.transaction_id,
            "sequence": change.origin.record_sequence,
            "tag": change.origin.transaction_tag,
        },
    }
