"""What Spanner refuses while a query runs, in words that say what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from google.api_core.exceptions import GoogleAPICallError, RetryError

from watcher.errors import IndexMissingError, WatcherError
from watcher.runners.spark.reading import Reading, schema_changed
from watcher.spanner.database import explain_error
from watcher.spanner.failures import FailureKind, classify_error
from watcher.spanner.outages import retry_until_answered

Answer = TypeVar("Answer")


@contextmanager
def explaining(reading: Reading) -> Iterator[None]:
    """Raises errors of Spanner's API as ours."""
    try:
        yield
    except (GoogleAPICallError, RetryError) as error:
        raise translated(error, reading) from error


def answered(reading: Reading, call: Callable[[], Answer]) -> Answer:
    """What a call of the driver's answers. It outlasts an outage of ``outageSeconds``, so it must
    be one that may be made twice; errors are raised as ours."""
    with explaining(reading):
        return retry_until_answered(reading.queries.outages, call)


def translated(error: GoogleAPICallError | RetryError, reading: Reading) -> WatcherError:
    """An error of Spanner's API as ours."""
    options = reading.options
    kind = classify_error(error)
    if kind is FailureKind.INDEX:
        return IndexMissingError(
            f"the index that {options.source} is read through is gone ({error.message}); make it"
            f" again: spanner-watcher ddl apply --database {options.address}"
            f" --table {reading.tables[0]}"
        )
    if kind is FailureKind.SCHEMA:
        return schema_changed(options, str(error.message))
    return explain_error(error, options.address)
