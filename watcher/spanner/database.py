"""The only module that opens a google-cloud-spanner client."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from google.api_core.exceptions import (
    AlreadyExists,
    DeadlineExceeded,
    Forbidden,
    GoogleAPICallError,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    RetryError,
    ServiceUnavailable,
    Unauthenticated,
)
from google.cloud import spanner
from google.cloud.spanner_admin_database_v1 import DatabaseDialect
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.instance import Instance
from google.cloud.spanner_v1.transaction import Transaction

from spanner_schema.model.schema import Dialect
from watcher.model.errors import (
    AccessDeniedError,
    ConfigurationError,
    DatabaseNotFoundError,
    UnavailableError,
    WatcherError,
)
from watcher.spanner.address import EMULATOR_HOST, DatabaseAddress
from watcher.spanner.bounded_client import RETRY, BoundedDatabase, BoundedSpanner
from watcher.spanner.credentials import check_credentials, load_credentials
from watcher.spanner.failures import suggest_fix

CHECK_SECONDS_MAX = 10.0
REFUSED_SECONDS_MAX = 2.0
STATEMENT_SHOWN = 200
"""Characters of a statement in an error."""


def connect(address: DatabaseAddress) -> Database:
    """Opens a client for a database and checks that it answers.

    Uses the emulator that ``SPANNER_EMULATOR_HOST`` names, else Application Default Credentials.
    Raises UnavailableError, DatabaseNotFoundError or AccessDeniedError within seconds.
    """
    database = open_in(open_client(address, checked=True), address)
    check_database(database, address)
    return database


def open_database(address: DatabaseAddress) -> Database:
    """As ``connect``, without a call. Raises UnavailableError without credentials."""
    return open_in(open_client(address), address)


def open_in(client: spanner.Client, address: DatabaseAddress) -> Database:
    """A database of a client. No call."""
    instance = client.instance(address.instance)
    return BoundedDatabase(address.database, instance, address.database_role)


def open_client(address: DatabaseAddress, checked: bool = False) -> spanner.Client:
    """The client of a project. ``checked``: Google is asked for a token before. Raises
    UnavailableError without credentials, AccessDeniedError for those that it refuses."""
    endpoint = address.endpoint
    if EMULATOR_HOST in os.environ:
        return BoundedSpanner(project=address.project, disable_builtin_metrics=True)
    reached = endpoint.client_arguments if endpoint is not None else {}
    if endpoint is not None and not endpoint.is_google:
        return BoundedSpanner(**reached)
    credentials = load_credentials(endpoint.accounts if endpoint is not None else ())
    if checked:
        check_credentials(credentials)  # the client's own threads would outlive it for long
    return BoundedSpanner(project=address.project, credentials=credentials, **reached)


def create_on_emulator(
    address: DatabaseAddress,
    statements: Sequence[str],
    dialect: Dialect = Dialect.GOOGLESQL,
    dml: Sequence[str] = (),
) -> bool:
    """Creates a database, and its instance, on an emulator; False when it already exists.

    ``statements`` are its DDL; ``dml`` is executed then, in one transaction. Raises
    ConfigurationError with the server's message for an invalid name or statement; nothing is
    created. Spanner: a database of the PostgreSQL dialect is created empty and gets its schema
    afterwards, so that one whose statements are refused is dropped again, as it is for DML.
    """
    client = open_client(address)
    config = f"{client.project_name}/instanceConfigs/emulator-config"
    instance = client.instance(address.instance, configuration_name=config, node_count=1)
    try:
        if not instance.exists():
            instance.create().result(60)
    except (GoogleAPICallError, RetryError) as error:
        raise WatcherError(f"cannot create {address}: {error.message}") from error
    if not create_database(instance, address, statements, dialect):
        return False
    if dml:
        fill(instance.database(address.database), address, dml)
    return True


def create_database(
    instance: Instance,
    address: DatabaseAddress,
    statements: Sequence[str],
    dialect: Dialect = Dialect.GOOGLESQL,
    seconds_max: float = 60,
) -> bool:
    """Creates a database in an instance that is there; False when it already exists. Raises as
    ``create_on_emulator``."""
    try:
        if dialect is Dialect.POSTGRESQL:
            database = instance.database(
                address.database, database_dialect=DatabaseDialect.POSTGRESQL
            )
            create_postgresql(database, statements, seconds_max)
        else:
            database = instance.database(address.database, ddl_statements=tuple(statements))
            database.create().result(seconds_max)
    except AlreadyExists:
        return False
    except InvalidArgument as error:
        raise ConfigurationError(f"cannot create {address}: {error.message}") from error
    except (GoogleAPICallError, RetryError) as error:
        raise WatcherError(f"cannot create {address}: {error.message}") from error
    return True


def fill(database: Database, address: DatabaseAddress, dml: Sequence[str]) -> None:
    """Executes DML in a new database, which is dropped when a statement is refused."""
    number = 0

    def execute(transaction: Transaction) -> None:
        nonlocal number
        for number, statement in enumerate(dml):  # noqa: B007 - which one failed
            transaction.execute_update(statement)

    try:
        database.run_in_transaction(execute)
    except (GoogleAPICallError, RetryError) as error:
        database.drop()
        raise ConfigurationError(
            f"cannot fill {address}: {error.message}; statement: {dml[number][:STATEMENT_SHOWN]}"
        ) from error


def create_postgresql(database: Database, statements: Sequence[str], seconds_max: float) -> None:
    """Creates a database of the PostgreSQL dialect; without it if a statement is refused."""
    database.create().result(seconds_max)
    try:
        if statements:
            database.update_ddl(list(statements)).result(seconds_max)
    except GoogleAPICallError:
        database.drop()
        raise


def check_database(database: Database, address: DatabaseAddress) -> None:
    """One cheap call without the client's own minutes of retries: one that the service refuses for
    now is made again for a moment."""
    try:
        session = database.spanner_api.create_session(
            request={
                "database": address.path,
                "session": {"creator_role": address.database_role or ""},
            },
            timeout=CHECK_SECONDS_MAX,
            retry=RETRY.with_timeout(REFUSED_SECONDS_MAX),
        )
    except (GoogleAPICallError, RetryError) as error:
        raise explain_error(error, address) from error
    with suppress(GoogleAPICallError, RetryError):  # it expires by itself
        database.spanner_api.delete_session(name=session.name, timeout=CHECK_SECONDS_MAX)


def find_cause(error: GoogleAPICallError | RetryError) -> GoogleAPICallError | RetryError:
    """The error of the last try, of one that says how long it was tried."""
    cause = error.cause if isinstance(error, RetryError) else None
    return cause if isinstance(cause, GoogleAPICallError) else error


def explain_error(error: GoogleAPICallError | RetryError, address: DatabaseAddress) -> WatcherError:
    """The client's error as one of watcher's, with what to do."""
    if isinstance(error, NotFound):
        create = (
            f"create it: spanner-watcher emulator --database {address} --schema FILE"
            if EMULATOR_HOST in os.environ
            else "create it"
        )
        return DatabaseNotFoundError(
            f"database {address} does not exist ({error.message}); check its name, or {create}"
        )
    if isinstance(error, Forbidden | Unauthenticated):
        return AccessDeniedError(
            f"no permission to read {address} ({error.message}); {suggest_fix(error)}"
        )
    if isinstance(error, ServiceUnavailable | DeadlineExceeded | RetryError):
        where = os.environ.get(EMULATOR_HOST)
        why = find_cause(error).message
        advice = (
            f"nothing answers at {EMULATOR_HOST}={where}; start it with 'spanner-watcher emulator'"
            if where
            else f"Spanner does not answer ({why}); check the network, and the endpoint and the"
            " certificates of the address (docs/networks.md)"
        )
        return UnavailableError(f"cannot reach {address}: {advice}")
    if isinstance(error, ResourceExhausted):
        return UnavailableError(
            f"{address} has no room for this call now, try later ({error.message})"
        )
    return WatcherError(f"{address} answered: {error.message}")
