"""The settings of a watcher, in TOML's spelling, from a file, flags or Python."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from ddl.model.selection import is_glob
from watcher.consumers.leases import LEASE_SECONDS
from watcher.consumers.positions.tables import KEY_CHARACTERS_MAX
from watcher.envelopes import Envelope, EnvelopeOptions, Known, make_envelope
from watcher.envelopes.table_keys import TableKeys
from watcher.model.errors import ConfigurationError
from watcher.planning.limits import WindowLimit
from watcher.process.text_files import read_text_file
from watcher.settings.destinations import DESTINATIONS, TABLE_FIELD
from watcher.settings.fields import (
    EARLIEST,
    LATEST,
    Duration,
    SharedSettings,
    Size,
    Start,
    Text,
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
from watcher.spanner.address import DatabaseAddress, Endpoint
from watcher.spanner.read_options import DirectedRead, Replica
from watcher.tables.parts import Part
from watcher.tables.values import TableSpec

GRACE_SECONDS = 60.0
PARTS_MAX = 1000


class WatchConfig(SharedSettings):
    """What a watcher watches and how. The text below a field is its line in the reference."""

    tables: Annotated[tuple[Text, ...], Field(min_length=1)] = ("*",)
    """Names or globs of the tables to watch."""
    exclude: tuple[Text, ...] = ()
    """Names or globs that ``tables`` leaves out."""
    capture: Literal["auto", "poll", "change-set", "change-stream"] = "auto"
    """How changes are found: ``change-stream`` reads a change stream; the others poll, a table with
    ``change_sets`` through its change sets."""
    stream: StreamConfig = StreamConfig()
    """Which change stream is read."""
    start: Start = LATEST
    """Where a consumer without a position starts; ``earliest`` is all that is in the index."""
    backfill: tuple[Text, ...] = ()
    """Names or globs of tables to deliver whole before their changes, as they are when a consumer
    without a position starts. Not together with ``start``."""
    backfill_rows: Annotated[int, Field(ge=1)] = 10_000
    """Rows of a page of a backfill."""
    interval: Duration = 1.0
    """The pause after a poll; there is none after a full window."""
    adaptive: bool = False
    """No pause while rows keep coming; longer ones while nothing changes, up to ten intervals."""
    max_rows: Annotated[int, Field(ge=1)] = 100_000
    """Windows are cut at about this many rows."""
    max_bytes: Size = 0
    """Windows are cut at about this size as Spanner sends it, such as ``64MiB``; 0 is no limit."""
    max_span: Duration = 0.0
    """Windows are cut so many seconds after their first change; 0 is no limit."""
    shard_groups: Annotated[int, Field(ge=1)] = 1
    """How many queries read a table side by side."""
    parts: Annotated[int, Field(ge=1, le=PARTS_MAX)] | None = None
    """Share the consumer: the shards of each table are divided into so many parts, which the
    instances that run as this consumer divide among themselves."""
    transactions: bool = False
    """Deliver the changes of one commit timestamp together, over all tables."""
    refresh: Duration = 10.0
    """How often the schema is read, which is when new tables are found."""
    lease: Annotated[Duration, Field(ge=1)] = LEASE_SECONDS
    """Another instance may take over after this time without renewal."""
    standby: bool = False
    """Wait while another instance of this consumer is alive, instead of failing."""
    create_folders: bool = False
    """Make all folders of the files and copies that are named here. Without it, those that are
    missing are an error, but for the last one."""
    grace: Duration = GRACE_SECONDS
    """How long a stop may take before the process ends anyway; what was not saved is delivered
    again."""
    on_missing_index: Literal["stop", "scan"] = "stop"
    """What to do when the index of a table is gone: stop, or scan the table without it."""
    index_wait: Duration = 60.0
    """How long to wait before stopping because an index is gone: for another one, or for the table
    to be dropped, too."""
    log_format: Literal["logfmt", "json"] = "logfmt"
    """The format of the log."""
    log_values: bool = False
    """Log errors of callbacks in full, which may quote values of rows."""
    table: Mapping[str, TableSpec] = {}
    """What the schema does not say about single tables."""
    endpoint: Endpoint | None = None
    """A Spanner that is not Google's own."""
    positions: PositionsConfig = PositionsConfig()
    """Where positions are saved."""
    clearing: ClearingConfig | None = None
    """Clearing on a schedule; without this section, nothing is cleared."""
    delivery: DeliveryConfig = DeliveryConfig()
    """Where changes go."""
    metrics: MetricsConfig | None = None
    """Prometheus metrics; without this section, none are served."""
    page: PageConfig | None = None
    """The live page of the database; without this section, none is served."""
    replica: ReplicaConfig | None = None
    """What ``spanner-watcher replicate`` writes."""

    @property
    def address(self) -> DatabaseAddress:
        """The database. Raises AddressError."""
        return DatabaseAddress.parse(self.database, self.endpoint)

    @property
    def format(self) -> EnvelopeOptions:
        """The envelope with its options. Raises ConfigurationError."""
        delivery = self.delivery
        return make_envelope(delivery.envelope, delivery.envelope_options, self.stream.name)

    @property
    def message_format(self) -> Envelope:
        """The envelope of what is written: keys name the table where lines, or a topic that may be
        compacted, may have rows of several."""
        queue = self.delivery.queue
        mixed = queue is None or (queue.compacted and TABLE_FIELD not in queue.topic)
        return TableKeys(self.format) if mixed and self.names_several_tables else self.format

    @property
    def names_several_tables(self) -> bool:
        """Whether ``tables`` is more than one name; a glob may stand for several at any time."""
        return len(self.tables) != 1 or is_glob(self.tables[0])

    @property
    def window_limit(self) -> WindowLimit:
        """How much a window may hold."""
        return WindowLimit(self.max_rows, self.max_bytes, round(self.max_span * 1_000_000))

    @property
    def positions_address(self) -> DatabaseAddress:
        """The database that keeps the positions."""
        named = self.positions.database
        return DatabaseAddress.parse(named, self.endpoint) if named else self.address


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
    _ = config.address, config.positions_address
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
    check_table_specs(config.table, config.replica is not None)


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
    if config.positions_address != config.address:
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
    for name, spec in config.table.items():
        if spec.where is not None:
            raise ConfigurationError(
                f"[table.{name}] has where, which Spanner evaluates: a change stream has no"
                " conditions, and a change may lack the columns; poll the table, or filter in a"
                " callback"
            )
        if not is_for_streams(spec):
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
            raise ConfigurationError(f"[delivery.{scheme}] needs to = '{kind.spelling}'")
    if queue is not None and delivery.callback is not None:
        raise ConfigurationError(
            f"delivery.callback and delivery.to = '{delivery.to}' do not work together: use one"
        )
    for options in delivery.list_queue_options().values():
        options.check(config.consumer)


def check_envelope(config: WatchConfig) -> None:
    """Checks that what is watched can be written in this format, as lines or messages.

    What a change stream can fill is checked when the stream is found. Raises ConfigurationError.
    """
    delivery = config.delivery
    envelope, name = config.format, delivery.envelope
    if config.capture != "change-stream":
        envelope.check(Known("poll", backfill=bool(config.backfill)))
    if name == "plain":
        return
    if delivery.callback is not None:
        raise ConfigurationError(
            f"delivery.envelope = '{name}' does not work with a callback, which takes the change"
            " itself: remove it, and call watcher.envelopes.encode in the callback"
        )
    queue = delivery.queue
    if envelope.binary and queue is None:
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


def read_toml(path: Path) -> dict[str, object]:
    """A TOML file as plain values. Raises ConfigurationError with its line."""
    try:
        return tomllib.loads(read_text_file(path))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is not valid TOML: {error}") from error
