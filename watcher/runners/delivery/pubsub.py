"""Changes as messages in Google Cloud Pub/Sub, in order per key.

The client publishes from threads of its own, a request for each ordering key: rows share ordering
keys, so that a request holds many messages. ``PUBSUB_EMULATOR_HOST`` is the client's own variable.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from google.api_core.exceptions import (
    Aborted,
    Cancelled,
    Forbidden,
    GoogleAPICallError,
    NotFound,
    ResourceExhausted,
    Unauthenticated,
    Unknown,
)
from google.api_core.retry import Retry

from watcher.change import Change
from watcher.envelopes.message import Envelope, Message
from watcher.errors import DeliveryError, SinkUnavailableError, WatcherError
from watcher.extras import require_extras
from watcher.runners.delivery.refusals import Refusal, RefusedChangesError
from watcher.settings.destinations import PubSubDestination, PubSubOptions
from watcher.spanner.outages import NO_ANSWER, Outages
from watcher.spanner.timestamps import format_timestamp

if TYPE_CHECKING:
    from google.cloud.pubsub_v1 import PublisherClient

ATTRIBUTE_BYTES_MAX = 1_024
"""Pub/Sub: of the value of an attribute, and of an ordering key."""
BATCH_MESSAGES_MAX = 1_000
BATCH_BYTES_MAX = 9_000_000
"""Pub/Sub: 1,000 messages and 10 MB in a request."""
BATCH_SECONDS = 0.02
RETRY_SECONDS_MAX = 30.0
"""How long the client itself tries; the window is delivered again after that."""
ANSWER_SECONDS_MAX = 60.0
"""How long a message may wait for an acknowledgement, with all that is tried meanwhile."""
GOES_AWAY = (*NO_ANSWER, Aborted, Cancelled, ResourceExhausted, Unknown)


@cache
def load_pubsub() -> ModuleType:
    """The client, which only this sink needs. Raises MissingExtraError."""
    require_extras("pubsub")
    return import_module("google.cloud.pubsub_v1")


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that may not be acknowledged yet; ``answer`` is a future."""

    change: Change
    topic: str
    ordering_key: str
    data: bytes
    attributes: dict[str, str]
    answer: Any


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
        self._publisher: PublisherClient | None = None

    # As ``ChangeSink``.

    def write_change(self, change: Change) -> None:
        """As ``ChangeSink.write_change``: waits while too much is not acknowledged."""
        messages = self._envelope.encode(change)
        topic = self._destination.name_topic(change.table)
        for message in messages:
            self._pending.append(self._publish(make_sent(change, topic, message, self._options)))
        self._forget_acknowledged()

    def resolved(self, micros: int) -> None:
        """Pub/Sub has no order over several keys: barriers are refused in the configuration."""

    def flush(self) -> None:
        """As ``ChangeSink.flush``."""
        failed: list[Sent] = []
        while self._pending:
            sent = self._pending[0]
            error = wait_for(sent)
            self._raise_unanswered(sent, error)
            if error is not None:
                failed.append(sent)
            self._pending.popleft()
        refusals = list(self._publish_again(failed))
        if refusals:
            raise RefusedChangesError(str(self._destination), refusals)

    def discard(self) -> None:
        """As ``ChangeSink.discard``: what is on its way arrives before anything that comes later,
        because the next publisher begins when this one has nothing on its way any more."""
        if not self._pending or self._publisher is None:
            return
        self._retries.ended = True
        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        for sent in self._pending:
            wait_for(sent, max(0.0, deadline - time.monotonic()))
        self._pending.clear()
        self._publisher.transport.close()
        self._publisher = None

    # Publishing.

    def _open(self) -> PublisherClient:
        """A publisher with bounded queues. A new one pauses no ordering key."""
        types, options = self._library.types, self._options
        self._retries = Retries(self._outages)
        flow = types.PublishFlowControl(
            options.messages_max, options.bytes_max, types.LimitExceededBehavior.BLOCK
        )
        retry = Retry(self._retries.should_retry, initial=0.1, maximum=5.0)
        places = {"client_options": {"api_endpoint": options.endpoint}} if options.endpoint else {}
        publisher: PublisherClient = self._library.PublisherClient(
            types.BatchSettings(BATCH_BYTES_MAX, BATCH_SECONDS, BATCH_MESSAGES_MAX),
            publisher_options=types.PublisherOptions(True, flow, retry),
            **places,
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

    def _forget_acknowledged(self) -> None:
        """Only what waits for an acknowledgement is kept."""
        while self._pending and self._pending[0].answer.done():
            error = self._pending[0].answer.exception()
            self._raise_unanswered(self._pending[0], error)
            if error is not None:
                return  # `flush` tries it again, in its place
            self._retries.record_answer()
            self._pending.popleft()

    def _publish_again(self, failed: Iterable[Sent]) -> Iterable[Refusal]:
        """Messages that were refused together with others, or held back behind them, one by one in
        their order; those that are refused alone, too."""
        for sent in failed:
            self._resume(sent)
            again = self._publish(sent)
            error = wait_for(again)
            self._raise_unanswered(again, error)
            if error is not None:
                self._resume(sent)
                yield Refusal(sent.change, describe(error))
            else:
                self._retries.record_answer()

    def _resume(self, sent: Sent) -> None:
        """The client pauses an ordering key after an error."""
        assert self._publisher is not None
        try:
            self._publisher.resume_publish(sent.topic, sent.ordering_key)
        except RuntimeError:
            return  # it is not paused: an earlier message of the key has resumed it

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
        return None


def make_sent(change: Change, topic: str, message: Message, options: PubSubOptions) -> Sent:
    """A message as Pub/Sub takes it, not published yet."""
    attributes = {name: value.decode() for name, value in message.headers}
    attributes |= {
        "table": change.table,
        "operation": str(change.operation),
        "commit_timestamp": format_timestamp(change.commit_timestamp),
    }
    key = (message.key or b"").decode()
    if message.key is not None and len(message.key) <= ATTRIBUTE_BYTES_MAX:
        attributes["key"] = key
    if message.value is None:
        attributes["tombstone"] = "true"
    ordering_key = choose_ordering_key(message.key or b"", options.ordering_groups)
    return Sent(change, topic, ordering_key, message.value or b"", attributes, None)


def choose_ordering_key(key: bytes, groups: int) -> str:
    """The same for the same key: one of so many groups, or, without groups, the key itself (a
    digest of one that is too long)."""
    if not groups and len(key) <= ATTRIBUTE_BYTES_MAX:
        return key.decode()
    digest = hashlib.blake2b(key, digest_size=16)
    return str(int.from_bytes(digest.digest()[:8]) % groups) if groups else digest.hexdigest()


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
        return f"{error.code.name if error.code else ''} {error.message}".strip()
    return str(error) or type(error).__name__
