"""Kafka as a destination, with a schema registry beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import field_validator

from watcher.envelopes.message import Envelope
from watcher.envelopes.record_schemas import Part, RecordSchema
from watcher.envelopes.wrapped import DescribedMessages, TextKeys
from watcher.model.errors import ConfigurationError
from watcher.settings.destinations.destination import (
    BROKER,
    TABLE_FIELD,
    Destination,
    QueueOptions,
    check_topic,
)
from watcher.settings.fields import Text
from watcher.settings.secret_values import Secret

KAFKA_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}\Z")
"""Kafka: ``org.apache.kafka.common.internals.Topic``."""
SubjectNames = Literal["topic", "record", "topic-record"]
"""The strategies of Confluent's serializers."""
OF_REGISTRY = {
    "schema_registry_properties",
    "subject_names",
    "auto_register",
    "normalize_schemas",
}
"""The options of Kafka that need a registry."""
REGISTRY = re.compile(r"https?://[^/@\s,]+(?:/[^@\s,]*)?(?:,https?://[^/@\s,]+(?:/[^@\s,]*)?)*\Z")
"""One address, or several of one registry."""
RESERVED = {
    "bootstrap.servers": "name the brokers in delivery.to",
    "enable.idempotence": "it is always on",
    "delivery.report.only.error": "it is always on",
    "transactional.id": "set delivery.kafka.transactional_id",
}
"""Properties of librdkafka that are set here, and what to do instead."""


class KafkaOptions(QueueOptions):
    """How to write to Kafka."""

    transactional: bool = False
    """Each window is one transaction."""
    transactional_id: Text | None = None
    """The id of these transactions; by default made of the database and the consumer."""
    headers: bool = False
    """Messages have the headers ``table``, ``operation``, ``commit_timestamp``, ``schema_version``
    and, of a change stream, ``transaction_id``, besides ``id``."""
    tombstones: bool = False
    """A delete is followed by a message without a value, also in formats that have none of their
    own."""
    text_keys: bool = False
    """The message key is the text of the one key column, such as ``7``, in every format, beside a
    registry too; a key of several columns is a JSON array. A STRING or BYTES that is NULL is
    refused: it would have the key of the text ``null``."""
    schema_registry: Text | None = None
    """The address of a schema registry with Confluent's API: ``https://HOST:PORT``; of Apicurio's
    with ``/apis/ccompat/v7``. Values then begin with the id of their schema, in Confluent's wire
    format."""
    schema_registry_properties: Mapping[str, Secret] = {}
    """Properties of Confluent's client of registries: credentials, ``ssl.ca.location``, timeouts.
    No value is ever shown; ``{ file = "PATH" }`` and ``{ env = "NAME" }`` are read from there."""
    subject_names: SubjectNames = "topic"
    """Which subject a schema is registered under: ``TOPIC-value``, the full name of the record, or
    both, ``TOPIC-RECORD``."""
    auto_register: bool = True
    """Register schemas that the registry does not have; false: somebody else does, and one that is
    missing stops the watcher."""
    normalize_schemas: bool = False
    """The registry normalizes schemas: two spellings of one are the same version."""
    properties: Mapping[str, Secret] = {}
    """Properties of librdkafka's producer: security, compression, sizes, timeouts. No value is ever
    shown; ``{ file = "PATH" }`` and ``{ env = "NAME" }`` are read from there."""

    @field_validator("properties")
    @classmethod
    def _check_properties(cls, properties: Mapping[str, object]) -> Mapping[str, object]:
        for name in properties:
            if name in RESERVED:
                raise ValueError(f"'{name}' cannot be set: {RESERVED[name]}")
        return properties

    @field_validator("schema_registry")
    @classmethod
    def _check_registry(cls, address: str | None) -> str | None:
        if address is not None and REGISTRY.match(address) is None:
            shown = "this" if "@" in address else f"'{address}'"
            raise ValueError(
                f"{shown} is not an address of a registry: use https://HOST:PORT, without a user,"
                " which schema_registry_properties have as 'basic.auth.user.info'"
            )
        return address

    @field_validator("schema_registry_properties")
    @classmethod
    def _check_registry_properties(cls, properties: Mapping[str, object]) -> Mapping[str, object]:
        if "url" in properties:
            raise ValueError("'url' cannot be set: set delivery.kafka.schema_registry")
        return properties

    def wrap(self, envelope: Envelope) -> Envelope:
        """The envelope with the headers, tombstones and keys that these options ask for."""
        if self.headers or self.tombstones:
            envelope = DescribedMessages(envelope, self.headers, self.tombstones)
        return TextKeys(envelope) if self.text_keys else envelope

    def check(self, consumer: str | None) -> None:
        """As ``QueueOptions.check``."""
        if self.transactional_id is not None and not self.transactional:
            raise ConfigurationError("delivery.kafka.transactional_id needs transactional = true")
        if self.transactional and consumer is None:
            raise ConfigurationError(
                "delivery.kafka.transactional needs 'consumer', a name for this watcher: Kafka"
                " fences the former instance by it"
            )
        given = sorted(self.model_fields_set & OF_REGISTRY)
        if given and self.schema_registry is None:
            raise ConfigurationError(f"delivery.kafka.{given[0]} needs schema_registry, an address")

    @property
    def one_owner(self) -> str | None:
        """As ``QueueOptions.one_owner``."""
        return "transactional" if self.transactional else None


@dataclass(frozen=True, slots=True)
class KafkaDestination(Destination):
    """Brokers of Kafka."""

    scheme = "kafka"
    service = "Kafka"
    messaging_system = "kafka"
    ordered = True
    compacted = True
    options = KafkaOptions

    brokers: tuple[str, ...]
    topic: str = TABLE_FIELD

    def __str__(self) -> str:
        return f"kafka://{','.join(self.brokers)}"

    @classmethod
    def parse(cls, authority: str, topic: str) -> Self | None:
        """As ``Destination.parse``."""
        brokers = tuple(each.strip() for each in authority.split(","))
        return cls(brokers, topic) if all(BROKER.match(each) for each in brokers) else None

    def name_topic(self, table: str) -> str:
        """As ``Destination.name_topic``."""
        return check_topic(self.topic.replace(TABLE_FIELD, table), KAFKA_TOPIC, self.service)

    @property
    def server_address(self) -> str | None:
        """As ``Destination.server_address``."""
        host, _, port = self.brokers[0].rpartition(":")
        return (host or port) if len(self.brokers) == 1 else None

    @property
    def identity(self) -> str:
        """As ``Destination.identity``; brokers may be named in several ways."""
        return f"kafka, topic {self.topic}"


def name_subject(
    names: SubjectNames, destination: KafkaDestination, table: str, part: Part, schema: RecordSchema
) -> str:
    """The subject of a schema, as Confluent's serializers name it."""
    if names == "record":
        return schema.name
    topic = destination.name_topic(table)
    return f"{topic}-{part if names == 'topic' else schema.name}"
