"""Databases that a command makes for itself in an instance of somebody else, and drops again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from google.api_core.exceptions import GoogleAPICallError, RetryError

from ddl.model.schema import Dialect
from watcher.model.errors import ConfigurationError
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import create_database, explain_error, open_client

CREATE_SECONDS_MAX = 600.0


@contextmanager
def create_temporarily(
    address: DatabaseAddress, statements: Sequence[str], dialect: Dialect = Dialect.GOOGLESQL
) -> Iterator[None]:
    """The database is there for the length of a block, also of one that fails. Raises
    ConfigurationError for one that exists, which stays as it is, and WatcherError where it cannot
    be made."""
    instance = open_client(address).instance(address.instance)
    if not create_database(instance, address, statements, dialect, CREATE_SECONDS_MAX):
        raise ConfigurationError(
            f"the database {address.path} exists: name one that does not, which is created now and"
            " dropped at the end"
        )
    try:
        yield
    finally:
        drop_database(address)


def drop_database(address: DatabaseAddress) -> bool:
    """Drops a database; whether it was there. Raises WatcherError where it cannot be dropped."""
    database = open_client(address).instance(address.instance).database(address.database)
    try:
        if not database.exists():
            return False
        database.drop()
    except (GoogleAPICallError, RetryError) as error:
        raise explain_error(error, address) from error
    return True
