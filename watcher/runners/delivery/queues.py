"""The sink of the queue that a watcher is configured to write to."""

from __future__ import annotations

from watcher.errors import ConfigurationError
from watcher.runners.delivery.kafka import KafkaSink
from watcher.runners.delivery.pubsub import PubSubSink
from watcher.runners.delivery.sinks import ChangeSink
from watcher.settings.destinations import KafkaDestination, PubSubDestination
from watcher.settings.watcher import WatchConfig


def open_queue(config: WatchConfig) -> ChangeSink:
    """The sink for ``delivery.to``. Raises UnavailableError when nobody answers there, and
    MissingExtraError when the client is not installed."""
    queue = config.delivery.queue
    if isinstance(queue, KafkaDestination):
        kafka = make_kafka_sink(config, queue)
        kafka.connect()
        return kafka
    if isinstance(queue, PubSubDestination):
        return PubSubSink(queue, config.format, config.delivery.pubsub)
    raise ConfigurationError(f"delivery.to = '{config.delivery.to}' is not a queue")


def make_kafka_sink(config: WatchConfig, destination: KafkaDestination) -> KafkaSink:
    """The sink for Kafka; it has connected to nobody yet."""
    options = config.delivery.kafka
    transactional_id = None
    if options.transactional:
        transactional_id = options.transactional_id or name_transactions(config)
    return KafkaSink(destination, config.message_format, options.properties, transactional_id)


def name_transactions(config: WatchConfig) -> str:
    """The transactional id of a consumer: no other consumer or database has it."""
    address = config.address
    parts = ("spanner-watcher", address.project, address.instance, address.database)
    return ".".join((*parts, str(config.consumer)))
