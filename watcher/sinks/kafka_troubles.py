"""What goes wrong between a sink and Kafka: outages are reported, errors say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from watcher.model.errors import SinkUnavailableError, UnavailableError, WatcherError
from watcher.settings.destinations import KafkaDestination
from watcher.sinks.kafka_errors import convert_error, describe
from watcher.sinks.kafka_producer import load_confluent_kafka
from watcher.spanner.outages import Outages

if TYPE_CHECKING:
    from confluent_kafka import KafkaError


class KafkaTroubles:
    """Of one sink. A connection that has failed is no error yet: the client tries again by itself,
    and an outage is reported meanwhile."""

    def __init__(self, destination: KafkaDestination, transactional_id: str | None) -> None:
        self._client = load_confluent_kafka()
        self._destination = destination
        self._transactional_id = transactional_id
        self._outages = Outages(str(destination))
        self._down: KafkaError | None = None
        """The last error of a connection, until there is progress again."""

    def note_connection(self, error: KafkaError) -> None:
        """A connection failed."""
        self._down = error

    def note_progress(self, made: bool) -> None:
        """Messages were acknowledged while the sink waited, or none was."""
        if made:
            self._down = None
        elif self._down is not None:
            self._outages.record_failure(SinkUnavailableError(describe(self._down)))

    def note_flushed(self) -> None:
        """Everything is acknowledged."""
        self._down = None
        self._outages.record_answer()

    def refuse_connection(self, error: KafkaError, seconds: float) -> UnavailableError:
        """No broker has answered in time."""
        reason = describe(self._down if self._down is not None else error)
        return UnavailableError(
            f"no broker of {self._destination} answers within {seconds:.0f} s ({reason}): check"
            " the addresses, and the security settings in [delivery.kafka.properties]"
        )

    @contextmanager
    def explain(self, topic: str = "") -> Iterator[None]:
        """Errors of a call in words that say what to do."""
        try:
            yield
        except self._client.KafkaException as error:
            raise self.convert(error.args[0], topic) from error

    def convert(self, error: KafkaError, topic: str) -> WatcherError:
        """An error in words that say what to do."""
        words = convert_error(error, str(self._destination), topic, self._transactional_id)
        if isinstance(words, SinkUnavailableError):
            self._outages.record_failure(words)
        return words
