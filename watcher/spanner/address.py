"""Where a database is, and how it is reached: plain values, without a client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote

from spanner_schema.model.resource_ids import IdRules
from spanner_schema.model.suggestions import suggest_name
from watcher.model.errors import AddressError
from watcher.spanner.read_options import DirectedRead, parse_replicas, write_replicas

if TYPE_CHECKING:
    from pydantic import ConfigDict

EMULATOR_HOST = "SPANNER_EMULATOR_HOST"
CLOUD_ENDPOINT = "spanner.googleapis.com:443"
GOOGLE_HOST = re.compile(r"(?:[\w-]+\.)*googleapis\.com(?::\d+)?\Z", re.IGNORECASE)
PROJECT = re.compile(r"[a-z0-9][a-z0-9.:-]*\Z")
"""Ids and numbers of projects, also of those of a domain. Emulators take any length."""
PATH = re.compile(
    r"(?:spanner://)?projects/(?P<project>[^/]+)/instances/(?P<instance>[^/]+)"
    r"/databases/(?P<database>[^/?]+)(?:\?(?P<parameters>.+))?\Z"
)
ACCOUNT = re.compile(r"[\w.-]+@[\w.-]+\.[\w-]+\Z", re.ASCII)
ROLE = re.compile(r"[A-Za-z_]\w*\Z")
TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where Spanner's API is: a regional endpoint of Google's, a private one, or Spanner Omni.
    Certificates are paths of files.

    Raises ValueError for what does not go together.
    """

    __pydantic_config__: ClassVar[ConfigDict] = {"extra": "forbid"}

    api_endpoint: str = CLOUD_ENDPOINT
    """Where it listens: ``HOST:PORT``, such as ``spanner.europe-west3.rep.googleapis.com:443``."""
    google_credentials: bool | None = None
    """Whether calls carry Google's credentials. Without it: to hosts of googleapis.com, and not to
    others, which are Spanner Omni then."""
    plain_text: bool = False
    """Without TLS."""
    ca_certificate: str | None = None
    """The file with the certificate of the authority that signed the server's, where the machine
    does not know it."""
    client_certificate: str | None = None
    """The file with the client's certificate, for mutual TLS; with ``client_key``."""
    client_key: str | None = None
    """The file with the client's key."""
    impersonate: str | None = None
    """The service account that calls act as. Before it, with commas, accounts that each may act as
    the next, as gcloud's ``--impersonate-service-account`` has them."""

    def __post_init__(self) -> None:
        if (self.client_certificate is None) != (self.client_key is None):
            raise ValueError("'client_certificate' and 'client_key' need each other")
        self._check_impersonation()
        if "/" in self.api_endpoint:
            raise ValueError(f"'{self.api_endpoint}' is not an endpoint: write HOST:PORT")
        files = (self.ca_certificate, self.client_certificate)
        if self.plain_text and any(each is not None for each in files):
            raise ValueError("'plain_text' is without TLS, which has no certificates")
        if self.plain_text and self.is_google:
            raise ValueError("'plain_text' would send Google's credentials for anybody to read")

    def _check_impersonation(self) -> None:
        for account in self.accounts:
            if ACCOUNT.match(account) is None:
                raise ValueError(
                    f"'{account}' is not the e-mail address of a service account: write"
                    " impersonate=NAME@PROJECT.iam.gserviceaccount.com"
                )
        if self.accounts and not self.is_google:
            raise ValueError(
                f"'impersonate' needs Google's credentials, which '{self.api_endpoint}' does not"
                " get: add google_credentials=true"
            )

    @property
    def accounts(self) -> tuple[str, ...]:
        """The service accounts, each of which acts as the next; calls act as the last."""
        return tuple(self.impersonate.split(",")) if self.impersonate is not None else ()

    @property
    def is_google(self) -> bool:
        """Whether calls carry Google's credentials."""
        if self.google_credentials is not None:
            return self.google_credentials
        return GOOGLE_HOST.match(self.api_endpoint) is not None

    @property
    def client_arguments(self) -> dict[str, Any]:
        """What the client takes, beside project and credentials, to reach it."""
        arguments = {
            "client_options": {"api_endpoint": self.api_endpoint},
            "ca_certificate": self.ca_certificate,
            "client_certificate": self.client_certificate,
            "client_key": self.client_key,
        }
        if self.is_google:
            return arguments
        return arguments | {"instance_type": "omni", "use_plain_text": self.plain_text}


PARAMETERS = (
    "database_role",
    "endpoint",
    *(each.name for each in fields(Endpoint) if each.name != "api_endpoint"),
    "directed_read",
    "auto_failover_disabled",
)
"""What may stand after a database, as ``?NAME=VALUE&NAME=VALUE``."""


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """Where a database is, as which of its roles it is used, and which replicas serve the reads of
    captures; picklable, so that executors open clients of their own.

    With a ``database_role`` Spanner's fine-grained access control holds: sessions may do what the
    role may. Ids that no instance or database can have are an AddressError.
    """

    project: str
    instance: str
    database: str
    endpoint: Endpoint | None = None
    database_role: str | None = None
    directed_read: DirectedRead | None = None

    def __post_init__(self) -> None:
        for problem in (
            None if PROJECT.match(self.project) else f"'{self.project}' is not the id of a project",
            IdRules.INSTANCE.explain(self.instance),
            IdRules.DATABASE.explain(self.database),
        ):
            if problem is not None:
                raise AddressError(f"{self} does not name a database: {problem}")

    @classmethod
    def parse(cls, text: str, endpoint: Endpoint | None = None) -> DatabaseAddress:
        """``[spanner://]projects/P/instances/I/databases/D[?NAME=VALUE&...]``. Raises
        AddressError."""
        match = PATH.match(text)
        if match is None:
            raise AddressError(
                f"'{text}' does not name a database;"
                " write spanner://projects/PROJECT/instances/INSTANCE/databases/DATABASE, and"
                " ?database_role=ROLE after it to use it as a role"
            )
        named = match.groupdict()
        given = split_parameters(text, named.pop("parameters") or "")
        try:
            own = build_endpoint(given)
            directed = build_directed_read(given)
        except ValueError as error:
            raise AddressError(f"'{text}': {error}") from error
        if own is not None and endpoint is not None:
            raise AddressError(
                f"'{text}' and [endpoint] both say where Spanner's API is: use one of them"
            )
        return cls(
            **named,
            endpoint=own or endpoint,
            database_role=given.get("database_role"),
            directed_read=directed,
        )

    @classmethod
    def parse_for_writes(cls, text: str, endpoint: Endpoint | None = None) -> DatabaseAddress:
        """As ``parse``, for what may write. Raises AddressError for an address with a directed
        read: Spanner refuses it in read-write transactions, which the leader serves."""
        address = cls.parse(text, endpoint)
        if address.directed_read is not None:
            raise AddressError(
                f"'{text}': directed_read is for the reads of captures, copies and status; the"
                " leader alone serves positions, leases, clearing and changes of the schema: leave"
                " directed_read out"
            )
        return address

    def __str__(self) -> str:
        given = self._list_parameters()
        text = "&".join(f"{name}={quote_value(value)}" for name, value in given.items())
        return f"spanner://{self.path}?{text}" if text else f"spanner://{self.path}"

    def _list_parameters(self) -> dict[str, str]:
        """What ``parse`` reads again."""
        given: dict[str, str] = {}
        if self.database_role:
            given["database_role"] = self.database_role
        if self.endpoint is not None:
            given["endpoint"] = self.endpoint.api_endpoint
            for name in PARAMETERS:
                value = getattr(self.endpoint, name, None)
                if value is not None and value is not False:
                    given[name] = "true" if value is True else value
            if self.endpoint.google_credentials is False:
                given["google_credentials"] = "false"
        if self.directed_read is not None:
            given["directed_read"] = write_replicas(self.directed_read)
            if self.directed_read.auto_failover_disabled:
                given["auto_failover_disabled"] = "true"
        return given

    @property
    def for_writes(self) -> DatabaseAddress:
        """The same without a directed read."""
        return replace(self, directed_read=None)

    @property
    def path(self) -> str:
        """The resource name that Spanner uses, the same for every role."""
        return f"projects/{self.project}/instances/{self.instance}/databases/{self.database}"


def split_parameters(text: str, parameters: str) -> dict[str, str]:
    """What stands after a database, by name. Raises AddressError."""
    given: dict[str, str] = {}
    for each in parameters.split("&") if parameters else ():
        name, _, value = each.partition("=")
        if name not in PARAMETERS:
            suggestion = suggest_name(name, PARAMETERS, "known parameters")
            raise AddressError(f"'{text}': unknown parameter '{name}'; {suggestion}")
        if not value or name in given:
            raise AddressError(f"'{text}': write {name}=VALUE once")
        given[name] = unquote(value)
    role = given.get("database_role")
    if role is not None and ROLE.match(role) is None:
        raise AddressError(f"'{text}': '{role}' is not the name of a database role")
    return given


def build_endpoint(given: Mapping[str, str]) -> Endpoint | None:
    """The endpoint that parameters name. Raises ValueError."""
    values: dict[str, str | bool | None] = {}
    for each in fields(Endpoint):
        name = "endpoint" if each.name == "api_endpoint" else each.name
        if name in given:
            truth = str(each.type).startswith("bool")
            values[each.name] = parse_truth(name, given[name]) if truth else given[name]
    return Endpoint(**values) if values else None  # type: ignore[arg-type]


def build_directed_read(given: Mapping[str, str]) -> DirectedRead | None:
    """The replicas that parameters name. Raises ValueError."""
    disabled = given.get("auto_failover_disabled")
    if "directed_read" in given:
        waits = disabled is not None and parse_truth("auto_failover_disabled", disabled)
        return parse_replicas(given["directed_read"], waits)
    if disabled is not None:
        raise ValueError("'auto_failover_disabled' needs 'directed_read'")
    return None


def parse_truth(name: str, text: str) -> bool:
    """Raises ValueError."""
    if text not in TRUTHS:
        raise ValueError(f"'{name}' is true or false, not '{text}'")
    return TRUTHS[text]


def quote_value(value: str) -> str:
    """A value as it stands in an address."""
    return value.replace("%", "%25").replace("&", "%26")
