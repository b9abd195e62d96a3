"""Changes as messages in Kafka: in order per key, or window by window in transactions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from watcher.envelopes.message import Envelope, Message
from watcher.model.change import Change
from watcher.model.log_events.delivery import WINDOW_DISCARDED
from watcher.settings.destinations import KafkaDestination
from watcher.settings.secret_values import Secret
from watcher.settings.watcher import WatchConfig
from watcher.sinks.kafka_errors import Verdict, describe, judge
from watcher.sinks.kafka_producer import load_confluent_kafka, make_producer
from watcher.sinks.kafka_topics import ANSWER_SECONDS_MAX, KafkaTopics
from watcher.sinks.kafka_troubles import KafkaTroubles
from watcher.sinks.refusals import Refusal, RefusedChangesError
from watcher.sinks.registered import register_messages
from watcher.sinks.whole_batches import Encoded, Taken, Whole

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

LOG = logging.getLogger("watcher.delivery")
TRANSACTION_SECONDS_MAX = 30.0
"""How long a call that begins or ends a transaction may take."""
ABORT_SECONDS_MAX = 5.0
"""How long the call that aborts a transaction may take."""
WAIT_SECONDS = 0.2
REPORT_POLLS_MAX = 50
"""How often a report that has to come is waited for."""
MESSAGES_PER_POLL = 1_000


@dataclass(frozen=True, slots=True)
class Failure:
    """A message that was not acknowledged; ``taken`` is None for a barrier."""

    taken: Taken | None
    topic: str
    error: KafkaError

    @property
    def refused(self) -> bool:
        """Whether it is about this change alone, which will be refused again."""
        return self.taken is not None and judge(self.error) is Verdict.REFUSED


class Report:
    """What the client calls when it knows what became of a message. There is one for each message
    that is not acknowledged: so it is small."""

    __slots__ = ("_sink", "_taken", "_topic", "_window")

    def __init__(self, sink: KafkaSink, window: int, taken: Taken | None, topic: str) -> None:
        self._sink = sink
        self._window = window
        self._taken = taken
        self._topic = topic

    def __call__(self, error: KafkaError | None, _message: object) -> None:
        """Notes a failure."""
        if error is not None:
            self._sink.note_failure(self._window, Failure(self._taken, self._topic, error))


class KafkaSink:
    """A ``ChangeSink`` that writes the messages of an envelope to Kafka, a topic for each table or
    one for all.

    ``flush`` returns when every in-sync replica has everything. Messages of a key keep their order:
    one idempotent producer lasts as long as the sink. It raises its epoch when it gives a request
    up, and brokers refuse what comes of an earlier epoch behind that: a request that arrives late
    brings no older version. With a ``transactional_id`` a window is visible whole or not at all to
    those who read committed messages, and an instance that was replaced cannot write any more.
    """

    def __init__(
        self,
        destination: KafkaDestination,
        envelope: Envelope,
        properties: Mapping[str, Secret] | None = None,
        transactional_id: str | None = None,
    ) -> None:
        """Connects to nobody yet. Raises ConfigurationError for wrong properties."""
        self._client = load_confluent_kafka()
        self._destination = destination
        self.envelope = envelope
        self.transactional_id = transactional_id
        self._properties = properties or {}
        self._troubles = KafkaTroubles(destination, transactional_id)
        self._topics = KafkaTopics(destination, self._troubles)
        self._failures: list[Failure] = []
        self._window = 0
        """Counts windows: what was not acknowledged of one that was discarded is no failure of the
        next."""
        self._begun = False
        """Something was taken that is neither acknowledged nor discarded."""
        self._fences = False
        """The producer has begun a transaction."""
        self._unpolled = 0
        self._producer: Producer | None = self._make_producer()

    def connect(self, seconds: float = ANSWER_SECONDS_MAX) -> None:
        """Raises UnavailableError when no broker answers within so many seconds."""
        producer = self._producer or self._make_producer()
        try:
            producer.cluster_id(timeout=seconds)
        except self._client.KafkaException as error:
            producer.poll(0)  # notes the connection that failed, and why
            raise self._troubles.refuse_connection(error.args[0], seconds) from error

    # As ``ChangeSink``.

    def write_change(self, change: Change) -> None:
        """As ``ChangeSink.write_change``: waits while too much is not acknowledged."""
        self._take(change.table, self.envelope.encode(change), Whole(change))

    def write_encoded(self, encoded: Encoded) -> None:
        """As ``MessageSink.write_encoded``."""
        self._take(encoded.table, encoded.messages, encoded.taken)

    def _take(self, table: str, messages: Sequence[Message], taken: Taken) -> None:
        producer = self._begin()
        topic = self._topics.find(producer, table)
        for message in messages:
            self._produce(producer, topic, message, taken)
        self._unpolled += len(messages)
        if self._unpolled >= MESSAGES_PER_POLL:
            self._unpolled = 0
            producer.poll(0)
            self._raise_failures()

    def resolved(self, micros: int) -> None:
        """As ``ChangeSink.resolved``: in every partition of every topic written to so far."""
        for message in self.envelope.encode_resolved(micros):
            for topic, partitions in self._topics.partitions.items():
                for partition in range(partitions):
                    self._produce(self._begin(), topic, message, None, partition)

    def flush(self) -> None:
        """As ``ChangeSink.flush``: everything is acknowledged, and committed."""
        if not self._begun or self._producer is None:
            return
        with self._troubles.explain():
            self._settle(self._producer)
        self._raise_failures()
        self._raise_refused()
        if self.transactional_id is not None:
            with self._troubles.explain():
                self._producer.commit_transaction(TRANSACTION_SECONDS_MAX)
        self._begun = False
        self._troubles.note_flushed()

    def discard(self) -> None:
        """As ``ChangeSink.discard``: what is on its way arrives before anything that comes later.
        Without transactions the same producer continues, which keeps the order; with them the next
        one begins when this one has nothing on its way any more, and fences it."""
        if not self._begun or self._producer is None:
            return
        self._begun = False
        self._window += 1
        if self.transactional_id is not None:
            self._abort(self._producer)
        self._failures.clear()

    def _abort(self, producer: Producer) -> None:
        """Ends a transaction, and its producer. What cannot be aborted now is, when the next one
        begins."""
        self._producer, self._fences = None, False
        self._try(partial(producer.abort_transaction, ABORT_SECONDS_MAX))
        producer.purge(in_queue=True, in_flight=False)
        # After a fatal error nothing is on its way any more.
        self._try(partial(self._settle, producer))

    # As ``HeldSink``.

    def open(self) -> None:
        """As ``HeldSink.open``: brokers give a topic to everybody."""

    def close(self) -> None:
        """As ``HeldSink.close``: what is still queued of a window that failed is not sent, so that
        it does not follow what the next instance sends."""
        producer, self._begun = self._producer, False
        self._window += 1
        self._failures.clear()
        if producer is None or (self.transactional_id is None and len(producer) == 0):
            return
        self._producer, self._fences = None, False
        producer.purge(in_queue=True, in_flight=True)
        producer.poll(0)

    def _settle(self, producer: Producer) -> None:
        """Waits until every message is acknowledged, or given up by the client."""
        before = len(producer)
        while left := producer.flush(WAIT_SECONDS):
            self._troubles.note_progress(left < before)
            before = left

    def _try(self, call: Callable[[], object]) -> None:
        """A call to a producer that is not used any more: that it fails is no news."""
        try:
            call()
        except self._client.KafkaException as error:
            WINDOW_DISCARDED.log(LOG, destination=self._destination, error=describe(error.args[0]))

    def _make_producer(self) -> Producer:
        """A producer whose failed connections are noted here."""
        return make_producer(
            self._destination.brokers,
            self._properties,
            self.transactional_id,
            self._troubles.note_connection,
        )

    def _begin(self) -> Producer:
        """The producer, in a transaction where there are any."""
        if self._producer is None:
            self._producer = self._make_producer()
        if not self._begun:
            self._begun = True
            if self.transactional_id is not None:
                self._begin_transaction(self._producer)
        return self._producer

    def _begin_transaction(self, producer: Producer) -> None:
        """A producer's first transaction fences every other producer of the same id."""
        with self._troubles.explain():
            if not self._fences:
                producer.init_transactions(TRANSACTION_SECONDS_MAX)
                self._fences = True
            producer.begin_transaction()

    def _produce(
        self,
        producer: Producer,
        topic: str,
        message: Message,
        taken: Taken | None,
        partition: int = -1,
    ) -> None:
        """Takes a message; waits while too many are not acknowledged."""
        report = Report(self, self._window, taken, topic)
        headers: list[tuple[str, str | bytes | None]] = [*message.headers]
        while True:
            try:
                producer.produce(
                    topic,
                    message.value,
                    message.key,
                    partition,
                    on_delivery=report,
                    headers=headers,
                )
            except BufferError:
                before = len(producer)
                producer.poll(WAIT_SECONDS)
                self._troubles.note_progress(len(producer) < before)
                self._raise_failures()
            except self._client.KafkaException as error:
                reason = error.args[0]
                if self.transactional_id is not None:
                    self._raise_cause(producer)
                if taken is None or judge(reason) is not Verdict.REFUSED:
                    raise self._troubles.convert(reason, topic) from error
                refusal = Refusal(taken.decode(), describe(reason))
                raise RefusedChangesError(str(self._destination), [refusal]) from error
            else:
                return

    def _raise_cause(self, producer: Producer) -> None:
        """Raises for the message before this one that has spoilt the transaction, if one has: the
        client refuses all others from that moment on, and reports that one a little later."""
        for _ in range(REPORT_POLLS_MAX):
            producer.poll(WAIT_SECONDS)
            self._raise_failures()
            if len(producer) == 0:
                return

    # What the client reports, while it is polled or flushed.

    def note_failure(self, window: int, failure: Failure) -> None:
        """A message of a window was not acknowledged."""
        if window == self._window:
            self._failures.append(failure)

    # What failed.

    def _raise_failures(self) -> None:
        """Raises the first failure that is not about a message alone. A message that is refused
        spoils its transaction, and what fails with that is no news: it is raised at once."""
        refused = [each for each in self._failures if each.refused]
        if refused and self.transactional_id is not None:
            self._raise_refused()
        for failure in self._failures:
            if not failure.refused:
                raise self._troubles.convert(failure.error, failure.topic)

    def _raise_refused(self) -> None:
        """Raises RefusedChangesError for what was refused."""
        if not self._failures:
            return
        refusals = [
            Refusal(failure.taken.decode(), describe(failure.error))
            for failure in self._failures
            if failure.taken is not None and failure.refused
        ]
        self._failures.clear()
        rolled_back = self.transactional_id is not None
        self._begun = rolled_back
        raise RefusedChangesError(str(self._destination), refusals, rolled_back)


def open_sink(config: WatchConfig, destination: KafkaDestination) -> KafkaSink:
    """As ``queues.open_queue``."""
    sink = make_sink(config, destination)
    sink.connect()
    return sink


def make_sink(config: WatchConfig, destination: KafkaDestination) -> KafkaSink:
    """The sink of a watcher; it has connected to no broker yet."""
    options = config.delivery.kafka
    transactional_id = None
    if options.transactional:
        transactional_id = options.transactional_id or name_transactions(config)
    envelope = options.wrap(register_messages(config, destination))
    return KafkaSink(destination, envelope, options.properties, transactional_id)


def name_transactions(config: WatchConfig) -> str:
    """The transactional id of a consumer: no other consumer or database has it."""
    address = config.address
    parts = ("spanner-watcher", address.project, address.instance, address.database)
    return ".".join((*parts, str(config.consumer)))
