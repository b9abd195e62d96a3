"""Tables of PostgreSQL as a destination."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from watcher.settings.destinations.destination import TABLE_FIELD, refuse_password
from watcher.settings.destinations.tables import (
    TARGET_PARAMETERS,
    TableDestination,
    TableOptions,
    read_parameters,
    read_target,
)
from watcher.settings.secret_values import Secret

HOST = r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?"
AUTHORITY = re.compile(rf"(?:(?P<user>[^:@/\s]+)@)?(?P<hosts>{HOST}(?:,{HOST})*)?\Z")
DATABASE = re.compile(r"[^/?#\s]+\Z")
PARAMETERS = TARGET_PARAMETERS | {
    "host": "the folder of a socket",
    "sslmode": "as libpq's",
    "sslrootcert": "as libpq's",
    "target_session_attrs": "as libpq's",
    "connect_timeout": "as libpq's, in seconds",
    "application_name": "as libpq's",
}


class PostgresOptions(TableOptions):
    """How to write to PostgreSQL."""

    password: Secret | None = None
    """The password: ``{ file = "PATH" }`` or ``{ env = "NAME" }``. Without it libpq looks into
    PGPASSWORD and ``~/.pgpass``."""
    properties: Mapping[str, Secret] = {}
    """Parameters of libpq's connections: ``sslcert``, ``sslkey``, ``options``, timeouts. No value
    is ever shown; ``{ file = "PATH" }`` and ``{ env = "NAME" }`` are read from there."""


@dataclass(frozen=True, slots=True)
class PostgresDestination(TableDestination):
    """A database of PostgreSQL, as libpq addresses it."""

    scheme = "postgresql"
    service = "PostgreSQL"
    messaging_system = "postgresql"
    options = PostgresOptions
    name_bytes_max = 63

    user: str | None
    hosts: str
    database: str
    schema: str = "public"
    topic: str = TABLE_FIELD
    parameters: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"postgresql://{self.hosts}/{self.database}"

    @classmethod
    def read(cls, rest: str) -> Self | None:
        """As ``Destination.read``."""
        address, _, query = rest.partition("?")
        if not address.startswith("//"):
            return None
        user, found, _ = address[2:].rpartition("@")
        if found and ":" in user:
            raise refuse_password(
                'PGPASSWORD, ~/.pgpass, or delivery.postgresql.password = { file = "PATH" }'
            )
        authority, _, database = address[2:].partition("/")
        given = read_parameters(query, PARAMETERS)
        match = AUTHORITY.match(authority)
        if match is None or DATABASE.match(database) is None:
            return None
        schema, table = read_target(given, "public")
        others = tuple(
            (name, value) for name, value in given.items() if name not in TARGET_PARAMETERS
        )
        return cls(match["user"], match["hosts"] or "", database, schema, table, others)

    @property
    def server_address(self) -> str | None:
        """As ``Destination.server_address``."""
        host, _, port = self.hosts.rpartition(":")
        return ((host or port) or None) if "," not in self.hosts else None

    @property
    def address(self) -> str:
        """What libpq connects to."""
        user = f"{self.user}@" if self.user else ""
        return f"postgresql://{user}{self.hosts}/{self.database}"
