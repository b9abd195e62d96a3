"""One stream of a query's result, taken up again where it broke or where its deadline passed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import grpc
from google.api_core.exceptions import (
    DeadlineExceeded,
    FailedPrecondition,
    InternalServerError,
    NotFound,
    ServiceUnavailable,
    from_grpc_error,
)
from google.cloud.spanner_v1 import ExecuteSqlRequest, ReadRequest

from watcher.errors import UnavailableError, VersionExpiredError
from watcher.spanner.outages import Outages, Tries, outlasting
from watcher.spanner.results.wire import ResultPart
from watcher.spanner.sessions import SharedSession, StreamCall
from watcher.spanner.timestamps import timestamp_text

STREAM_SECONDS_MAX = 3600.0
"""The deadline of one call. The time that the consumer takes for its rows counts, too: a stream
whose deadline passes goes on in another call."""
STALLS_MAX = 3
"""So many deadlines in a row without a row between are an error."""

Request = ExecuteSqlRequest | ReadRequest


@dataclass(frozen=True, slots=True)
class Resumption:
    """How one stream is begun, and begun again.

    ``read_timestamp`` is that of the request, None reads strongly. Without ``own_session`` the
    request names the session, which cannot be replaced. ``restarted`` is called each time.
    """

    session: SharedSession
    call: StreamCall
    request: Request
    outages: Outages
    read_timestamp: int | None
    own_session: bool
    restarted: Callable[[], None]

    def messages(self) -> Iterator[ResultPart]:
        """The messages of the stream. It is under way at once, before the first one is asked for.

        A message is passed on when a resume token covers it: no row is repeated or missing. Raises
        VersionExpiredError, and UnavailableError when the server does not answer for too long.
        """
        return self._continued(self._begin())

    def _begin(self) -> Iterable[ResultPart]:
        if self.own_session:
            self.request.session = outlasting(self.outages, lambda: self.session.name)
        metadata = self.session.routed(self.request.session)
        return self.call(self.request, metadata=metadata, timeout=STREAM_SECONDS_MAX)

    def _continued(self, begun: Iterable[ResultPart]) -> Iterator[ResultPart]:
        tries, stalls = Tries(self.outages), 0
        while True:
            token = self.request.resume_token
            try:
                yield from self._covered(begun, tries)
                return
            except (ServiceUnavailable, InternalServerError) as error:
                self.restarted()
                tries.failed(error)
            except DeadlineExceeded as error:
                self.restarted()
                stalls = stalls + 1 if token == self.request.resume_token else 0
                self._check_stalls(stalls, error)
            except NotFound as error:
                if not self.own_session:
                    raise
                self.session.forget(self.request.session, error)
            except FailedPrecondition as error:
                raise expired_or(error, self.read_timestamp) from error
            begun = self._begin()

    def _covered(self, begun: Iterable[ResultPart], tries: Tries) -> Iterator[ResultPart]:
        """The messages of one call that a resume token covers, or the end of the result."""
        waiting: list[ResultPart] = []
        for message in received(begun):
            waiting.append(message)
            if message.resume_token:
                tries.answered()
                self.request.resume_token = message.resume_token
                yield from waiting
                waiting = []
        tries.answered()
        yield from waiting

    def _check_stalls(self, stalls: int, error: DeadlineExceeded) -> None:
        """A deadline that passes because the consumer is slow is no failure of the server's."""
        if stalls >= STALLS_MAX:
            raise UnavailableError(
                f"{self.session.database_name} gave no row of a stream within"
                f" {STREAM_SECONDS_MAX:.0f} s, {stalls} times in a row: {error.message}"
            ) from error
        self.outages.pause(0)


def received(begun: Iterable[ResultPart]) -> Iterator[ResultPart]:
    """The messages of a call; its errors as those of google.api_core."""
    try:
        yield from begun
    except grpc.RpcError as error:
        raise from_grpc_error(error) from error


def expired_or(error: FailedPrecondition, read_timestamp_micros: int | None) -> Exception:
    """Tells a read older than the version retention from other refusals, by Spanner's words."""
    if read_timestamp_micros is not None and "maximum timestamp staleness" in error.message:
        return VersionExpiredError(
            f"the database keeps no versions as old as {timestamp_text(read_timestamp_micros)}"
            f" ({error.message}); its version_retention_period, 1h unless set and 7d at most,"
            " says how long it does"
        )
    return error
