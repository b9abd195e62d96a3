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
    r"/databases/(?P<database>[^/?]+)(?:\?database_role=(?P<database_role>[A-Za-z_]\w*))?\Z"
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
    """Where a database is, and as which of its roles it is used; picklable, so that executors open
    clients of their own.

    With a ``database_role`` Spanner's fine-grained access control holds: sessions may do what the
    role may.
    """

    project: str
    instance: str
    database: str
    endpoint: Endpoint | None = None
    database_role: str | None = None

    @classmethod
    def parse(cls, text: str, endpoint: Endpoint | None = None) -> DatabaseAddress:
        """``[spanner://]projects/P/instances/I/databases/D[?database_role=R]``. Raises
        AddressError."""
        match = PATH.match(text)
        if match is None:
            raise AddressError(
                f"'{text}' does not name a database;"
                " write spanner://projects/PROJECT/instances/INSTANCE/databases/DATABASE, and"
                " ?database_role=ROLE after it to use it as a role"
            )
        return cls(**match.groupdict(), endpoint=endpoint)

    def __str__(self) -> str:
        role = f"?database_role={self.database_role}" if self.database_role else ""
        return f"spanner://{self.path}{role}"

    @property
    def path(self) -> str:
        """The resource name that Spanner uses, the same for every role."""
        return f"projects/{self.project}/instances/{self.instance}/databases/{self.database}"
