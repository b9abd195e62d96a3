"""What is done while a database does not answer: tries at growing intervals, and two log lines."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from google.api_core.exceptions import (
    BadGateway,
    DeadlineExceeded,
    InternalServerError,
    RetryError,
    ServiceUnavailable,
)

from watcher.errors import UnavailableError
from watcher.spanner.bounded_client import OUTAGE_SECONDS_MAX

Answer = TypeVar("Answer")

LOG = logging.getLogger("watcher")
PAUSE_SECONDS_MIN = 0.02
PAUSE_SECONDS_MAX = 5.0
STREAM_OUTAGE_SECONDS = 30.0
"""How long one call of a watcher is tried again; the watcher itself goes on without limit."""
ANNOUNCED_AFTER_SECONDS = 1.0
"""A broken connection that is taken up again sooner is no outage, and not worth a line."""
NO_ANSWER = (BadGateway, DeadlineExceeded, InternalServerError, RetryError, ServiceUnavailable)
"""Errors of the client that do not come from a server that works."""


def is_outage(error: BaseException) -> bool:
    """True for an error that says that the server does not answer."""
    return isinstance(error, (*NO_ANSWER, UnavailableError))


def pause_seconds(failures: int) -> float:
    """How long to wait before a call is tried again: longer each time, with jitter."""
    longest = min(PAUSE_SECONDS_MIN * 2.0 ** (failures - 1), PAUSE_SECONDS_MAX)
    return longest * random.uniform(0.5, 1.0)


class Outages:
    """Whether a database answers one watcher or one reader. The first call without an answer begins
    an outage and the next answer ends it; both are logged once, whatever is tried meanwhile."""

    def __init__(self, database: str, limit_seconds: float = STREAM_OUTAGE_SECONDS) -> None:
        """``limit_seconds``: how long a call is tried again before it is an error."""
        self.database = database
        self.limit_seconds = limit_seconds
        self.stopping: threading.Event | None = None
        """Once it is set nothing is tried again."""
        self._lock = threading.Lock()
        self._since: float | None = None
        self._announced = False

    @property
    def under_way(self) -> bool:
        """True from a call without an answer to the next answer."""
        return self._since is not None

    def failed(self, error: BaseException) -> None:
        """A call got no answer. One that the client has tried for seconds announces an outage."""
        tried = OUTAGE_SECONDS_MAX if isinstance(error, RetryError) else 0.0
        with self._lock:
            now = time.monotonic()
            if self._since is None:
                self._since = now - tried
            if self._announced or now - self._since < ANNOUNCED_AFTER_SECONDS:
                return
            self._announced = True
        LOG.warning("%s does not answer; trying again until it does: %s", self.database, error)

    def answered(self) -> None:
        """A call got an answer."""
        if self._since is None:
            return
        with self._lock:
            since, announced = self._since, self._announced
            self._since, self._announced = None, False
        if announced and since is not None:
            seconds = time.monotonic() - since
            LOG.warning("%s answers again, after %.1f s without an answer", self.database, seconds)

    def pause(self, seconds: float) -> None:
        """Waits before a call is tried again. Raises UnavailableError when it is time to stop."""
        if self.stopping is None:
            time.sleep(seconds)
        elif self.stopping.wait(seconds):
            raise UnavailableError(f"{self.database} did not answer, and it is time to stop")


class Tries:
    """The tries of one call, or of one stream from its last progress on."""

    def __init__(self, outages: Outages) -> None:
        self._outages = outages
        self._failures = 0
        self._since: float | None = None

    def failed(self, error: Exception) -> None:
        """Waits before the next try. Raises UnavailableError when the limit has passed."""
        self._outages.failed(error)
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        self._failures += 1
        left = self._since + self._outages.limit_seconds - now
        if left <= 0:
            raise UnavailableError(
                f"{self._outages.database} has not answered for"
                f" {self._outages.limit_seconds:.0f} s: {error}"
            ) from error
        self._outages.pause(min(pause_seconds(self._failures), left))

    def answered(self) -> None:
        """The call, or the next part of the stream, got an answer: the limit begins anew."""
        self._failures, self._since = 0, None
        self._outages.answered()


def outlasting(outages: Outages, call: Callable[[], Answer]) -> Answer:
    """What a call answers; it is tried again while the server does not answer.

    Only for calls that may be made twice. Raises UnavailableError when the limit has passed.
    """
    tries = Tries(outages)
    while True:
        try:
            answer = call()
        except NO_ANSWER as error:
            tries.failed(error)
        else:
            tries.answered()
            return answer
