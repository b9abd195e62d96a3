"""Changes as messages of NATS JetStream: in order, each once, by one instance.

Each message expects the number of the one before it: so a message that was not stored lets none
of those behind it in, and an instance that was replaced gets nothing in any more. Each also says
behind which number its window begins. When a window comes again, because its answer was lost or the
process was killed, the ids behind that number say what of it is there; ``Nats-Msg-Id`` says so to
the server, too.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module

from watcher.envelopes.message import Envelope, Message
from watcher.model.change import Change
from watcher.model.errors import (
    DeliveryError,
    LeaseLostError,
    SinkUnavailableError,
    UnavailableError,
    first_line,
)
from watcher.process.failpoints import failpoint
from watcher.settings.destinations import NatsDestination, NatsOptions
from watcher.settings.watcher import WatchConfig
from watcher.sinks.nats_streams import (
    EXPECTED_SEQUENCE,
    EXPECTED_STREAM,
    MESSAGE_ID,
    LostConnectionError,
    NatsStreams,
    Posted,
    load_nats,
)
from watcher.sinks.refusals import Refusal, RefusedChangesError
from watcher.sinks.whole_batches import Encoded, Whole
from watcher.spanner.outages import Outages

WRITER, INSTANCE = "Spanner-Watcher-Writer", "Spanner-Watcher-Instance"
AFTER = "Spanner-Watcher-After"
"""Headers: who writes, which instance of it, and behind which number the window begins."""
HEADER_BYTES = 1_024
"""What these headers and the server's take of the size of a message, at most."""
WRONG_SEQUENCE = 10_071
"""The server's code for a message that expected another number before it."""
FORBIDDEN = ("permissions violation", "authorization violation")


@dataclass
class End:
    """The end of a stream: the number of its last message, behind which number its last window
    begins, and the ids of that."""

    last: int
    after: int
    written: set[str]


@dataclass(frozen=True, slots=True)
class Item:
    """A message with the id that makes it one, whenever it comes again."""

    id: str
    subject: str
    headers: dict[str, str]
    payload: bytes


@dataclass
class Window:
    """What was taken and is not flushed."""

    items: list[Item] = field(default_factory=list)
    resolved: int | None = None


class NatsSink:
    """A ``HeldSink`` and a ``MessageSink`` over streams that nobody else writes to.

    ``flush`` returns when the server has stored everything. Messages are in the order of the
    changes. A tombstone is empty, with the header ``tombstone``.
    """

    def __init__(
        self,
        destination: NatsDestination,
        envelope: Envelope,
        options: NatsOptions,
        writer: str,
    ) -> None:
        """Connects to nobody yet. ``writer`` is the database with the consumer."""
        self._library = load_nats()
        self._destination = destination
        self.envelope = envelope
        self._writer = writer
        self._streams = NatsStreams(destination, options)
        self._outages = Outages(str(destination))
        self._instance = uuid.uuid4().hex
        self._known = {self._instance}
        """This instance, and those that had written before it began."""
        self._bytes_max = 0
        self._stream_of: dict[str, str] = {}
        self._ends: dict[str, End] = {}
        """By the name of a stream, where it is known for sure."""
        self._window = Window()

    def connect(self) -> None:
        """Raises UnavailableError when the server does not answer, or does not let this user in."""
        try:
            self._bytes_max = self._streams.connect()
        except self._errors as error:
            raise UnavailableError(
                f"{self._destination} does not answer ({first_line(error)}): check delivery.to, the"
                " user and delivery.nats"
            ) from error

    # As ``HeldSink``.

    def open(self) -> None:
        """As ``HeldSink.open``: the end of each stream is read before anything is written."""

    def close(self) -> None:
        """As ``HeldSink.close``."""
        self.discard()
        self._streams.close()

    # As ``MessageSink``.

    def write_change(self, change: Change) -> None:
        """As ``ChangeSink.write_change``."""
        messages = tuple(self.envelope.encode(change))
        self.write_encoded(Encoded(change.id, change.table, messages, Whole(change)))

    def write_encoded(self, encoded: Encoded) -> None:
        """As ``MessageSink.write_encoded``. Raises RefusedChangesError for one that is larger than
        the server takes."""
        subject, table = self._destination.name_topic(encoded.table), encoded.table
        items = [
            Item(name_message(encoded.id, number), subject, *write_message(table, message))
            for number, message in enumerate(encoded.messages)
        ]
        for item in items:
            size = len(item.payload) + sum(map(len, map(str.encode, item.headers.values())))
            if self._bytes_max and size + HEADER_BYTES > self._bytes_max:
                reason = (
                    f"it has {size} bytes, and the server takes {self._bytes_max} (max_payload)"
                )
                refusal = Refusal(encoded.taken.decode(), reason)
                raise RefusedChangesError(str(self._destination), [refusal])
        self._window.items += items

    def resolved(self, micros: int) -> None:
        """As ``ChangeSink.resolved``: a barrier goes to every subject written to so far."""
        self._window.resolved = micros
        subjects = {*self._stream_of, *(item.subject for item in self._window.items)}
        for message in self.envelope.encode_resolved(micros):
            self._window.items += [
                Item(f"resolved-{micros}-{subject}", subject, *write_message(None, message))
                for subject in sorted(subjects)
            ]

    def flush(self) -> None:
        """As ``ChangeSink.flush``. Raises LeaseLostError where another instance has written since,
        DeliveryError for a subject that no stream has, or that others write to."""
        if not self._window.items:
            return
        with self._explain():
            self._post(self._window.items)
        failpoint("after-nats-window")
        self._window = Window()

    def discard(self) -> None:
        """As ``ChangeSink.discard``: the window comes again, and is looked for first."""
        self._window = Window()
        self._ends.clear()

    # Writing.

    def _post(self, items: list[Item]) -> None:
        for subject in sorted({item.subject for item in items} - self._stream_of.keys()):
            self._stream_of[subject] = self._find_stream(subject)
        for stream in sorted({self._stream_of[item.subject] for item in items}):
            if stream not in self._ends:
                self._ends[stream] = self._read_end(stream)
        ends = {name: self._begin_window(name, items) for name in self._ends}
        messages = []
        for item in items:
            stream = self._stream_of[item.subject]
            end = ends[stream]
            if item.id not in end.written:
                end.written.add(item.id)
                messages.append(self._address(item, stream, end))
                end.last += 1
        failpoint("before-nats-window")
        self._ends.clear()  # until all is stored, what is there is not known
        self._streams.post(messages)
        self._known = {self._instance}
        self._ends = ends

    def _begin_window(self, stream: str, items: list[Item]) -> End:
        """The end of a stream as this window begins behind it, or goes on there."""
        end = self._ends[stream]
        if any(item.id in end.written for item in items):
            return End(end.last, end.after, end.written)
        return End(end.last, end.last, set())

    def _address(self, item: Item, stream: str, end: End) -> Posted:
        headers = item.headers | {
            MESSAGE_ID: item.id,
            EXPECTED_STREAM: stream,
            EXPECTED_SEQUENCE: str(end.last),
            WRITER: self._writer,
            INSTANCE: self._instance,
            AFTER: str(end.after),
        }
        return Posted(item.subject, headers, item.payload)

    def _find_stream(self, subject: str) -> str:
        try:
            return self._streams.find_stream(subject)
        except self._library.js.errors.NotFoundError:
            raise DeliveryError(
                f"no stream of {self._destination} has the subject '{subject}': add one, as by"
                f" nats stream add --subjects '{subject}'"
            ) from None

    def _read_end(self, stream: str) -> End:
        """The end of a stream that this consumer alone writes to."""
        last = self._streams.read_last(stream)
        if last.headers is None:
            return End(last.sequence, last.sequence, set())
        if last.headers.get(WRITER) != self._writer:
            raise DeliveryError(
                f"the stream '{stream}' of {self._destination} has messages of another writer"
                f" ({last.headers.get(WRITER, 'unknown')}): give each consumer a stream of its own"
            )
        self._known.add(last.headers[INSTANCE])
        after = int(last.headers[AFTER])
        return End(last.sequence, after, self._streams.read_ids(stream, after, last.sequence))

    def _refuse_replaced(self) -> None:
        """Raises LeaseLostError where an instance has written that was not there before."""
        for stream in sorted(set(self._stream_of.values())):
            headers = self._streams.read_last(stream).headers or {}
            if headers.get(INSTANCE, self._instance) not in self._known:
                raise LeaseLostError(
                    f"another instance writes to the stream '{stream}' of {self._destination} now:"
                    " this one ends, and has written nothing since"
                )

    # What fails.

    @property
    def _errors(self) -> tuple[type[Exception], ...]:
        """What calls raise; ValueError and RuntimeError are of credentials that cannot be read."""
        errors = import_module("nats.errors")
        return (errors.Error, OSError, TimeoutError, LostConnectionError, ValueError, RuntimeError)

    @contextmanager
    def _explain(self) -> Iterator[None]:
        """Errors of a call in words that say what to do."""
        try:
            yield
        except self._errors as error:
            reason = first_line(error)
            self._streams.drop()
            if getattr(error, "err_code", None) == WRONG_SEQUENCE:
                self._refuse_replaced()
            if any(each in reason.lower() for each in FORBIDDEN):
                raise DeliveryError(
                    f"{self._destination} does not let this user write ({reason}): give it the"
                    " rights to the subjects, and to those of $JS.API that docs/sinks.md lists"
                ) from error
            lost = SinkUnavailableError(f"{self._destination} did not take a window ({reason})")
            self._outages.record_failure(lost)
            raise lost from error
        self._outages.record_answer()


def name_message(change_id: str, number: int) -> str:
    """The id of a message: that of its change, where it is the first one."""
    return f"{change_id}/{number}" if number else change_id


def write_message(table: str | None, message: Message) -> tuple[dict[str, str], bytes]:
    """The headers and the payload: the table, the headers of the envelope, and the key."""
    headers = {} if table is None else {"table": table}
    headers |= {name: value.decode() for name, value in message.headers}
    if message.key is not None:
        headers["key"] = message.key.decode()
    if message.value is None:
        headers["tombstone"] = "true"
    return headers, message.value or b""


def open_sink(config: WatchConfig, destination: NatsDestination) -> NatsSink:
    """As ``queues.open_queue``."""
    assert config.consumer is not None, "the settings demand one"
    writer = f"{config.address.path}:{config.consumer}"
    sink = NatsSink(destination, config.message_format, config.delivery.nats, writer)
    sink.connect()
    return sink
