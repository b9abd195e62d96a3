"""One stream of a query's result, resumed where it broke or where its deadline passed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import grpc
from google.api_core.exceptions import (
    DataLoss,
    DeadlineExceeded,
    FailedPrecondition,
    InternalServerError,
    NotFound,
    ResourceExhausted,
    ServiceUnavailable,
    from_grpc_error,
)

from watcher.model.errors import ResumptionError, UnavailableError, VersionExpiredError
from watcher.spanner.outages import CallRetries, Outages, retry_until_answered
from watcher.spanner.requests import Request
from watcher.spanner.results.wire import ResultPart
from watcher.spanner.sessions import SharedSession, StreamCall
from watcher.spanner.timestamps import format_timestamp

STREAM_SECONDS = 300.0
"""The deadline of one call. The time that the consumer takes for its rows counts, too: a
stream whose deadline passes continues in another call. A call without progress may be one that
nobody answers, or a query that takes longer: the next one has twice the time."""
STREAM_SECONDS_MAX = 3600.0
"""No progress for so long is an error."""


@dataclass(frozen=True, slots=True)
class Resumption:
    """How one stream is started, and started again.

    ``read_timestamp`` is that of the request, None reads strongly. Without ``own_session`` the
    request names the session, which cannot be replaced. ``count_restart`` is called each time.
    """

    session: SharedSession
    call: StreamCall
    request: Request
    outages: Outages
    read_timestamp: int | None
    own_session: bool
    count_restart: Callable[[], None]

    def stream_messages(self) -> Iterator[ResultPart]:
        """The messages of the stream. The call is under way at once, before the first is asked for.

        A message is passed on when a resume token covers it: no row is repeated or missing. Raises
        VersionExpiredError, UnavailableError when the server does not answer for too long, and
        ResumptionError when it does not accept its token.
        """
        return self._resume(self._begin(STREAM_SECONDS))

    def _begin(self, seconds: float) -> Iterable[ResultPart]:
        if self.own_session:
            self.request.session = retry_until_answered(self.outages, lambda: self.session.name)
        metadata = self.session.build_metadata(self.request.session)
        return self.call(self.request, metadata=metadata, timeout=seconds)

    def _resume(self, messages: Iterable[ResultPart]) -> Iterator[ResultPart]:
        retries, seconds = CallRetries(self.outages), STREAM_SECONDS
        while True:
            # assumes: resume-token
            token = self.request.resume_token
            try:
                yield from self._read_covered(messages, retries)
                return
            except (ServiceUnavailable, InternalServerError, ResourceExhausted) as error:
                self.count_restart()
                retries.wait_after(error)
            except DeadlineExceeded as error:
                self.count_restart()
                stalled = token == self.request.resume_token
                seconds = self._extend(seconds, error) if stalled else STREAM_SECONDS
                self.outages.pause(0)
            except NotFound as error:
                if not self.own_session:
                    raise
                self.session.forget(self.request.session, error)
            except FailedPrecondition as error:
                raise convert_refusal(error, self.read_timestamp) from error
            except DataLoss as error:
                if not token:
                    raise
                raise ResumptionError(
                    f"{self.session.database_name} cannot continue a stream where it broke"
                    f" ({error.message}); read it again from the start"
                ) from error
            messages = self._begin(seconds)

    def _read_covered(
        self, messages: Iterable[ResultPart], retries: CallRetries
    ) -> Iterator[ResultPart]:
        """The messages of one call that a resume token covers, or the end of the result."""
        uncovered: list[ResultPart] = []
        # The plain message: setting a field of its wrapper costs as much as decoding 300 values.
        request = type(self.request).pb(self.request)
        for message in receive(messages):
            uncovered.append(message)
            if message.resume_token:
                retries.reset()
                request.resume_token = message.resume_token
                yield from uncovered
                uncovered = []
        retries.reset()
        yield from uncovered

    def _extend(self, seconds: float, error: DeadlineExceeded) -> float:
        """The deadline after one of so many seconds that has passed without progress."""
        if seconds >= STREAM_SECONDS_MAX:
            raise UnavailableError(
                f"{self.session.database_name} gave no row of a stream within {seconds:.0f} s:"
                f" {error.message}"
            ) from error
        return min(2 * seconds, STREAM_SECONDS_MAX)


def receive(messages: Iterable[ResultPart]) -> Iterator[ResultPart]:
    """The messages of a call; its errors as those of google.api_core."""
    try:
        yield from messages
    except grpc.RpcError as error:
        raise from_grpc_error(error) from error


def convert_refusal(error: FailedPrecondition, read_timestamp_micros: int | None) -> Exception:
    """The refusal as VersionExpiredError when the read is older than the version retention, which
    Spanner's message says; any other refusal as it is."""
    # assumes: expired-versions-refused
    if read_timestamp_micros is not None and "maximum timestamp staleness" in error.message:
        return VersionExpiredError(
            f"the database no longer has the versions of {format_timestamp(read_timestamp_micros)}"
            f" ({error.message}); its version_retention_period, 1h unless set and 7d at most,"
            " says how long it keeps them"
        )
    return error
