"""Changes as HTTP requests to an address of the user's, in order, some at a time.

A request has a line of JSON for each message, and the headers of the specification "Standard
Webhooks" (https://www.standardwebhooks.com): an id that is the same when it comes again, the time,
and a signature by HMAC-SHA-256.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from watcher.envelopes.message import Envelope
from watcher.model.change import Change
from watcher.model.errors import (
    ConfigurationError,
    DeliveryError,
    SinkUnavailableError,
    UnavailableError,
)
from watcher.settings.destinations import WebhookDestination, WebhookOptions
from watcher.settings.watcher import WatchConfig
from watcher.sinks.refusals import Refusal, RefusedChangesError
from watcher.spanner.outages import CallRetries, Outages

REFUSED = {400, 413, 415, 422}
"""Answers about what is sent: with fewer changes it may be taken."""
GOES_AWAY = {408, 425, 429}
"""Answers that ask to come again later, as all from 500 on."""
ANSWER_CHARACTERS_MAX = 200


@dataclass(frozen=True, slots=True)
class Line:
    """A message on its way, and the change that it is about."""

    change: Change
    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered; ``wait_seconds`` is when it wants to be asked again."""

    status: int
    text: str
    wait_seconds: float = 0.0

    @property
    def taken(self) -> bool:
        """Whether it has what was sent."""
        return 200 <= self.status < 300

    @property
    def temporary(self) -> bool:
        """Whether it may take the same later."""
        return self.status in GOES_AWAY or self.status >= 500

    def __str__(self) -> str:
        return f"{self.status} {self.text}".strip()


class WebhookSink:
    """A ``ChangeSink`` that posts messages to one address, or to one for each table.

    ``flush`` returns when every request was answered with 2xx. Requests follow one another, so that
    changes arrive in their order. Messages without a value (tombstones) are not sent.
    """

    def __init__(
        self, destination: WebhookDestination, envelope: Envelope, options: WebhookOptions
    ) -> None:
        """Connects to nobody yet. Raises ConfigurationError for an envelope that is not text."""
        if envelope.binary:
            raise ConfigurationError(
                "delivery.envelope is binary, and a webhook takes lines of JSON: use another one"
            )
        self._destination = destination
        self._envelope = envelope
        self._options = options
        self._outages = Outages(str(destination))
        self._lines: list[Line] = []
        self._bytes = 0
        self._refused: list[Refusal] = []
        self._connection: http.client.HTTPConnection | None = None

    # As ``ChangeSink``.

    def write_change(self, change: Change) -> None:
        """As ``ChangeSink.write_change``: posts what is enough for a request."""
        path = self._destination.name_topic(change.table)
        for message in self._envelope.encode(change):
            if message.value is not None:
                self._lines.append(Line(change, path, message.value))
                self._bytes += len(message.value) + 1
        limits = self._options
        if len(self._lines) >= limits.messages_max or self._bytes >= limits.bytes_max:
            self._post_all()

    def resolved(self, micros: int) -> None:
        """Requests have no place for barriers: they are refused in the configuration."""

    def flush(self) -> None:
        """As ``ChangeSink.flush``."""
        self._post_all()
        refused, self._refused = self._refused, []
        if refused:
            raise RefusedChangesError(str(self._destination), refused)

    def discard(self) -> None:
        """As ``ChangeSink.discard``: no request is on its way when a call returns."""
        self._lines.clear()
        self._bytes = 0
        self._refused.clear()

    # Posting.

    def _post_all(self) -> None:
        lines, self._lines, self._bytes = self._lines, [], 0
        for _, group in groupby(lines, lambda line: line.path):
            self._refused += self._post_or_divide(list(group))

    def _post_or_divide(self, lines: list[Line]) -> Iterator[Refusal]:
        """Posts messages to one address. Those that are refused are posted again in two halves, one
        after the other, and so on, so that the order stays; gives those that are refused alone."""
        answer = self._post(lines)
        if answer.taken:
            return
        if len(lines) == 1:
            yield Refusal(lines[0].change, f"the server answered {answer}")
            return
        middle = len(lines) // 2
        for half in (lines[:middle], lines[middle:]):
            yield from self._post_or_divide(half)

    def _post(self, lines: Sequence[Line]) -> Answer:
        """The answer to a request, which is tried again while the server does not answer. Raises
        SinkUnavailableError after half a minute, and DeliveryError for an address that will never
        take anything."""
        body = b"\n".join(line.data for line in lines) + b"\n"
        headers = self._make_headers(lines, body)
        retries = CallRetries(self._outages)
        while True:
            try:
                answer = self._request(lines[0].path, body, headers)
            except (OSError, http.client.HTTPException) as error:
                self._close()
                reason, wait = f"{type(error).__name__}: {error}", 0.0
            else:
                if not answer.temporary:
                    retries.reset()
                    return self._expect_usable(answer, lines[0].path)
                reason, wait = f"it answered {answer}", answer.wait_seconds
            lost = SinkUnavailableError(f"{self._destination} did not take everything: {reason}")
            try:
                retries.wait_after(lost, wait)
            except UnavailableError:
                raise lost from None

    def _expect_usable(self, answer: Answer, path: str) -> Answer:
        if answer.taken or answer.status in REFUSED:
            return answer
        advice = "check the address, its rights and delivery.webhook.headers"
        if 300 <= answer.status < 400:
            advice = "it sends elsewhere: use that address"
        raise DeliveryError(f"{self._destination}{path} answered {answer}: {advice}")

    def _make_headers(self, lines: Sequence[Line], body: bytes) -> Mapping[str, str]:
        identifier = name_request(lines)
        at = str(int(time.time()))
        headers = {
            "Content-Type": "application/x-ndjson",
            "webhook-id": identifier,
            "webhook-timestamp": at,
        }
        secret = self._options.secret
        if secret is not None:
            key = str(secret.reveal()).encode()
            headers["webhook-signature"] = sign(key, identifier, at, body)
        given = {name: str(value.reveal()) for name, value in self._options.headers.items()}
        return headers | given

    def _request(self, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        if self._connection is None:
            self._connection = self._open()
        self._connection.request("POST", path, body, dict(headers))
        response = self._connection.getresponse()
        text = response.read().decode(errors="replace")[:ANSWER_CHARACTERS_MAX]
        wait = response.headers.get("Retry-After", "")
        return Answer(response.status, text.strip(), float(wait) if wait.isdecimal() else 0.0)

    def _open(self) -> http.client.HTTPConnection:
        host, seconds = self._destination.host, self._options.timeout
        if not self._options.tls:
            return http.client.HTTPConnection(host, timeout=seconds)
        context = ssl.create_default_context(cafile=self._options.ca_certificate)
        return http.client.HTTPSConnection(host, timeout=seconds, context=context)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def name_request(lines: Sequence[Line]) -> str:
    """The id of a request: the same for the same changes, so that a server knows what it has."""
    digest = hashlib.sha256("\n".join(line.change.id for line in lines).encode())
    return f"msg_{digest.hexdigest()[:32]}"


def sign(key: bytes, identifier: str, at: str, body: bytes) -> str:
    """The signature of Standard Webhooks, version 1."""
    signed = b".".join((identifier.encode(), at.encode(), body))
    return f"v1,{base64.b64encode(hmac.digest(key, signed, 'sha256')).decode()}"


def open_sink(config: WatchConfig, destination: WebhookDestination) -> WebhookSink:
    """As ``queues.open_queue``."""
    return WebhookSink(destination, config.message_format, config.delivery.webhook)
