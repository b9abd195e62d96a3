"""Where a database is: plain values, without a client."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from watcher.model.errors import AddressError

if TYPE_CHECKING:
    from pydantic import ConfigDict

EMULATOR_HOST = "SPANNER_EMULATOR_HOST"
PATH = re.compile(
    r"(?:spanner://)?projects/(?P<project>[^/]+)/instances/(?P<instance>[^/]+)"
    r"/databases/(?P<database>[^/]+)\Z"
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A Spanner that is not Google's own: Spanner Omni. Certificates are paths of files."""

    __pydantic_config__: ClassVar[ConfigDict] = {"extra": "forbid"}

    api_endpoint: str
    """Where it listens: ``HOST:PORT``."""
    plain_text: bool = False
    """Without TLS."""
    ca_certificate: str | None = None
    """The file with the certificate of the authority that signed the server's."""
    client_certificate: str | None = None
    """The file with the client's certificate, for mutual TLS; with ``client_key``."""
    client_key: str | None = None
    """The file with the client's key."""


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """Where a database is; picklable, so that executors open clients of their own."""

    project: str
    instance: str
    database: str
    endpoint: Endpoint | None = None

    @classmethod
    def parse(cls, text: str, endpoint: Endpoint | None = None) -> DatabaseAddress:
        """``[spanner://]projects/P/instances/I/databases/D``. Raises AddressError."""
        match = PATH.match(text)
        if match is None:
            raise AddressError(
                f"'{text}' does not name a database;"
                " write spanner://projects/PROJECT/instances/INSTANCE/databases/DATABASE"
            )
        return cls(**match.groupdict(), endpoint=endpoint)

    def __str__(self) -> str:
        return f"spanner://{self.path}"

    @property
    def path(self) -> str:
        """The resource name that Spanner uses."""
        return f"projects/{self.project}/instances/{self.instance}/databases/{self.database}"
