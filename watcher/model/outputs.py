"""Where changes can go and in which format, by name: what help says of each, and what it needs.
Help reads this and loads no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SinkEntry:
    """A sink. Its scheme, the key in ``SINKS``, is also its section of ``delivery``, its extra, and
    its module in ``watcher.settings.destinations`` and in ``watcher.sinks``.

    ``spelling``: how ``delivery.to`` is written. ``libraries``: the modules that its extra
    installs; a sink without any has no extra.
    """

    spelling: str
    libraries: tuple[str, ...] = ()


SINKS: Mapping[str, SinkEntry] = {
    "kafka": SinkEntry("kafka://BROKER:PORT,BROKER:PORT/TOPIC", ("confluent_kafka",)),
    "pubsub": SinkEntry("pubsub://PROJECT/TOPIC", ("google.cloud.pubsub_v1",)),
    "redis": SinkEntry("redis://HOST:PORT/DATABASE?stream=NAME", ("redis",)),
    "nats": SinkEntry("nats://HOST:PORT/SUBJECT", ("nats",)),
    "webhook": SinkEntry("webhook://HOST:PORT/PATH"),
    "files": SinkEntry("files:FOLDER"),
    "postgresql": SinkEntry("postgresql://USER@HOST:PORT/DATABASE", ("psycopg",)),
    "duckdb": SinkEntry("duckdb:FILE", ("duckdb",)),
}


@dataclass(frozen=True, slots=True)
class EnvelopeEntry:
    """An envelope. ``options``: its class as ``module:name``, loaded by ``watcher.envelopes``.
    ``note``: what to know before choosing it."""

    options: str
    note: str = ""


MESSAGE_FORMATS: Mapping[str, EnvelopeEntry] = {
    "plain": EnvelopeEntry("plain:Plain", "the default"),
    "plain-avro": EnvelopeEntry("plain_avro:PlainAvro", "to Kafka with a schema registry"),
    "plain-protobuf": EnvelopeEntry("plain_protobuf:PlainProtobuf", "as plain-avro"),
    "cloudevents": EnvelopeEntry("cloudevents:CloudEvents"),
    "datastream": EnvelopeEntry("datastream:Datastream"),
    "datastream-avro": EnvelopeEntry("datastream:DatastreamAvro", "to a queue"),
    "debezium": EnvelopeEntry("debezium:Debezium"),
    "debezium-avro": EnvelopeEntry("debezium_avro:DebeziumAvro", "as plain-avro"),
    "ydb": EnvelopeEntry("ydb:Ydb"),
    "ydb-debezium": EnvelopeEntry("ydb:YdbDebezium"),
    "change-stream": EnvelopeEntry("change_stream:ChangeStreamEnvelope", "with --stream"),
}


def list_spellings() -> str:
    """How the destinations besides files of lines are written, for help."""
    return ", ".join(entry.spelling for entry in SINKS.values())


def list_formats() -> str:
    """The names of the formats, with their notes, for help."""
    return ", ".join(
        f"{name} ({entry.note})" if entry.note else name for name, entry in MESSAGE_FORMATS.items()
    )
