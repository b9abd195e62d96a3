"""The producer of Kafka's client, as this project sets it.

librdkafka: github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md names the properties.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from watcher.model.errors import ConfigurationError
from watcher.process.extras import require_extras
from watcher.settings.secret_values import Secret, hide_values, reveal_all

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

DEFAULTS: Mapping[str, str | int | float | bool] = {
    # Java's partitioner: other producers of the topic send the same key to the same partition.
    "partitioner": "murmur2_random",
    "linger.ms": 20,
    # What waits for an acknowledgement is bounded: producing then waits.
    "queue.buffering.max.messages": 50_000,
    "queue.buffering.max.kbytes": 131_072,
    # The client itself tries for so long; the window is delivered again after that.
    "message.timeout.ms": 30_000,
    # Failed connections are reported when an outage begins and when it ends, not each time.
    "log_level": 2,
    # One producer lasts through an outage: it connects soon when the brokers are back.
    "reconnect.backoff.max.ms": 1_000,
    # A window is in one transaction, and may be slow to read.
    "transaction.timeout.ms": 300_000,
}
"""What properties are unless they are configured."""


@cache
def load_confluent_kafka() -> ModuleType:
    """The client, which only this sink needs. Raises MissingExtraError."""
    require_extras("kafka")
    return import_module("confluent_kafka")


def make_producer(
    brokers: Sequence[str],
    properties: Mapping[str, Secret],
    transactional_id: str | None,
    note_connection: Callable[[KafkaError], None],
) -> Producer:
    """An idempotent producer; it connects by itself, and tells of connections that failed. Raises
    ConfigurationError for wrong properties."""
    client = load_confluent_kafka()
    own: dict[str, Any] = {
        "bootstrap.servers": ",".join(brokers),
        "enable.idempotence": True,
        "delivery.report.only.error": True,
        "error_cb": note_connection,
    }
    if transactional_id is not None:
        own["transactional.id"] = transactional_id
    try:
        producer: Producer = client.Producer({**DEFAULTS, **reveal_all(properties), **own})
    except client.KafkaException as error:
        # librdkafka quotes the value that it refuses: its error is not the cause that is shown.
        reason = hide_values(error.args[0].str(), properties)
        raise ConfigurationError(f"[delivery.kafka.properties]: {reason}") from None
    return producer
