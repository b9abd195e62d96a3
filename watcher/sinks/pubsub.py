"""Changes as messages in Google Cloud Pub/Sub, in order per key.

The client publishes from threads of its own, a request for each ordering key: rows share ordering
keys, so that a request holds many messages. ``PUBSUB_EMULATOR_HOST`` is the client's own variable.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from google.api_core.exceptions import (
    Aborted,
    Cancelled,
    Forbidden,
    GoogleAPICallError,
    InvalidArgument,
    NotFound,
    Unauthenticated,
    Unknown,
)
from google.api_core.retry import Retry

from watcher.envelopes.message import Envelope
from watcher.model.change import Change
from watcher.model.errors import DeliveryError, SinkUnavailableError, WatcherError
from watcher.process.extras import require_extras
from watcher.settings.destinations import PubSubDestination, PubSubOptions
from watcher.settings.watcher import WatchConfig
from watcher.sinks.pubsub_messages import Sent, make_sent
from watcher.sinks.refusals import Refusal, RefusedChangesError
from watcher.spanner.outages import NO_ANSWER, Outages

if TYPE_CHECKING:
    from google.cloud.pubsub_v1 import PublisherClient

BATCH_MESSAGES_MAX = 1_000
BATCH_BYTES_MAX = 9_000_000
"""Pub/Sub: 1,000 messages and 10 MB in a request."""
BATCH_SECONDS = 0.05
RETRY_SECONDS_MAX = 30.0
"""How long the client itself tries; the window is delivered again after that."""
ANSWER_SECONDS_MAX = 60.0
"""How long a message may wait for an acknowledgement, with all that is tried meanwhile."""
GOES_AWAY = (*NO_ANSWER, Aborted, Cancelled, Unknown)


@cache
def load_pubsub() -> ModuleType:
    """The client, which only this sink needs. Raises MissingExtraError."""
    require_extras("pubsub")
    return import_module("google.cloud.pubsub_v1")


class Retries:
    """When one client tries again by itself: not for ever, and not when it is discarded, because
    an old message could then arrive after a newer one."""

    def __init__(self, outages: Outages) -> None:
        self._outages = outages
        self._since: float | None = None
        self.ended = False

    def should_retry(self, error: Exception) -> bool:
        """Whether a request that failed is tried again."""
        if self.ended or not isinstance(error, GOES_AWAY):
            return False
        self._outages.record_failure(error)
        now = time.monotonic()
        self._since = self._since if self._since is not None else now
        return now - self._since < RETRY_SECONDS_MAX

    def record_answer(self) -> None:
        """A message was acknowledged."""
        self._since = None
        self._outages.record_answer()


class PubSubSink:
    """A ``ChangeSink`` that publishes the messages of an envelope, a topic for each table or one
    for all.

    ``flush`` returns when Pub/Sub has acknowledged everything. Messages of a row keep their order:
    they have the same ordering key. A tombstone has no data, and the attribute ``tombstone``.
    """

    def __init__(
        self, destination: PubSubDestination, envelope: Envelope, options: PubSubOptions
    ) -> None:
        """Connects to nobody yet."""
        self._library = load_pubsub()
        self._destination = destination
        self._envelope = envelope
        self._options = options
        self._outages = Outages(str(destination))
        self._retries = Retries(self._outages)
        self._pending: deque[Sent] = deque()
        self._pending_bytes = 0
        self._failed: list[Sent] = []
        """What was refused, alone or with others, and what was held back behind it."""
        paused = self._library.publisher.exceptions.PublishToPausedOrderingKeyException
        self._held_back: tuple[type[Exception], ...] = (RuntimeError, paused)
        self._publisher: PublisherClient | None = None

    # As ``ChangeSink``.

    def write_change(self, change: Change) -> None:
        """As ``ChangeSink.write_change``: waits while too much is not acknowledged."""
        messages = self._envelope.encode(change)
        topic = self._destination.name_topic(change.table)
        groups = self._options.ordering_groups
        for message in messages:
            self._make_room()
            self._take(make_sent(change, topic, message, groups))

    def resolved(self, micros: int) -> None:
        """Pub/Sub has no order over several keys: barriers are refused in the configuration."""

    def flush(self) -> None:
        """As ``ChangeSink.flush``."""
        self._settle_all()
        failed, self._failed = self._failed, []
        refusals = list(self._publish_again(failed)) if failed else []
        if refusals:
            raise RefusedChangesError(str(self._destination), refusals)

    def discard(self) -> None:
        """As ``ChangeSink.discard``: what is on its way arrives before anything that comes later,
        because the next publisher begins when this one has nothing on its way any more."""
        self._failed.clear()
        if not self._pending or self._publisher is None:
            return
        self._retries.ended = True
        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        for sent in self._pending:
            wait_for(sent, max(0.0, deadline - time.monotonic()))
        self._pending.clear()
        self._pending_bytes = 0
        self._publisher.transport.close()
        self._publisher = None

    # Publishing.

    def _open(self) -> PublisherClient:
        """A publisher; a new one pauses no ordering key. What it holds is bounded by
        ``_make_room``: its own flow control would wait without limit."""
        types, endpoint = self._library.types, self._options.endpoint
        self._retries = Retries(self._outages)
        retry = Retry(self._retries.should_retry, initial=0.1, maximum=5.0)
        endpoints = {"client_options": {"api_endpoint": endpoint}} if endpoint else {}
        publisher: PublisherClient = self._library.PublisherClient(
            types.BatchSettings(BATCH_BYTES_MAX, BATCH_SECONDS, BATCH_MESSAGES_MAX),
            publisher_options=types.PublisherOptions(enable_message_ordering=True, retry=retry),
            **endpoints,
        )
        return publisher

    def _publish(self, sent: Sent) -> Sent:
        """The message with the future of its acknowledgement. Raises RefusedChangesError for one
        that is too large."""
        if self._publisher is None:
            self._publisher = self._open()
        try:
            answer = self._publisher.publish(
                sent.topic, sent.data, sent.ordering_key, **sent.attributes
            )
        except self._library.publisher.exceptions.MessageTooLargeError as error:
            refusal = Refusal(sent.change, f"{error}: Pub/Sub takes at most 10 MB, exclude columns")
            raise RefusedChangesError(str(self._destination), [refusal]) from error
        return replace(sent, answer=answer)

    def _take(self, sent: Sent) -> None:
        """Publishes a message; its acknowledgement is awaited later."""
        self._pending.append(self._publish(sent))
        self._pending_bytes += len(sent.data)

    def _make_room(self) -> None:
        """Waits while too much is not acknowledged."""
        limits = self._options
        while self._pending and (
            len(self._pending) >= limits.messages_max or self._pending_bytes >= limits.bytes_max
        ):
            self._settle_first()

    def _settle_all(self) -> None:
        while self._pending:
            self._settle_first()

    def _settle_first(self) -> None:
        """Waits for the message that was published first; one that failed, and may be published
        when its key is resumed, is kept."""
        sent = self._pending[0]
        error = wait_for(sent)
        self._raise_unanswered(sent, error)
        self._pending.popleft()
        self._pending_bytes -= len(sent.data)
        if error is not None:
            self._failed.append(sent)

    def _publish_again(self, failed: list[Sent]) -> Iterator[Refusal]:
        """Messages that were refused, perhaps because of others in their request, or held back
        behind those: in two halves, one after the other, and so on, so that the order stays. Gives
        those that are refused alone."""
        middle = max(1, len(failed) // 2)
        for part in filter(None, (failed[:middle], failed[middle:])):
            for topic, ordering_key in {(sent.topic, sent.ordering_key) for sent in part}:
                self._resume(topic, ordering_key)
            for sent in part:
                self._take(sent)
            self._settle_all()
            refused, self._failed = self._failed, []
            if refused and len(part) == 1:
                yield Refusal(refused[0].change, describe(refused[0].answer.exception()))
            elif refused:
                yield from self._publish_again(refused)

    def _resume(self, topic: str, ordering_key: str) -> None:
        """The client pauses an ordering key after an error."""
        assert self._publisher is not None
        try:
            self._publisher.resume_publish(topic, ordering_key)
        except RuntimeError:
            return  # it is not paused: a half has resumed it

    def _raise_unanswered(self, sent: Sent, error: BaseException | None) -> None:
        """Raises what is not about a message alone."""
        if error is None:
            self._retries.record_answer()
            return
        failure = self._convert(sent.topic, error)
        if failure is not None:
            raise failure from error

    def _convert(self, topic: str, error: BaseException) -> WatcherError | None:
        """An error in words that say what to do; None for one that is about a message."""
        if isinstance(error, (InvalidArgument, *self._held_back)):
            return None
        if isinstance(error, (*GOES_AWAY, FutureTimeoutError)):
            lost = SinkUnavailableError(
                f"{self._destination} did not acknowledge everything: {describe(error)}"
            )
            self._outages.record_failure(lost)
            return lost
        if isinstance(error, NotFound):
            return DeliveryError(
                f"there is no topic {topic}: create it and restart, or change the topic in"
                f" delivery.to ({describe(error)})"
            )
        if isinstance(error, Forbidden | Unauthenticated):
            return DeliveryError(
                f"no permission to publish to {topic}: grant roles/pubsub.publisher"
                f" ({describe(error)})"
            )
        return DeliveryError(f"{topic}: {describe(error)}")


def wait_for(sent: Sent, seconds: float = ANSWER_SECONDS_MAX) -> BaseException | None:
    """Why a message was not acknowledged; None if it was."""
    try:
        error: BaseException | None = sent.answer.exception(timeout=seconds)
    except FutureTimeoutError as late:
        return late
    return error


def describe(error: BaseException) -> str:
    """An error in few words, without the message that it is about."""
    if isinstance(error, GoogleAPICallError):
        status = error.grpc_status_code
        return f"{status.name if status else ''} {error.message}".strip()
    return str(error) or type(error).__name__


def open_sink(config: WatchConfig, destination: PubSubDestination) -> PubSubSink:
    """As ``queues.open_queue``."""
    return PubSubSink(destination, config.message_format, config.delivery.pubsub)
