"""What happens while a database does not answer: retries at growing intervals, two log lines."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from google.api_core.exceptions import (
    BadGateway,
    DeadlineExceeded,
    InternalServerError,
    ResourceExhausted,
    RetryError,
    ServiceUnavailable,
)
from google.api_core.retry import exponential_sleep_generator

from watcher.model.errors import UnavailableError
from watcher.model.log_events.running import (
    CALL_ACCEPTED,
    CALL_REFUSED,
    DATABASE_AVAILABLE,
    DATABASE_UNAVAILABLE,
)
from watcher.spanner.failures import OUTAGE_SECONDS_MAX

Answer = TypeVar("Answer")

LOG = logging.getLogger("watcher")
PAUSE_SECONDS_MIN = 0.02
PAUSE_SECONDS_MAX = 5.0
STREAM_OUTAGE_SECONDS = 30.0
"""How long one call of a watcher is retried; the watcher itself goes on without limit."""
ANNOUNCED_AFTER_SECONDS = 1.0
"""A connection that is back sooner was not an outage, and is not worth a line."""
NO_ANSWER = (
    BadGateway,
    DeadlineExceeded,
    InternalServerError,
    ResourceExhausted,
    RetryError,
    ServiceUnavailable,
)
"""Errors of the client that do not come from a working server: it is away, or has no room for this
call now (admission control, quotas)."""


def is_outage(error: BaseException) -> bool:
    """True for an error that means that the server does not answer."""
    return isinstance(error, (*NO_ANSWER, UnavailableError))


def iterate_pauses(
    shortest: float = PAUSE_SECONDS_MIN, longest: float = PAUSE_SECONDS_MAX
) -> Iterator[float]:
    """How many seconds to wait before each retry of a call: longer each time, with jitter."""
    pauses: Iterator[float] = exponential_sleep_generator(shortest, longest)
    return pauses


class Outages:
    """Whether a database answers one watcher or one reader. The first call without an answer starts
    an outage, the next answer ends it; both are logged once, however many calls fail meanwhile."""

    def __init__(self, database: str, limit_seconds: float = STREAM_OUTAGE_SECONDS) -> None:
        """``limit_seconds``: how long a call is retried before it is an error."""
        self.database = database
        self.limit_seconds = limit_seconds
        self.stopping: threading.Event | None = None
        """Once it is set, nothing is retried."""
        self.failed_calls = 0
        """Calls that got no answer, or were refused for now."""
        self._lock = threading.Lock()
        self._since: float | None = None
        self._ended: float | None = None
        self._announced = False

    def record_error(self, error: BaseException) -> bool:
        """Records an error that means that there was no answer; False for any other error, which is
        the caller's to report."""
        if not is_outage(error):
            return False
        self.record_failure(error)
        return True

    def record_failure(self, error: BaseException) -> None:
        """A call got no answer. One that the client retried for seconds announces an outage."""
        retried = OUTAGE_SECONDS_MAX if isinstance(error, RetryError) else 0.0
        with self._lock:
            self.failed_calls += 1
            now = time.monotonic()
            if self._since is None:
                self._since = now - retried
            if self._announced or now - self._since < ANNOUNCED_AFTER_SECONDS:
                return
            self._announced = True
        DATABASE_UNAVAILABLE.log(LOG, database=self.database, error=error)

    @property
    def announced(self) -> bool:
        """Whether the log has the beginning of an outage that lasts."""
        return self._announced

    def record_answer(self) -> None:
        """A call got an answer."""
        if self._since is None:
            return
        with self._lock:
            since, announced, now = self._since, self._announced, time.monotonic()
            self._since, self._announced, self._ended = None, False, now
        if announced and since is not None:
            DATABASE_AVAILABLE.log(LOG, database=self.database, seconds=now - since)

    def happened_within(self, seconds: float) -> bool:
        """Whether the database does not answer now, or did not so recently."""
        with self._lock:
            recent = self._ended is not None and time.monotonic() - self._ended < seconds
            return recent or self._since is not None

    def pause(self, seconds: float) -> None:
        """Waits before a retry. Raises UnavailableError when the watcher is to stop."""
        if self.stopping is None:
            time.sleep(seconds)
        elif self.stopping.wait(seconds):
            raise UnavailableError(f"{self.database} did not answer before the watcher was stopped")


class CallRetries:
    """The retries of one call, or of one stream from its last progress on. A call that is refused
    while others are answered is no outage: its beginning and its end are logged, too."""

    def __init__(self, outages: Outages) -> None:
        self._outages = outages
        self._announced = False
        self._pauses: Iterator[float] | None = None
        self._since = 0.0

    def wait_after(self, error: Exception, at_least: float = 0.0) -> None:
        """Waits before the next try, ``at_least`` as many seconds as the server asks for. Raises
        UnavailableError when the limit has passed, or passes meanwhile."""
        self._outages.record_failure(error)
        now = time.monotonic()
        if self._pauses is None:
            self._pauses, self._since = iterate_pauses(), now
        self._announce(now, error)
        limit = self._outages.limit_seconds
        left = self._since + limit - now
        if left <= at_least:
            raise UnavailableError(
                f"{self._outages.database} has not answered for {limit:.0f} s: {error}"
            ) from error
        self._outages.pause(max(min(next(self._pauses), left), at_least))

    def _announce(self, now: float, error: Exception) -> None:
        refused = now - self._since >= ANNOUNCED_AFTER_SECONDS
        if refused and not self._announced and not self._outages.announced:
            self._announced = True
            CALL_REFUSED.log(LOG, database=self._outages.database, error=error)

    def reset(self) -> None:
        """The call, or the next part of the stream, got an answer: the limit starts again."""
        self._pauses = None
        if self._announced:
            self._announced, seconds = False, time.monotonic() - self._since
            CALL_ACCEPTED.log(LOG, database=self._outages.database, seconds=seconds)
        self._outages.record_answer()


def retry_until_answered(outages: Outages, call: Callable[[], Answer]) -> Answer:
    """What a call returns; it is retried while the server does not answer.

    Only for calls that may run twice. Raises UnavailableError when the limit has passed.
    """
    retries = CallRetries(outages)
    while True:
        try:
            answer = call()
        except NO_ANSWER as error:
            retries.wait_after(error)
        else:
            retries.reset()
            return answer
