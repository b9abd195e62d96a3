"""Where changes go besides lines and callbacks: Kafka and Pub/Sub, and their options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from ddl.suggestions import suggest_name
from watcher.errors import ConfigurationError
from watcher.settings.fields import Section, Text
from watcher.settings.secret_values import Secret, hide_credentials

TABLE_FIELD = "{table}"
SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)\Z", re.IGNORECASE)
BROKER = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?\Z")
PROJECT = re.compile(r"(?:[a-z0-9.-]+:)?[a-z][a-z0-9-]*\Z")
KAFKA_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}\Z")
"""Kafka: ``org.apache.kafka.common.internals.Topic``."""
PUBSUB_TOPIC = re.compile(r"(?!goog)[A-Za-z][A-Za-z0-9._~+%-]{2,254}\Z", re.IGNORECASE)
"""Pub/Sub: 3 to 255 characters, the first one a letter, not beginning with ``goog``."""
EXAMPLE_TABLE = "Singers"


@dataclass(frozen=True, slots=True)
class KafkaDestination:
    """Brokers, and the template of topics: ``{table}`` stands for the name of a change's table."""

    SPELLING: ClassVar[str] = "kafka://BROKER:PORT,BROKER:PORT/TOPIC"

    brokers: tuple[str, ...]
    topic: str = TABLE_FIELD

    def __str__(self) -> str:
        return f"kafka://{','.join(self.brokers)}"

    def name_topic(self, table: str) -> str:
        """The topic of a table. Raises ConfigurationError for a name that Kafka refuses."""
        return check_topic(self.topic.replace(TABLE_FIELD, table), KAFKA_TOPIC, "Kafka")


@dataclass(frozen=True, slots=True)
class PubSubDestination:
    """A project, and the template of topics as ``KafkaDestination`` has it."""

    SPELLING: ClassVar[str] = "pubsub://PROJECT/TOPIC"

    project: str
    topic: str = TABLE_FIELD

    def __str__(self) -> str:
        return f"pubsub://{self.project}"

    def name_topic(self, table: str) -> str:
        """The topic's path. Raises ConfigurationError for a name that Pub/Sub refuses."""
        topic = check_topic(self.topic.replace(TABLE_FIELD, table), PUBSUB_TOPIC, "Pub/Sub")
        return f"projects/{self.project}/topics/{topic}"


Destination = KafkaDestination | PubSubDestination
"""A queue: it takes keys, tombstones and binary values."""
SPELLINGS = {"kafka": KafkaDestination.SPELLING, "pubsub": PubSubDestination.SPELLING}


def parse_destination(text: str) -> Destination | None:
    """The queue that ``delivery.to`` names; None for a file or the standard output.

    Raises ConfigurationError that says how to write it.
    """
    match = SCHEME.match(text)
    if match is None:
        return None
    scheme, rest = match.groups()
    shown = hide_credentials(text)
    if scheme not in SPELLINGS:
        hint = suggest_name(scheme, SPELLINGS, "use a path, or one of")
        raise ConfigurationError(f"delivery.to = '{shown}': unknown destination '{scheme}'; {hint}")
    place, _, topic = rest.partition("/")
    topic = topic or TABLE_FIELD
    queue: Destination
    if scheme == "kafka":
        brokers = tuple(each.strip() for each in place.split(","))
        valid = all(BROKER.match(each) for each in brokers)
        queue = KafkaDestination(brokers, topic)
    else:
        valid = PROJECT.match(place) is not None
        queue = PubSubDestination(place, topic)
    if not valid:
        raise ConfigurationError(f"delivery.to = '{shown}' is invalid: write {SPELLINGS[scheme]}")
    queue.name_topic(EXAMPLE_TABLE)
    return queue


def check_topic(topic: str, allowed: re.Pattern[str], service: str) -> str:
    """The name of a topic. Raises ConfigurationError for one that the service refuses."""
    if allowed.match(topic) is None:
        raise ConfigurationError(
            f"{service} does not allow a topic '{topic}': change the topic in delivery.to, where"
            f" {TABLE_FIELD} stands for the name of the table"
        )
    return topic


RESERVED = {
    "bootstrap.servers": "name the brokers in delivery.to",
    "enable.idempotence": "it is always on",
    "delivery.report.only.error": "it is always on",
    "transactional.id": "set delivery.kafka.transactional_id",
}
"""Properties of librdkafka that are set here, and what to do instead."""


class KafkaOptions(Section):
    """How to write to Kafka."""

    transactional: bool = False
    """Each window is one transaction."""
    transactional_id: Text | None = None
    """The id of these transactions; by default made of the database and the consumer."""
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


class PubSubOptions(Section):
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
