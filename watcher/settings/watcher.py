"""The settings of a watcher from a file, flags or Python, checked as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

from pydantic import BaseModel, ValidationError

from watcher.consumers.positions.tables import KEY_CHARACTERS_MAX
from watcher.envelopes import ENVELOPES, Known
from watcher.envelopes.record_schemas import SchemaEnvelope
from watcher.model.change import Shape
from watcher.model.errors import ConfigurationError
from watcher.model.outputs import SINKS
from watcher.settings.destinations import (
    DESTINATIONS,
    TABLE_FIELD,
    Destination,
    KafkaDestination,
    name_subject,
)
from watcher.settings.fields import (
    EARLIEST,
    LATEST,
    check_directed_reads,
    describe_validation_error,
    unknown_option,
)
from watcher.settings.sections import (
    ClearingConfig,
    DeliveryConfig,
    MetricsConfig,
    PageConfig,
    PositionsConfig,
    ReplicaConfig,
    StreamConfig,
)
from watcher.settings.table_specs import check_table_specs, is_for_streams, put_mask_key
from watcher.settings.watch_config import WatchConfig as WatchConfig  # noqa: PLC0414 (together)
from watcher.spanner.address import Endpoint
from watcher.spanner.read_options import DirectedRead, Replica
from watcher.tables.parts import Part
from watcher.tables.values import TableSpec


def parse_watch_config(values: Mapping[str, object]) -> WatchConfig:
    """Validates the settings of a watcher. Raises ConfigurationError that says what is wrong."""
    try:
        config = WatchConfig.model_validate(values)
    except ValidationError as error:
        for each in error.errors():
            if each["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
                *section, option = each["loc"]
                raise unknown_option(str(option), list_options(section)) from error
        raise ConfigurationError(describe_validation_error(error)) from error
    specs = {name: put_mask_key(each, config.mask_key) for name, each in config.table.items()}
    config = config.model_copy(update={"table": specs})
    check_combinations(config)
    return config


SECTIONS: dict[str, type[BaseModel]] = {
    "stream": StreamConfig,
    "positions": PositionsConfig,
    "clearing": ClearingConfig,
    "delivery": DeliveryConfig,
    **{f"delivery.{scheme}": kind.options for scheme, kind in DESTINATIONS.items()},
    "metrics": MetricsConfig,
    "page": PageConfig,
    "replica": ReplicaConfig,
}


def list_options(section: Sequence[int | str]) -> list[str]:
    """The names of the options of a section."""
    name = section[0] if section else None
    if name == "table":
        return [field.name for field in fields(TableSpec)]
    if name == "directed_read":
        return [field.name for field in fields(Replica if len(section) > 1 else DirectedRead)]
    if name == "endpoint":
        return [field.name for field in fields(Endpoint)]
    known = SECTIONS.get(".".join(map(str, section)), SECTIONS.get(str(name), WatchConfig))
    return list(known.model_fields)


def check_combinations(config: WatchConfig) -> None:
    """Checks what single fields cannot. Raises ConfigurationError."""
    _ = config.positions_address
    check_directed_reads(config, config.address)
    if config.backfill and config.start != LATEST:
        raise ConfigurationError(
            "'backfill' delivers the tables as they are now: remove 'start' or use start = 'latest'"
        )
    if config.capture == "change-stream":
        check_stream(config)
    elif config.stream != StreamConfig():
        raise ConfigurationError("[stream] needs capture = 'change-stream'")
    check_positions(config)
    check_parts(config)
    if config.page is not None:
        check_page(config)
    letters = config.delivery.dead_letters
    if letters is not None and letters == config.delivery.file:
        raise ConfigurationError(f"delivery.to and delivery.dead_letters are both '{letters}'")
    if config.delivery.then == "skip" and letters is None:
        raise ConfigurationError(
            "delivery.then = 'skip' needs delivery.dead_letters, the file for refused changes"
        )
    check_queue(config)
    check_envelope(config)
    check_table_specs(config.table)


def check_positions(config: WatchConfig) -> None:
    """Checks what positions and clearing need. Raises ConfigurationError."""
    if config.positions.keep == "file" and config.positions.path is None:
        raise ConfigurationError("positions.keep = 'file' needs positions.path")
    if config.clearing is None:
        return
    if config.positions.keep != "spanner":
        raise ConfigurationError(
            "[clearing] needs positions.keep = 'spanner', because it waits for the positions of all"
            " consumers"
        )
    if config.consumer is None:
        raise ConfigurationError("[clearing] needs 'consumer', a name for this watcher")


def check_parts(config: WatchConfig) -> None:
    """Checks what a shared consumer can do. Raises ConfigurationError."""
    if config.parts is None:
        return
    if config.consumer is None or config.positions.keep != "spanner":
        raise ConfigurationError(
            "'parts' needs 'consumer' and positions.keep = 'spanner', where the instances find each"
            " other"
        )
    added = Part(config.parts, config.parts).name_consumer("")
    if len(config.consumer) + len(added) > KEY_CHARACTERS_MAX:
        raise ConfigurationError(
            f"'consumer' is too long for the names of its parts, which end in '{added}': use at"
            f" most {KEY_CHARACTERS_MAX - len(added)} characters"
        )
    delivery = config.delivery
    refused = {
        "capture": config.capture in ("change-stream", "change-set"),
        "backfill": bool(config.backfill),
        "transactions": config.transactions,
        "standby": config.standby,
        "replica": config.replica is not None,
        "delivery.envelope_options": config.format.needs_order,
    }
    for scheme, options in delivery.list_queue_options().items():
        if options.one_owner is not None:
            raise ConfigurationError(
                f"'parts' and 'delivery.{scheme}.{options.one_owner}' do not work together: its"
                " transactions have one owner; remove one of them"
            )
    for name, given in refused.items():
        if given:
            raise ConfigurationError(
                f"'parts' and '{name}' do not work together: {PARTS_WHY[name]}"
            )


PARTS_WHY = {
    "capture": "only polled tables have shards; remove 'parts', or poll",
    "backfill": "let a watcher without 'parts' deliver the tables first, stop it, and start again",
    "transactions": "a transaction may have rows in several parts; remove one of them",
    "standby": "each instance takes over the parts of one that dies; remove 'standby'",
    "replica": "a copy is written by one process; remove 'parts'",
    "delivery.envelope_options": "barriers speak of all rows, an instance has some; remove them",
}


def check_page(config: WatchConfig) -> None:
    """Checks that a page finds the positions, also one without a section. Raises
    ConfigurationError."""
    if config.positions.keep != "spanner":
        raise ConfigurationError(
            "the page needs positions.keep = 'spanner', where it reads the positions of all"
            " consumers"
        )
    if config.keeps_positions_apart:
        raise ConfigurationError(
            "the page shows one database: remove positions.database, or run 'spanner-watcher page"
            f" --database {config.positions_address}'"
        )


def check_stream(config: WatchConfig) -> None:
    """Checks what does not work with a change stream. Raises ConfigurationError."""
    if config.clearing is not None:
        raise ConfigurationError(
            "[clearing] is for polled tables: remove it, because Spanner itself deletes the records"
            " of a change stream after its retention period"
        )
    if config.stream.push and config.transactions:
        raise ConfigurationError(
            "stream.push delivers changes one by one, transactions = true delivers them window by"
            " window: use one or the other"
        )
    if config.stream.push and config.stream.placements:
        raise ConfigurationError(
            "stream.push reads the stream's own function: remove stream.push or stream.placements"
        )
    copied = config.replica is not None
    for name, spec in config.table.items():
        if spec.where is not None and not copied:
            raise ConfigurationError(
                f"[table.{name}] has where, which Spanner evaluates: a change stream has no"
                " conditions, and a change may lack the columns; poll the table, or filter in a"
                " callback"
            )
        if not is_for_streams(spec, copied):
            raise ConfigurationError(
                f"[table.{name}] configures polling: with capture = 'change-stream', use only"
                " columns, exclude_columns, hidden_columns, text_columns and masks there"
            )
    if config.start == EARLIEST:
        raise ConfigurationError(
            "start = 'earliest' does not work with a change stream: use a timestamp within its"
            " retention period, or backfill = ['*'] for whole tables before their changes"
        )


def check_queue(config: WatchConfig) -> None:
    """Checks the options of queues. Raises ConfigurationError."""
    delivery = config.delivery
    queue = delivery.queue
    for scheme, options in delivery.list_queue_options().items():
        kind = DESTINATIONS[scheme]
        if not isinstance(queue, kind) and options != kind.options():
            raise ConfigurationError(f"[delivery.{scheme}] needs to = '{SINKS[scheme].spelling}'")
    if queue is not None and delivery.callback is not None:
        raise ConfigurationError(
            f"delivery.callback and delivery.to = '{delivery.to}' do not work together: use one"
        )
    for options in delivery.list_queue_options().values():
        options.check(config.consumer)
    if queue is not None and queue.one_writer:
        check_one_writer(config, queue)


def check_one_writer(config: WatchConfig, destination: Destination) -> None:
    """Checks what does not work with a destination that takes whole windows of one instance.
    Raises ConfigurationError."""
    if config.consumer is None:
        raise ConfigurationError(
            f"delivery.to = '{destination}' needs 'consumer', a name for this watcher: an instance"
            " that was replaced is refused by it"
        )
    delivery = config.delivery
    if delivery.takes_columns and (delivery.envelope != "plain" or delivery.envelope_options):
        raise ConfigurationError(
            f"delivery.to = '{destination}' takes columns, not messages: remove delivery.envelope"
            " and its options"
        )
    if config.stream.push:
        raise ConfigurationError(
            f"delivery.to = '{destination}' is written window by window: remove stream.push"
        )
    if config.parts is not None:
        raise ConfigurationError(
            f"delivery.to = '{destination}' has one writer for each consumer: remove 'parts'"
        )


def check_registry(config: WatchConfig) -> None:
    """Checks what a schema registry needs, and what needs one. Raises ConfigurationError."""
    delivery, envelope = config.delivery, config.format
    kafka, queue, name = delivery.kafka, delivery.queue, delivery.envelope
    if kafka.schema_registry is None:
        if envelope.needs_registry and delivery.callback is None:
            raise ConfigurationError(
                f"the envelope '{name}' needs to = '{SINKS['kafka'].spelling}' and"
                " delivery.kafka.schema_registry, where readers find its schemas"
            )
        return
    if not isinstance(envelope, SchemaEnvelope):
        known = [each for each, kind in ENVELOPES.items() if issubclass(kind, SchemaEnvelope)]
        raise ConfigurationError(
            f"the envelope '{name}' has no schemas for delivery.kafka.schema_registry: remove it,"
            f" or use {', '.join(known)}"
        )
    if not isinstance(queue, KafkaDestination) or not config.names_several_tables:
        return
    shapes = [Shape(table, (), ()) for table in ("A", "B")]
    schemas = [envelope.describe_schemas(config.address.database, each).value for each in shapes]
    subjects = {
        name_subject(kafka.subject_names, queue, shape.table, "value", schema)
        for shape, schema in zip(shapes, schemas, strict=True)
    }
    if len(subjects) == 1:
        raise ConfigurationError(
            f"schemas of several tables would have one subject, '{min(subjects)}': write to a topic"
            f" for each table ({TABLE_FIELD}) with delivery.kafka.subject_names = 'topic', or use"
            " 'topic-record' and an envelope that names the table, as 'plain-avro' or 'plain'"
        )


def check_text_keys(config: WatchConfig) -> None:
    """Checks that rows of two tables have different keys where a topic may be compacted. Raises
    ConfigurationError."""
    delivery = config.delivery
    to_kafka = isinstance(delivery.queue, KafkaDestination)
    if to_kafka and delivery.kafka.text_keys and config.mixes_tables:
        raise ConfigurationError(
            "delivery.kafka.text_keys would give rows of several tables the same key: write to a"
            f" topic for each table ({TABLE_FIELD})"
        )


def check_envelope(config: WatchConfig) -> None:
    """Checks that what is watched can be written in this format, as lines or messages.

    What a change stream can fill is checked when the stream is found. Raises ConfigurationError.
    """
    delivery = config.delivery
    envelope, name = config.format, delivery.envelope
    if config.capture != "change-stream":
        config.check_known(Known("poll", backfill=bool(config.backfill)))
    check_registry(config)
    check_text_keys(config)
    if name == "plain":
        return
    if delivery.callback is not None:
        raise ConfigurationError(
            f"delivery.envelope = '{name}' does not work with a callback, which takes the change"
            " itself: remove it, and call watcher.envelopes.encode in the callback"
        )
    queue = delivery.queue
    if envelope.binary and (queue is None or queue.as_lines):
        raise ConfigurationError(
            f"the envelope '{name}' is binary and cannot be written as lines: use 'datastream', or"
            " a queue, or call watcher.envelopes.encode in a callback"
        )
    if envelope.needs_order and queue is not None and not queue.ordered:
        raise ConfigurationError(
            f"the envelope '{name}' has barriers, and {queue.service} has no order over several"
            " keys: turn them off in delivery.envelope_options"
        )
    if queue is not None and TABLE_FIELD in queue.topic:
        return
    if not envelope.names_table and config.names_several_tables:
        raise ConfigurationError(
            f"records of the envelope '{name}' do not name their table: watch one table, by its"
            " full name, and start one watcher for each table, or write to a queue with a topic"
            f" for each table ({TABLE_FIELD})"
        )
