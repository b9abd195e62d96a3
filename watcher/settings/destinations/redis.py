"""Streams of Redis as a destination."""

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
    refuse_password,
)
from watcher.settings.destinations.tables import read_parameters
from watcher.settings.fields import Duration, Text
from watcher.settings.secret_values import Secret

AUTHORITY = re.compile(
    r"(?:(?P<user>[^:@/\s]+)@)?(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>\d{1,5}))?(?:/(?P<database>\d{1,4}))?/?\Z"
)
STREAM = re.compile(r"[^\x00-\x20{}]{1,1000}\Z")
PARAMETERS = {"stream": f"the name of the stream, with {TABLE_FIELD} for the table's"}
PORT = 6379


class RedisOptions(QueueOptions):
    """How to write to Redis."""

    password: Secret | None = None
    """The password: ``{ file = "PATH" }`` or ``{ env = "NAME" }``."""
    entries_max: Annotated[int, Field(ge=1)] | None = None
    """About how many entries a stream keeps (``MAXLEN ~``); without it, all."""
    timeout: Duration = 30.0
    """How long an answer may take."""
    tls: bool = False
    """Whether the server speaks TLS."""
    ca_certificate: Text | None = None
    """The file with the certificate of the authority that signed the server's."""


@dataclass(frozen=True, slots=True)
class RedisDestination(Destination):
    """A server of Redis, or of what speaks its protocol; ``topic`` is the name of a stream."""

    scheme = "redis"
    service = "Redis"
    messaging_system = "redis"
    ordered = True
    compacted = False
    one_writer = True
    options = RedisOptions

    host: str
    port: int = PORT
    database: int = 0
    topic: str = TABLE_FIELD
    user: str | None = None

    def __str__(self) -> str:
        return f"redis://{self.host}:{self.port}/{self.database}"

    @classmethod
    def read(cls, rest: str) -> Self | None:
        """As ``Destination.read``."""
        address, _, query = rest.partition("?")
        if not address.startswith("//"):
            return None
        if ":" in address[2:].rpartition("@")[0]:
            raise refuse_password('delivery.redis.password = { file = "PATH" }')
        given = read_parameters(query, PARAMETERS)
        return cls.parse(address[2:], given.get("stream", TABLE_FIELD))

    @classmethod
    def parse(cls, authority: str, topic: str) -> Self | None:
        """As ``Destination.parse``."""
        match = AUTHORITY.match(authority)
        if match is None:
            return None
        port, database = int(match["port"] or PORT), int(match["database"] or 0)
        return cls(match["host"], port, database, topic, match["user"])

    def name_topic(self, table: str) -> str:
        """As ``Destination.name_topic``: the key of the stream."""
        return check_topic(self.topic.replace(TABLE_FIELD, table), STREAM, self.service)

    @property
    def server_address(self) -> str | None:
        """As ``Destination.server_address``."""
        return self.host
