"""The only module that opens a google-cloud-spanner client."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from google.api_core.exceptions import (
    AlreadyExists,
    DeadlineExceeded,
    Forbidden,
    GoogleAPICallError,
    NotFound,
    RetryError,
    ServiceUnavailable,
    Unauthenticated,
)
from google.auth.exceptions import DefaultCredentialsError
from google.cloud import spanner
from google.cloud.spanner_v1.database import Database
from pydantic import ConfigDict

from watcher.errors import (
    AccessDeniedError,
    AddressError,
    DatabaseNotFoundError,
    UnavailableError,
    WatcherError,
)
from watcher.spanner.bounded_client import BoundedDatabase

EMULATOR_HOST = "SPANNER_EMULATOR_HOST"
CHECK_SECONDS_MAX = 10.0
PATH = re.compile(
    r"(?:spanner://)?projects/(?P<project>[^/]+)/instances/(?P<instance>[^/]+)"
    r"/databases/(?P<database>[^/]+)\Z"
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A Spanner that is not Google's own: Spanner Omni. Certificates are paths of files.

    Without ``plain_text`` the connection is TLS; with ``client_certificate`` and ``client_key`` it
    is mutual.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    api_endpoint: str
    plain_text: bool = False
    ca_certificate: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None


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


def connect(address: DatabaseAddress) -> Database:
    """Opens a client for a database and makes sure that it answers.

    ``SPANNER_EMULATOR_HOST`` leads to an emulator, else Application Default Credentials are used.
    Raises UnavailableError, DatabaseNotFoundError or AccessDeniedError within seconds.
    """
    database = open_database(address)
    check_database(database, address)
    return database


def open_database(address: DatabaseAddress) -> Database:
    """As ``connect``, without a call. Raises UnavailableError where there are no credentials."""
    return BoundedDatabase(address.database, open_client(address).instance(address.instance))


def open_client(address: DatabaseAddress) -> spanner.Client:
    """The client of a project. Raises UnavailableError where there are no credentials."""
    endpoint = address.endpoint
    if endpoint is not None and EMULATOR_HOST not in os.environ:
        return spanner.Client(
            client_options={"api_endpoint": endpoint.api_endpoint},
            instance_type="omni",
            use_plain_text=endpoint.plain_text,
            ca_certificate=endpoint.ca_certificate,
            client_certificate=endpoint.client_certificate,
            client_key=endpoint.client_key,
        )
    try:
        return spanner.Client(
            project=address.project, disable_builtin_metrics=EMULATOR_HOST in os.environ
        )
    except DefaultCredentialsError as error:
        raise UnavailableError(
            "no Google Cloud credentials were found: run 'gcloud auth application-default login',"
            f" or set {EMULATOR_HOST} to use an emulator"
        ) from error


def create_on_emulator(address: DatabaseAddress, statements: Sequence[str]) -> bool:
    """Makes a database, and its instance, on an emulator; False when it was there already.

    Raises WatcherError with the server's words when a statement is wrong; then nothing is made.
    """
    client = open_client(address)
    config = f"{client.project_name}/instanceConfigs/emulator-config"
    instance = client.instance(address.instance, configuration_name=config, node_count=1)
    try:
        if not instance.exists():
            instance.create().result(60)
        instance.database(address.database, ddl_statements=tuple(statements)).create().result(60)
    except AlreadyExists:
        return False
    except (GoogleAPICallError, RetryError) as error:
        raise WatcherError(f"cannot create {address}: {error.message}") from error
    return True


def check_database(database: Database, address: DatabaseAddress) -> None:
    """One cheap call without the client's own minutes of retries."""
    try:
        session = database.spanner_api.create_session(
            request={"database": address.path}, timeout=CHECK_SECONDS_MAX, retry=None
        )
        database.spanner_api.delete_session(name=session.name, timeout=CHECK_SECONDS_MAX)
    except (GoogleAPICallError, RetryError) as error:
        raise explain_error(error, address) from error


def explain_error(error: GoogleAPICallError | RetryError, address: DatabaseAddress) -> WatcherError:
    """The client's error as one of ours, with what to do."""
    if isinstance(error, NotFound):
        return DatabaseNotFoundError(
            f"there is no database {address} ({error.message}); check the name, or create it first"
        )
    if isinstance(error, Forbidden | Unauthenticated):
        return AccessDeniedError(
            f"no permission to read {address} ({error.message});"
            " the role roles/spanner.databaseReader is needed"
        )
    if isinstance(error, ServiceUnavailable | DeadlineExceeded | RetryError):
        where = os.environ.get(EMULATOR_HOST)
        advice = (
            f"nothing answers at {EMULATOR_HOST}={where}; start it with 'spanner-watcher emulator'"
            if where
            else "Cloud Spanner does not answer; is there a network?"
        )
        return UnavailableError(f"cannot reach {address}: {advice}")
    return WatcherError(f"{address} answered: {error.message}")
