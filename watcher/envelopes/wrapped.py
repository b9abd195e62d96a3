"""Envelopes around another one: they change its messages, and nothing else. Keys that name the
table, keys that are a plain text, and what messages say of a change beside its record."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from spanner_schema.model.column_types import TypeCode
from watcher.envelopes.datastream import schema_key
from watcher.envelopes.message import Envelope, Headers, Known, Message, json_bytes, json_text
from watcher.envelopes.values import PLAIN_CELLS
from watcher.model.change import Change, Operation
from watcher.model.errors import EnvelopeError
from watcher.spanner.json_columns.objects import NULL
from watcher.spanner.timestamps import format_timestamp

TABLE_FIELD = "__dbz__physicalTableIdentifier"
"""What Debezium's router calls the table in the key of a topic of several tables."""
CONNECT_FIELD = {"type": "string", "optional": False, "field": TABLE_FIELD}
ANY_TEXT = (TypeCode.STRING, TypeCode.BYTES)
"""Types with a value whose text is ``null``, as that of NULL."""


@dataclass(frozen=True, slots=True)
class WrappedEnvelope(Envelope):
    """An ``Envelope`` but for ``encode``, which each of them has."""

    inside: Envelope

    @property
    def has_key(self) -> bool:
        """As ``Envelope.has_key``."""
        return self.inside.has_key

    @property
    def binary(self) -> bool:
        """As ``Envelope.binary``."""
        return self.inside.binary

    @property
    def names_table(self) -> bool:
        """As ``Envelope.names_table``."""
        return self.inside.names_table

    @property
    def headers(self) -> Headers:
        """As ``Envelope.headers``."""
        return self.inside.headers

    @property
    def needs_order(self) -> bool:
        """As ``Envelope.needs_order``."""
        return self.inside.needs_order

    def check(self, known: Known) -> None:
        """As ``Envelope.check``."""
        self.inside.check(known)

    def encode_resolved(self, micros: int) -> tuple[Message, ...]:
        """As ``Envelope.encode_resolved``."""
        return self.inside.encode_resolved(micros)


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
    cells = [PLAIN_CELLS.choose_writer(types[name])(change.key[name]) for name in names]
    if len(cells) != 1:
        return f"[{','.join(cells)}]"
    if cells[0] == NULL and types[names[0]].code in ANY_TEXT:
        raise EnvelopeError(
            f"the key {names[0]} of {change.table} is NULL, which delivery.kafka.text_keys writes"
            " as null, as the text 'null': remove text_keys, and write to a new topic"
        )
    cell: object = json.loads(cells[0])
    return cell if isinstance(cell, str) else cells[0]


@dataclass(frozen=True, slots=True)
class DescribedMessages(WrappedEnvelope):
    """An ``Envelope`` whose messages have ``headers`` by which a reader chooses without parsing the
    value; with ``tombstones`` a message without a value follows a delete, also in formats that have
    none of their own: a topic that is compacted then drops the key."""

    with_headers: bool = False
    with_tombstones: bool = False

    def encode(self, change: Change) -> tuple[Message, ...]:
        """As ``Envelope.encode``."""
        messages = self.inside.encode(change)
        if self.with_tombstones and change.operation is Operation.DELETE:
            last = messages[-1]
            if last.value is not None:
                messages = (*messages, Message(last.key, None, last.headers))
        if not self.with_headers:
            return messages
        headers = describe_change(change)
        return tuple(replace(each, headers=each.headers + headers) for each in messages)


def describe_change(change: Change) -> Headers:
    """The table, the operation, the commit timestamp, the transaction if it is known, and a text
    that changes with the columns."""
    described = {
        "table": change.table,
        "operation": str(change.operation),
        "commit_timestamp": format_timestamp(change.commit_timestamp),
        "schema_version": schema_key(change.shape),
    }
    if change.origin is not None:
        described["transaction_id"] = change.origin.transaction_id
    return tuple((name, value.encode()) for name, value in described.items())
