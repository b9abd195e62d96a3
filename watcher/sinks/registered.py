"""Messages in Confluent's wire format: a byte of 0 and the id of the schema, before the record.

docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/ describes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from watcher.envelopes.batches import ColumnWriter
from watcher.envelopes.by_column.changes import ChangeColumns
from watcher.envelopes.message import Envelope, Message
from watcher.envelopes.record_schemas import Part, RecordSchema, SchemaEnvelope
from watcher.envelopes.templates import Messages
from watcher.envelopes.values import CellStyle
from watcher.envelopes.wrapped import WrappedEnvelope
from watcher.model.change import Change, Shape
from watcher.settings.destinations import KafkaDestination, name_subject
from watcher.settings.watcher import WatchConfig
from watcher.sinks.refusals import Refusal, RefusedChangesError
from watcher.sinks.schema_registry import SchemaRefusedError, SchemaRegistry

MAGIC = b"\0"
ID_BYTES = 4
REFUSAL_SECONDS = 5.0
"""How long the registry is not asked again for a schema that it has refused: the changes behind the
first one are refused with the same words."""


@dataclass(frozen=True, slots=True)
class Heads:
    """What stands before the keys and the values of a table; None where keys have no schema."""

    key: bytes | None
    value: bytes

    def put_before_columns(self, messages: Messages[pa.Array]) -> Messages[pa.Array]:
        """Messages as columns of texts or bytes with both."""
        parts = ((self.key, messages.key), (self.value, messages.value))
        key, value = (
            pc.binary_join_element_wise(head, part.cast(pa.binary()), b"") if head else part
            for head, part in parts
        )
        return replace(messages, key=key, value=value)

    def put_before(self, message: Message) -> Message:
        """A message with both; a tombstone keeps no value."""
        key, value = message.key, message.value
        return replace(
            message,
            key=key if key is None or self.key is None else self.key + key,
            value=None if value is None else self.value + value,
        )


@dataclass(frozen=True, slots=True)
class Refused:
    """A schema that was refused, and until when that is taken for the answer."""

    reason: str
    until: float


@dataclass(frozen=True, slots=True)
class RegisteredMessages(WrappedEnvelope):
    """An ``Envelope`` whose records begin with the id of their schema. A schema is looked up, or
    registered, when the first change of its shape comes."""

    described: SchemaEnvelope
    registry: SchemaRegistry
    name_subject: Callable[[str, Part, RecordSchema], str]
    """The subject of a table's keys or values."""
    keys: bool = True
    """Keys have the schemas that the envelope describes; false: others are put in their place."""
    heads: dict[tuple[str, Shape], Heads] = field(default_factory=dict)
    refused: dict[tuple[str, Shape], Refused] = field(default_factory=dict)

    def encode(self, change: Change) -> tuple[Message, ...]:
        """As ``Envelope.encode``. Raises RefusedChangesError, and as
        ``SchemaRegistry.find_id``."""
        messages = self.inside.encode(change)
        try:
            heads = self.find_heads(change.database, change.shape)
        except SchemaRefusedError as error:
            refusal = Refusal(change, str(error))
            raise RefusedChangesError(str(self.registry), [refusal]) from error
        return tuple(heads.put_before(message) for message in messages)

    def find_heads(self, database: str, shape: Shape) -> Heads:
        """What stands before the records of a table. Raises as ``SchemaRegistry.find_id``."""
        of = database, shape
        known = self.heads.get(of)
        if known is not None:
            return known
        before = self.refused.get(of)
        if before is not None and time.monotonic() < before.until:
            raise SchemaRefusedError(before.reason)
        try:
            found = self._ask(*of)
        except SchemaRefusedError as error:
            self.refused[of] = Refused(str(error), time.monotonic() + REFUSAL_SECONDS)
            raise
        self.heads[of] = found
        return found

    def _ask(self, database: str, shape: Shape) -> Heads:
        schemas = self.described.describe_schemas(database, shape)
        key = schemas.key if self.keys else None
        return Heads(
            None if key is None else self._make_head(shape.table, "key", key),
            self._make_head(shape.table, "value", schemas.value),
        )

    def _make_head(self, table: str, part: Part, schema: RecordSchema) -> bytes:
        found = self.registry.find_id(self.name_subject(table, part, schema), schema)
        return MAGIC + found.to_bytes(ID_BYTES, "big") + schema.place


class RegisteredColumns(RegisteredMessages):
    """As ``RegisteredMessages``, around a ``ColumnWriter``: one, too."""

    @property
    def style(self) -> CellStyle:
        """As ``ColumnWriter.style``."""
        return self._writer.style

    def render(self, changes: ChangeColumns, database: str) -> Messages[pa.Array]:
        """As ``ColumnWriter.render``. Raises as ``SchemaRegistry.find_id``, too."""
        messages = self._writer.render(changes, database)
        return self.find_heads(database, changes.shape).put_before_columns(messages)

    @property
    def _writer(self) -> ColumnWriter:
        assert isinstance(self.inside, ColumnWriter), "it is only around one"
        return self.inside


def register_messages(config: WatchConfig, destination: KafkaDestination) -> Envelope:
    """The envelope of a watcher, with the schema registry that it is configured to use. Raises
    UnavailableError where that does not answer."""
    options = config.delivery.kafka
    if options.schema_registry is None:
        return config.message_format
    described = config.format
    assert isinstance(described, SchemaEnvelope), "it was checked with the settings"
    registry = SchemaRegistry(options.schema_registry, options)
    registry.connect()
    name = partial(name_subject, options.subject_names, destination)
    inside = config.message_format
    kind = RegisteredColumns if isinstance(inside, ColumnWriter) else RegisteredMessages
    return kind(inside, described, registry, name, keys=not options.text_keys)
