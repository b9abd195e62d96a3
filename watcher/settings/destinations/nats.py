"""Streams of NATS JetStream as a destination."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from watcher.model.errors import ConfigurationError
from watcher.settings.destinations.destination import (
    BROKER,
    TABLE_FIELD,
    Destination,
    QueueOptions,
    check_topic,
    refuse_password,
)
from watcher.settings.fields import Duration, Text
from watcher.settings.secret_values import Secret

SUBJECT = re.compile(r"[^\s.*>\x00-\x20]+(?:\.[^\s.*>\x00-\x20]+)*\Z")
"""NATS: a subject that is published to; ``*`` and ``>`` are for those who read."""
PORT = 4222


class NatsOptions(QueueOptions):
    """How to write to NATS JetStream."""

    password: Secret | None = None
    """The password of the user in the address: ``{ file = "PATH" }`` or ``{ env = "NAME" }``."""
    credentials: Text | None = None
    """The file with the credentials of a user (``.creds``), in place of a password."""
    timeout: Duration = 30.0
    """How long an answer may take."""
    tls: bool = False
    """Whether the server speaks TLS."""
    ca_certificate: Text | None = None
    """The file with the certificate of the authority that signed the server's."""

    def check(self, consumer: str | None) -> None:  # noqa: ARG002
        """As ``QueueOptions.check``."""
        if self.password is not None and self.credentials is not None:
            raise ConfigurationError(
                "delivery.nats has a password and credentials: remove one of them"
            )
        if self.ca_certificate is not None and not self.tls:
            raise ConfigurationError("delivery.nats.ca_certificate needs tls = true")


@dataclass(frozen=True, slots=True)
class NatsDestination(Destination):
    """A server of NATS, or several of one cluster; ``topic`` is a subject that a stream has."""

    scheme = "nats"
    service = "NATS"
    messaging_system = "nats"
    ordered = True
    compacted = False
    one_writer = True
    options = NatsOptions

    servers: tuple[str, ...]
    topic: str = TABLE_FIELD
    user: str | None = None

    def __str__(self) -> str:
        return f"nats://{','.join(self.servers)}"

    @classmethod
    def parse(cls, authority: str, topic: str) -> Self | None:
        """As ``Destination.parse``."""
        user, _, rest = authority.rpartition("@")
        if ":" in user:
            raise refuse_password('delivery.nats.password = { file = "PATH" }')
        servers = tuple(each.strip() for each in rest.split(","))
        if not all(BROKER.match(each) for each in servers):
            return None
        return cls(servers, topic, user or None)

    def name_topic(self, table: str) -> str:
        """As ``Destination.name_topic``: the subject."""
        return check_topic(self.topic.replace(TABLE_FIELD, table), SUBJECT, self.service)

    @property
    def server_address(self) -> str | None:
        """As ``Destination.server_address``."""
        return self.servers[0].rpartition(":")[0] or self.servers[0]
