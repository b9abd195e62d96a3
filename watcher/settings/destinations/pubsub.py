"""Google Cloud Pub/Sub as a destination."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import Field

from watcher.settings.destinations.destination import (
    TABLE_FIELD,
    Destination,
    QueueOptions,
    check_topic,
)
from watcher.settings.fields import Text

PROJECT = re.compile(r"(?:[a-z0-9.-]+:)?[a-z][a-z0-9-]*\Z")
PUBSUB_TOPIC = re.compile(r"(?!goog)[A-Za-z][A-Za-z0-9._~+%-]{2,254}\Z", re.IGNORECASE)
"""Pub/Sub: 3 to 255 characters, the first one a letter, not beginning with ``goog``."""


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
    def parse(cls, authority: str, topic: str) -> Self | None:
        """As ``Destination.parse``."""
        return cls(authority, topic) if PROJECT.match(authority) else None

    def name_topic(self, table: str) -> str:
        """As ``Destination.name_topic``: the topic's path."""
        topic = check_topic(self.topic.replace(TABLE_FIELD, table), PUBSUB_TOPIC, self.service)
        return f"projects/{self.project}/topics/{topic}"
