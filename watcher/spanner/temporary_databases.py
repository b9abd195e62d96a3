"""Databases that a command makes for itself in an instance of somebody else, and drops again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from spanner_schema.model.schema import Dialect
from watcher.model.errors import ConfigurationError
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import create_database, explain_error, open_client
from watcher.spanner.failures import CALL_ERRORS

CREATE_SECONDS_MAX = 600.0


@contextmanager
def create_temporarily(
    address: DatabaseAddress, statements: Sequence[str], dialect: Dialect = Dialect.GOOGLESQL
) -> Iterator[None]:
    """The database is there for the length of a block, also of one that fails. Raises
    ConfigurationError for one that exists, which stays as it is, and WatcherError where it cannot
    be made."""
    instance = open_client(address).instance(address.instance)
    if is_there(address):
        raise refuse_existing(address)
    created = True  # also if the answer is lost
    try:
        created = create_database(instance, address, statements, dialect, CREATE_SECONDS_MAX)
        if not created:
            raise refuse_existing(address)
        yield
    finally:
        if created:
            drop_database(address)


def refuse_existing(address: DatabaseAddress) -> ConfigurationError:
    """The error of a database that is somebody's."""
    return ConfigurationError(
        f"the database {address.path} exists: name one that does not, which is created now and"
        " dropped at the end"
    )


def is_there(address: DatabaseAddress) -> bool:
    """Whether a database exists. Raises WatcherError where nobody says."""
    database = open_client(address).instance(address.instance).database(address.database)
    try:
        return bool(database.exists())
    except CALL_ERRORS as error:
        raise explain_error(error, address) from error


def drop_database(address: DatabaseAddress) -> bool:
    """Drops a database; whether it was there. Raises WatcherError where it cannot be dropped."""
    if not is_there(address):
        return False
    try:
        open_client(address).instance(address.instance).database(address.database).drop()
    except CALL_ERRORS as error:
        raise explain_error(error, address) from error
    return True
