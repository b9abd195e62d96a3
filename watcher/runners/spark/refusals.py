"""What Spanner refuses while a query runs, in words that say what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from google.api_core.exceptions import GoogleAPICallError, RetryError

from watcher.model.errors import IndexMissingError, WatcherError
from watcher.runners.spark.scan import Scan, schema_change_error
from watcher.spanner.database import explain_error
from watcher.spanner.failures import FailureKind, classify_error
from watcher.spanner.outages import retry_until_answered

Answer = TypeVar("Answer")


@contextmanager
def translate_errors(scan: Scan) -> Iterator[None]:
    """Raises errors of Spanner's API as ours."""
    try:
        yield
    except (GoogleAPICallError, RetryError) as error:
        raise translate_error(error, scan) from error


def call_with_retries(scan: Scan, call: Callable[[], Answer]) -> Answer:
    """What a call of the driver's answers. It outlasts an outage of ``outageSeconds``, so it must
    be one that may be made twice; errors are raised as ours."""
    with translate_errors(scan):
        return retry_until_answered(scan.queries.outages, call)


def translate_error(error: GoogleAPICallError | RetryError, scan: Scan) -> WatcherError:
    """An error of Spanner's API as ours."""
    options = scan.options
    kind = classify_error(error)
    if kind is FailureKind.INDEX:
        return IndexMissingError(
            f"the index that {options.source} is read through was dropped ({error.message}): create"
            f" it again with: spanner-watcher ddl apply --database {options.address.for_writes}"
            f" --table {scan.tables[0]}"
        )
    if kind is FailureKind.SCHEMA:
        return schema_change_error(options, str(error.message))
    return explain_error(error, options.address)
