"""Changes as entries of Redis' streams: a window is one MULTI ... EXEC.

Beside the streams there are two keys of the consumer. One has its position and its epoch, which is
raised by who opens the sink; EXEC fails where it has changed. The other has the ids of the last
window: when that comes again, because its answer was lost or the process was killed, it is known
what of it is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from watcher.envelopes.message import Envelope, Message
from watcher.model.change import Change
from watcher.model.errors import (
    DeliveryError,
    LeaseLostError,
    SinkUnavailableError,
    UnavailableError,
    first_line,
)
from watcher.process.extras import require_extras
from watcher.process.failpoints import failpoint
from watcher.settings.destinations import RedisDestination, RedisOptions
from watcher.settings.watcher import WatchConfig
from watcher.sinks.whole_batches import Encoded, Whole
from watcher.spanner.outages import Outages

if TYPE_CHECKING:
    from redis import Redis

STREAM = b"stream"
NOTHING = b"none"
"""What TYPE says of a key."""


@cache
def load_redis() -> ModuleType:
    """The client, which only this sink needs. Raises MissingExtraError."""
    require_extras("redis")
    return import_module("redis")


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a stream; without a change it is a barrier."""

    change_id: str | None
    stream: str
    fields: Mapping[str, bytes]


@dataclass
class Window:
    """What was taken and is not flushed."""

    entries: list[Entry] = field(default_factory=list)
    resolved: int | None = None


class RedisSink:
    """A ``HeldSink`` and a ``MessageSink`` over one server.

    ``flush`` returns when the server has executed everything. Entries are in the order of the
    changes. A tombstone has no ``value``.
    """

    def __init__(
        self,
        destination: RedisDestination,
        envelope: Envelope,
        options: RedisOptions,
        source: str,
        consumer: str,
    ) -> None:
        """Connects to nobody yet."""
        self._library = load_redis()
        self._destination = destination
        self.envelope = envelope
        self._options = options
        self._consumer = consumer
        self._state = f"spanner-watcher:{source}:{consumer}"
        self._ids = f"{self._state}:ids"
        self._outages = Outages(str(destination))
        self._client = self._make_client()
        self._epoch = 0
        self._streams: set[str] = set()
        """Keys that are known to be streams."""
        self._window = Window()

    def connect(self) -> None:
        """Raises UnavailableError when the server does not answer, or does not let this user in."""
        try:
            self._client.ping()
        except self._library.RedisError as error:
            raise UnavailableError(
                f"{self._destination} does not answer ({first_line(error)}): check delivery.to, the"
                " user and delivery.redis.password"
            ) from error

    # As ``HeldSink``.

    def open(self) -> None:
        """As ``HeldSink.open``: from now on the instance before is refused."""
        with self._explain():
            self._epoch = int(self._client.hincrby(self._state, "epoch", 1))

    def close(self) -> None:
        """As ``HeldSink.close``."""
        self.discard()
        self._client.close()

    # As ``MessageSink``.

    def write_change(self, change: Change) -> None:
        """As ``ChangeSink.write_change``."""
        messages = tuple(self.envelope.encode(change))
        self.write_encoded(Encoded(change.id, change.table, messages, Whole(change)))

    def write_encoded(self, encoded: Encoded) -> None:
        """As ``MessageSink.write_encoded``."""
        stream = self._destination.name_topic(encoded.table)
        table = encoded.table.encode()
        self._window.entries += [
            Entry(encoded.id, stream, write_fields(table, message)) for message in encoded.messages
        ]

    def resolved(self, micros: int) -> None:
        """As ``ChangeSink.resolved``: a barrier goes to every stream written to so far."""
        self._window.resolved = micros
        streams = self._streams | {entry.stream for entry in self._window.entries}
        for message in self.envelope.encode_resolved(micros):
            fields = write_fields(None, message)
            self._window.entries += [Entry(None, stream, fields) for stream in sorted(streams)]

    def flush(self) -> None:
        """As ``ChangeSink.flush``. Raises LeaseLostError where another instance has opened its sink
        since, DeliveryError for a key that is no stream."""
        window = self._window
        if not window.entries and window.resolved is None:
            return
        with self._explain():
            self._execute(window)
        failpoint("after-redis-exec")
        self._window = Window()

    def discard(self) -> None:
        """As ``ChangeSink.discard``: the window comes again, and is looked for first."""
        self._window = Window()

    # Writing.

    def _execute(self, window: Window) -> None:
        self._refuse_other_keys({entry.stream for entry in window.entries})
        ids = [entry.change_id for entry in window.entries if entry.change_id is not None]
        pipeline: Any = self._client.pipeline(transaction=True)
        with pipeline as pipe:
            pipe.watch(self._state)
            self._check_epoch(pipe)
            there = self._find_written(pipe) if ids else set()
            pipe.multi()
            for entry in window.entries:
                if entry.change_id not in there:
                    pipe.xadd(entry.stream, dict(entry.fields), maxlen=self._options.entries_max)
            if ids:
                pipe.delete(self._ids)
                pipe.sadd(self._ids, *dict.fromkeys(ids))
            if window.resolved is not None:
                pipe.hset(self._state, "position", window.resolved)
            failpoint("before-redis-exec")
            try:
                pipe.execute()
            except self._library.WatchError as error:
                self._check_epoch(self._client)
                raise SinkUnavailableError(
                    f"{self._destination} did not take a window: the connection was lost"
                ) from error

    def _find_written(self, pipe: Any) -> set[str | None]:
        """The ids of the last window that was executed."""
        return {each.decode() for each in pipe.smembers(self._ids)}

    def _refuse_other_keys(self, streams: set[str]) -> None:
        """Redis does not take a transaction back in which one command fails."""
        new = sorted(streams - self._streams)
        for stream in new:
            kind: Any = self._client.type(stream)
            if kind not in (STREAM, NOTHING):
                raise DeliveryError(
                    f"the key '{stream}' of {self._destination} is a {kind.decode()} and no stream:"
                    " name another one in delivery.to (stream=...)"
                )
        self._streams |= streams

    def _check_epoch(self, client: Any) -> None:
        """Raises LeaseLostError unless this instance was the last one to open its sink."""
        if int(client.hget(self._state, "epoch") or 0) != self._epoch:
            raise LeaseLostError(
                f"another instance of consumer '{self._consumer}' writes to {self._destination}"
                " now: this one ends, and has written nothing since"
            )

    # The connection.

    def _make_client(self) -> Redis:
        """A client that repeats nothing by itself: what was executed may have lost its answer."""
        destination, options, library = self._destination, self._options, self._library
        retry = import_module("redis.retry").Retry(import_module("redis.backoff").NoBackoff(), 0)
        password = options.password
        client: Redis = library.Redis(
            host=destination.host.strip("[]"),
            port=destination.port,
            db=destination.database,
            username=destination.user,
            password=None if password is None else str(password.reveal()),
            ssl=options.tls,
            ssl_ca_certs=options.ca_certificate,
            socket_timeout=options.timeout,
            socket_connect_timeout=options.timeout,
            retry=retry,
        )
        return client

    @contextmanager
    def _explain(self) -> Iterator[None]:
        """Errors of a call in words that say what to do."""
        library = self._library
        refused = (library.AuthenticationError, library.exceptions.NoPermissionError)
        try:
            yield
        except refused as error:
            raise DeliveryError(
                f"{self._destination} does not let this user write ({first_line(error)}): give it"
                " the rights to the streams and to the keys spanner-watcher:*"
            ) from error
        except library.RedisError as error:
            lost = SinkUnavailableError(
                f"{self._destination} did not take a window ({first_line(error)})"
            )
            self._outages.record_failure(lost)
            raise lost from error
        self._outages.record_answer()


def write_fields(table: bytes | None, message: Message) -> dict[str, bytes]:
    """The fields of an entry: the table, the headers, the key and the value."""
    fields = {} if table is None else {"table": table}
    fields |= {name: value for name, value in message.headers if value is not None}
    if message.key is not None:
        fields["key"] = message.key
    if message.value is not None:
        fields["value"] = message.value
    return fields


def open_sink(config: WatchConfig, destination: RedisDestination) -> RedisSink:
    """As ``queues.open_queue``."""
    assert config.consumer is not None, "the settings demand one"
    options, source = config.delivery.redis, config.address.path
    sink = RedisSink(destination, config.message_format, options, source, config.consumer)
    sink.connect()
    return sink
