"""Reads past version garbage collection: what Spanner no longer keeps is read as it is now."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import TypeVar

from watcher.model.errors import VersionExpiredError
from watcher.model.log_events.reading import READ_AT_CURRENT_TIME

LOG = logging.getLogger("watcher.captures")

Result = TypeVar("Result")
Read = Callable[[int | None], Result]
"""Reads at a timestamp, or strongly."""

LATER = "rows that changed since then are delivered with a later window"
TWICE = "rows that changed since then are delivered again with their window"


def read_or_strongly(read: Read[Result], at: int, consequence: str = "") -> Result:
    """What a read at a timestamp gives; past version garbage collection, what a strong one gives.
    ``consequence`` is what that means for the rows, for the log; nothing is
    logged without one."""
    try:
        return read(at)
    except VersionExpiredError as error:
        if consequence:
            READ_AT_CURRENT_TIME.log(LOG, error=error, consequence=consequence)
        return read(None)


def stream_or_strongly(read: Read[Iterator[Result]], at: int, consequence: str) -> Iterator[Result]:
    """As ``read_or_strongly``, for a stream; the first read is under way at once.

    Raises VersionExpiredError when the versions expire in the middle of the stream: something was
    handed out by then.
    """
    return start_or_strongly(read(at), read, at, consequence)


def start_or_strongly(
    exact: Iterator[Result], read: Read[Iterator[Result]], at: int, consequence: str
) -> Iterator[Result]:
    """A stream that was opened at a timestamp; one that is read strongly when it cannot start."""

    def start(timestamp: int | None) -> Iterator[Result]:
        return fetch_first(exact if timestamp is not None else read(None))

    yield from read_or_strongly(start, at, consequence)


def fetch_first(results: Iterator[Result]) -> Iterator[Result]:
    """The same results; the first one was fetched."""
    return chain(list(islice(results, 1)), results)
