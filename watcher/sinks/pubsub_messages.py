"""Messages of an envelope as Pub/Sub takes them: data, attributes, ordering keys."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from watcher.envelopes.message import Message
from watcher.model.change import Change
from watcher.spanner.timestamps import format_timestamp

ATTRIBUTE_BYTES_MAX = 1_024
"""Pub/Sub: of the value of an attribute, and of an ordering key."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that may not be acknowledged yet; ``answer`` is a future."""

    change: Change
    topic: str
    ordering_key: str
    data: bytes
    attributes: dict[str, str]
    answer: Any


def make_sent(change: Change, topic: str, message: Message, groups: int) -> Sent:
    """A message as Pub/Sub takes it, not published yet; ``groups`` as in
    ``choose_ordering_key``."""
    attributes = {name: value.decode() for name, value in message.headers}
    attributes |= {
        "table": change.table,
        "operation": str(change.operation),
        "commit_timestamp": format_timestamp(change.commit_timestamp),
        "version": format_version(change),
    }
    key = (message.key or b"").decode()
    if message.key is not None and len(message.key) <= ATTRIBUTE_BYTES_MAX:
        attributes["key"] = key
    if message.value is None:
        attributes["tombstone"] = "true"
    ordering_key = choose_ordering_key(message.key or b"", groups)
    return Sent(change, topic, ordering_key, message.value or b"", attributes, None)


def format_version(change: Change) -> str:
    """A text that is greater for a newer version of a row, and the same on every delivery: by it a
    reader drops a message that Pub/Sub has stored late, behind a newer one."""
    committed = format_timestamp(change.commit_timestamp)
    if change.origin is None:
        return committed
    return f"{committed}/{change.origin.record_sequence}/{change.origin.mod_number:08d}"


def choose_ordering_key(key: bytes, groups: int) -> str:
    """The same for the same key: one of so many groups, or, without groups, the key itself (a
    digest of one that is too long)."""
    if not groups and len(key) <= ATTRIBUTE_BYTES_MAX:
        return key.decode()
    digest = hashlib.blake2b(key, digest_size=16)
    return str(int.from_bytes(digest.digest()[:8]) % groups) if groups else digest.hexdigest()
