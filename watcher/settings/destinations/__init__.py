"""Where changes go besides lines and callbacks: each destination is a file here, an entry of
``DESTINATIONS`` and a section of options."""

from __future__ import annotations

from watcher.settings.destinations.destination import EXAMPLE_TABLE as EXAMPLE_TABLE
from watcher.settings.destinations.destination import TABLE_FIELD as TABLE_FIELD
from watcher.settings.destinations.destination import Destination as Destination
from watcher.settings.destinations.destination import QueueOptions as QueueOptions
from watcher.settings.destinations.duckdb import DuckDbDestination as DuckDbDestination
from watcher.settings.destinations.duckdb import DuckDbOptions as DuckDbOptions
from watcher.settings.destinations.files import FilesDestination as FilesDestination
from watcher.settings.destinations.files import FilesOptions as FilesOptions
from watcher.settings.destinations.kafka import KafkaDestination as KafkaDestination
from watcher.settings.destinations.kafka import KafkaOptions as KafkaOptions
from watcher.settings.destinations.kafka import name_subject as name_subject
from watcher.settings.destinations.nats import NatsDestination as NatsDestination
from watcher.settings.destinations.nats import NatsOptions as NatsOptions
from watcher.settings.destinations.postgresql import PostgresDestination as PostgresDestination
from watcher.settings.destinations.postgresql import PostgresOptions as PostgresOptions
from watcher.settings.destinations.pubsub import PubSubDestination as PubSubDestination
from watcher.settings.destinations.pubsub import PubSubOptions as PubSubOptions
from watcher.settings.destinations.redis import RedisDestination as RedisDestination
from watcher.settings.destinations.redis import RedisOptions as RedisOptions
from watcher.settings.destinations.tables import TableDestination as TableDestination
from watcher.settings.destinations.webhook import WebhookDestination as WebhookDestination
from watcher.settings.destinations.webhook import WebhookOptions as WebhookOptions
from watcher.settings.fields import Section

DESTINATIONS: dict[str, type[Destination]] = {
    kind.scheme: kind
    for kind in (
        KafkaDestination,
        PubSubDestination,
        WebhookDestination,
        FilesDestination,
        PostgresDestination,
        DuckDbDestination,
        RedisDestination,
        NatsDestination,
    )
}


class QueueSections(Section):
    """A section for the options of each queue."""

    kafka: KafkaOptions = KafkaOptions()
    """How to write to Kafka."""
    pubsub: PubSubOptions = PubSubOptions()
    """How to write to Pub/Sub."""
    webhook: WebhookOptions = WebhookOptions()
    """How to post to a webhook."""
    files: FilesOptions = FilesOptions()
    """How to write files by table and time."""
    postgresql: PostgresOptions = PostgresOptions()
    """How to write to tables of PostgreSQL."""
    duckdb: DuckDbOptions = DuckDbOptions()
    """How to write to tables of DuckDB."""
    redis: RedisOptions = RedisOptions()
    """How to write to streams of Redis."""
    nats: NatsOptions = NatsOptions()
    """How to write to streams of NATS JetStream."""

    def list_queue_options(self) -> dict[str, QueueOptions]:
        """The options of each queue by its scheme."""
        return {scheme: getattr(self, scheme) for scheme in DESTINATIONS}
