"""What a catalog of Iceberg says when something fails, in the words of a replica."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    CommitStateUnknownException,
    RESTError,
    ServerError,
    ServiceUnavailableError,
    TooManyRequestsError,
    ValidationError,
)
from requests import RequestException
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from watcher.model.errors import ReplicaError, StoreUnavailableError
from watcher.replica.stores.stored_files import explain_store_error

AWAY = (
    AuthorizationExpiredError,
    CommitStateUnknownException,
    ServerError,
    ServiceUnavailableError,
    TooManyRequestsError,
    RequestException,
    OperationalError,
)
"""What may go away by itself; after it nobody knows whether a commit was done."""
FAILED = (RESTError, SQLAlchemyError, ValidationError)


@contextmanager
def explain_catalog(place: str) -> Iterator[None]:
    """The errors of a catalog: StoreUnavailableError for what may go away, else ReplicaError."""
    try:
        yield
    except AWAY as error:
        raise StoreUnavailableError(
            f"the catalog of {place} does not answer: {shorten(error)}"
        ) from error
    except FAILED as error:
        raise ReplicaError(
            f"cannot read or write the catalog of {place}: {shorten(error)}"
        ) from error
    except OSError as error:  # metadata are files
        raise explain_store_error(place, error) from error


def shorten(error: Exception) -> str:
    """An error without the statement and its values."""
    return str(error.orig if isinstance(error, DBAPIError) and error.orig else error)
