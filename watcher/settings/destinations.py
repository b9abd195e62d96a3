"""Where changes go besides lines and callbacks: each queue with all that depends on which it is."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self
from urllib.parse import quote

from pydantic import Field, field_validator

from watcher.envelopes.described_messages import DescribedMessages
from watcher.envelopes.message import Envelope
from watcher.envelopes.record_schemas import Part, RecordSchema
from watcher.model.errors import ConfigurationError
from watcher.settings.fields import Duration, Section, Text
from watcher.settings.secret_values import Secret

TABLE_FIELD = "{table}"
BROKER = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?\Z")
PROJECT = re.compile(r"(?:[a-z0-9.-]+:)?[a-z][a-z0-9-]*\Z")
KAFKA_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}\Z")
"""Kafka: ``org.apache.kafka.common.internals.Topic``."""
PUBSUB_TOPIC = re.compile(r"(?!goog)[A-Za-z][A-Za-z0-9._~+%-]{2,254}\Z", re.IGNORECASE)
"""Pub/Sub: 3 to 255 characters, the first one a letter, not beginning with ``goog``."""
WEBHOOK_PATH = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%/?-]{1,2000}\Z")
"""RFC 3986: what a path and a query may have."""
EXAMPLE_TABLE = "Singers"


class QueueOptions(Section):
    """The options of a queue, in the section of its scheme."""

    def check(self, consumer: str | None) -> None:
        """Raises ConfigurationError for options that do not work together, or not with a consumer
        of this name; None is one without a name."""

    @property
    def one_owner(self) -> str | None:
        """The option that lets one instance at a time write, if it is given."""
        return None


class Destination(ABC):
    """A queue: it takes keys, tombstones and binary values.

    ``topic`` is a template: ``{table}`` stands for the name of a change's table. A queue is a
    subclass in ``DESTINATIONS``. Its ``scheme`` also names its section of ``delivery``, its extra,
    and the module of ``runners.delivery`` that opens it.
    """

    __slots__ = ()

    scheme: ClassVar[str]
    spelling: ClassVar[str]
    """How ``delivery.to`` is written."""
    service: ClassVar[str]
    """Its name in messages."""
    messaging_system: ClassVar[str]
    """Its name in OpenTelemetry's conventions."""
    ordered: ClassVar[bool]
    """Whether messages of several keys have an order."""
    compacted: ClassVar[bool]
    """Whether a topic may keep the last message of each key alone: then keys of two tables in it
    must differ."""
    options: ClassVar[type[QueueOptions]]
    needs_client: ClassVar[bool] = True
    """Whether it needs a library, which is in the extra of its scheme."""

    topic: str

    @classmethod
    @abstractmethod
    def parse(cls, place: str, topic: str) -> Self | None:
        """The queue at a place, which stands between the scheme and the topic; None if that is not
        how a place is written."""

    @abstractmethod
    def name_topic(self, table: str) -> str:
        """The topic of a table. Raises ConfigurationError for a name that the service refuses."""

    @property
    def server_address(self) -> str | None:
        """The host that spans name, where there is one."""
        return None

    @property
    def identity(self) -> str:
        """What instances of a shared consumer have in common."""
        return f"{self}, topic {self.topic}"


def check_topic(topic: str, allowed: re.Pattern[str], service: str) -> str:
    """The name of a topic. Raises ConfigurationError for one that the service refuses."""
    if allowed.match(topic) is None:
        raise ConfigurationError(
            f"{service} does not allow a topic '{topic}': change the topic in delivery.to, where"
            f" {TABLE_FIELD} stands for the name of the table"
        )
    return topic


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
        """The envelope with the headers and tombstones that these options add to its messages."""
        if not (self.headers or self.tombstones):
            return envelope
        return DescribedMessages(envelope, self.headers, self.tombstones)

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
    spelling = "kafka://BROKER:PORT,BROKER:PORT/TOPIC"
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
    def parse(cls, place: str, topic: str) -> Self | None:
        """As ``Destination.parse``."""
        brokers = tuple(each.strip() for each in place.split(","))
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


class PubSubOptions(QueueOptions):
    """How to write to Pub/Sub."""

    ordering_groups: Annotated[int, Field(ge=0)] = 16
    """The rows of a table share so many ordering keys, by a digest of their keys; 0: each row's key
    is its ordering key."""
    messages_max: Annotated[int, Field(ge=1)] = 10_000
    """How many messages may wait for an acknowledgement."""
    bytes_max: Annotated[int, Field(ge=1)] = 50_000_000
    """How many bytes may wait for an acknowledgement."""
    endpoint: Text | None = None
    """The endpoint of a region: Pub/Sub keeps the order of what is published in one region."""


@dataclass(frozen=True, slots=True)
class PubSubDestination(Destination):
    """A project of Google Cloud Pub/Sub."""

    scheme = "pubsub"
    spelling = "pubsub://PROJECT/TOPIC"
    service = "Pub/Sub"
    messaging_system = "gcp_pubsub"
    ordered = False
    compacted = False
    options = PubSubOptions

    project: str
    topic: str = TABLE_FIELD

    def __str__(self) -> str:
        return f"pubsub://{self.project}"

    @classmethod
    def parse(cls, place: str, topic: str) -> Self | None:
        """As ``Destination.parse``."""
        return cls(place, topic) if PROJECT.match(place) else None

    def name_topic(self, table: str) -> str:
        """As ``Destination.name_topic``: the topic's path."""
        topic = check_topic(self.topic.replace(TABLE_FIELD, table), PUBSUB_TOPIC, self.service)
        return f"projects/{self.project}/topics/{topic}"


class WebhookOptions(QueueOptions):
    """How to post to a webhook."""

    secret: Secret | None = None
    """The key of the signatures: ``{ file = "PATH" }`` or ``{ env = "NAME" }``. Without it,
    requests are not signed."""
    headers: Mapping[str, Secret] = {}
    """More headers of each request, such as ``Authorization``. No value is ever shown."""
    messages_max: Annotated[int, Field(ge=1)] = 500
    """How many messages a request has at most."""
    bytes_max: Annotated[int, Field(ge=1)] = 1_000_000
    """From how many bytes on a request has no more messages."""
    timeout: Duration = 30.0
    """How long an answer may take."""
    tls: bool = True
    """Whether it is HTTPS; false for HTTP, which anybody on the way can read and change."""
    ca_certificate: Text | None = None
    """The file with the certificate of the authority that signed the server's."""


@dataclass(frozen=True, slots=True)
class WebhookDestination(Destination):
    """A server of the user's own that takes changes by HTTP POST; its ``topic`` is a path."""

    scheme = "webhook"
    spelling = "webhook://HOST:PORT/PATH"
    service = "A webhook"
    messaging_system = "http"
    ordered = False
    compacted = False
    options = WebhookOptions
    needs_client = False

    host: str
    topic: str = TABLE_FIELD

    def __str__(self) -> str:
        return f"webhook://{self.host}"

    @classmethod
    def parse(cls, place: str, topic: str) -> Self | None:
        """As ``Destination.parse``."""
        return cls(place, topic) if BROKER.match(place) else None

    def name_topic(self, table: str) -> str:
        """As ``Destination.name_topic``: the path of the requests, with the table's name quoted."""
        path = self.topic.replace(TABLE_FIELD, quote(table, safe=""))
        return "/" + check_topic(path, WEBHOOK_PATH, self.service)

    @property
    def server_address(self) -> str | None:
        """As ``Destination.server_address``."""
        return self.host.rpartition(":")[0] or self.host


DESTINATIONS: dict[str, type[Destination]] = {
    kind.scheme: kind for kind in (KafkaDestination, PubSubDestination, WebhookDestination)
}


class QueueSections(Section):
    """A section for the options of each queue."""

    kafka: KafkaOptions = KafkaOptions()
    """How to write to Kafka."""
    pubsub: PubSubOptions = PubSubOptions()
    """How to write to Pub/Sub."""
    webhook: WebhookOptions = WebhookOptions()
    """How to post to a webhook."""

    def list_queue_options(self) -> dict[str, QueueOptions]:
        """The options of each queue by its scheme."""
        return {scheme: getattr(self, scheme) for scheme in DESTINATIONS}
