"""A server of the user's own as a destination: HTTP POST."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Self
from urllib.parse import quote

from pydantic import Field

from watcher.settings.destinations.destination import (
    BROKER,
    TABLE_FIELD,
    Destination,
    QueueOptions,
    check_topic,
)
from watcher.settings.fields import Duration, Text
from watcher.settings.secret_values import Secret

WEBHOOK_PATH = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%/?-]{1,2000}\Z")
"""RFC 3986: what a path and a query may have."""


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
    service = "A webhook"
    messaging_system = "http"
    ordered = False
    compacted = False
    options = WebhookOptions

    host: str
    topic: str = TABLE_FIELD

    def __str__(self) -> str:
        return f"webhook://{self.host}"

    @classmethod
    def parse(cls, authority: str, topic: str) -> Self | None:
        """As ``Destination.parse``."""
        return cls(authority, topic) if BROKER.match(authority) else None

    def name_topic(self, table: str) -> str:
        """As ``Destination.name_topic``: the path of the requests, with the table's name quoted."""
        path = self.topic.replace(TABLE_FIELD, quote(table, safe=""))
        return "/" + check_topic(path, WEBHOOK_PATH, self.service)

    @property
    def server_address(self) -> str | None:
        """As ``Destination.server_address``."""
        return self.host.rpartition(":")[0] or self.host
