"""What a watcher watches and how: one validated model, from a TOML file, flags or Python."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from watcher.change import Operation
from watcher.consumers.clearing import Method
from watcher.consumers.leases import LEASE_SECONDS
from watcher.consumers.positions import TABLE
from watcher.envelopes import AnyEnvelope, Known, envelope
from watcher.errors import ConfigurationError
from watcher.settings.fields import (
    EARLIEST,
    LATEST,
    Text,
    duration_seconds,
    explained,
    resolve_start,
    unknown_option,
)
from watcher.spanner.address import DatabaseAddress, Endpoint
from watcher.spanner.read_options import DirectedRead, Priority, ReadOptions, Replica
from watcher.spanner.results.supported_types import Nanoseconds
from watcher.tables.selection import is_glob
from watcher.tables.values import TableSpec

GRACE_SECONDS = 60.0
Duration = Annotated[
    float,
    BeforeValidator(lambda given: duration_seconds(given) if isinstance(given, str) else given),
    Field(ge=0),
]
"""Seconds; in files and flags also 500ms, 1s, 5m, 2h."""


class Section(BaseModel):
    """A table of the file: nothing unknown in it, and it does not change."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class PositionsConfig(Section):
    """Where positions are kept: in a Spanner table (of the same or another database), in a file, or
    nowhere (``memory``). Leases and ``ctl`` need ``spanner``."""

    keep: Literal["spanner", "file", "memory"] = "spanner"
    table: Text = TABLE
    database: Text | None = None
    path: Path | None = None


class ClearingConfig(Section):
    """Clearing on a schedule. ``rows_max`` is how many rows one clearing may take out; a consumer
    whose position is older than ``report_after`` is reported, never overtaken. ``method``:
    ``partitioned`` scans the table, ``index`` takes the rows that the index names one by one,
    ``auto`` the cheaper one."""

    every: Duration
    margin: Duration = 0.0
    rows_max: Annotated[int, Field(ge=1)] | None = None
    report_after: Duration = 86_400.0
    method: Method = Method.PARTITIONED


class DeliveryConfig(Section):
    """What happens to a change. ``to`` is ``-`` for the standard output, or a file, which is
    rotated at ``rotate_bytes``; or a ``callback`` as ``module:function``. A callback that raises is
    called again ``retries`` times; then the watcher stops, or skips to ``dead_letters``.
    ``envelope`` is the format of the lines (``watcher.envelopes.ENVELOPES``), ``envelope_options``
    are its own."""

    to: Text = "-"
    rotate_bytes: Annotated[int, Field(ge=1)] | None = None
    callback: Text | None = None
    envelope: Text = "plain"
    envelope_options: Mapping[str, object] = {}
    retries: Annotated[int, Field(ge=0)] = 5
    backoff: Duration = 0.5
    then: Literal["stop", "skip"] = "stop"
    dead_letters: Path | None = None


class MetricsConfig(Section):
    """Prometheus metrics over HTTP; on loopback unless told otherwise."""

    port: Annotated[int, Field(ge=0, le=65_535)]
    host: Text = "127.0.0.1"


class StreamConfig(Section):
    """Which change stream is read, with ``capture = "change-stream"``: ``name``, or the only one
    that watches the tables. ``operations`` and ``tag`` (of transactions) leave other changes out.
    ``whole_rows`` reads the values that the stream's capture type leaves out, at the commit
    timestamp: a call a record. ``push`` keeps queries open instead of asking every interval:
    changes come in milliseconds, one by one instead of window by window."""

    name: Text | None = None
    operations: tuple[Literal["INSERT", "UPDATE", "DELETE"], ...] = ()
    tag: Text | None = None
    whole_rows: bool = False
    push: bool = False

    @property
    def wanted_operations(self) -> frozenset[Operation]:
        """The operations that are read; none are all."""
        return frozenset(Operation(name) for name in self.operations)


class WatchConfig(Section):
    """What a watcher watches and how.

    ``tables`` and ``exclude`` are names or globs; tables that come later are picked up every
    ``refresh`` seconds. ``backfill`` names tables (or globs) that are delivered whole before their
    changes, as they were when a consumer without a position starts, ``backfill_rows`` at a time.
    ``adaptive`` lengthens the pause of an idle watcher up to ten intervals. ``transactions``
    delivers the changes of one commit timestamp together, over all tables. ``standby`` waits for
    the consumer's name while another instance lives; without it that is refused.
    ``nanoseconds`` is what becomes of a TIMESTAMP finer than microseconds that is polled or
    backfilled; keys and change streams give it whole.
    ``grace`` is how long a stop may take before the process ends anyway: what was not saved comes
    again. ``on_missing_index``: ``stop``, or ``scan`` the table without it. ``priority`` and
    ``directed_read`` say how Spanner serves the reads of captures.
    """

    database: Text
    consumer: Text | None = None
    tables: Annotated[tuple[Text, ...], Field(min_length=1)] = ("*",)
    exclude: tuple[Text, ...] = ()
    capture: Literal["auto", "poll", "change-set", "change-stream"] = "auto"
    stream: StreamConfig = StreamConfig()
    start: Text = LATEST
    backfill: tuple[Text, ...] = ()
    backfill_rows: Annotated[int, Field(ge=1)] = 10_000
    interval: Duration = 1.0
    adaptive: bool = False
    max_rows: Annotated[int, Field(ge=1)] = 100_000
    shard_groups: Annotated[int, Field(ge=1)] = 1
    nanoseconds: Nanoseconds = Nanoseconds.TRUNCATE
    transactions: bool = False
    refresh: Duration = 10.0
    lease: Annotated[Duration, Field(ge=1)] = LEASE_SECONDS
    standby: bool = False
    grace: Duration = GRACE_SECONDS
    on_missing_index: Literal["stop", "scan"] = "stop"
    log_format: Literal["logfmt", "json"] = "logfmt"
    log_values: bool = False
    priority: Priority | None = None
    directed_read: DirectedRead | None = None
    table: Mapping[str, TableSpec] = {}
    endpoint: Endpoint | None = None
    positions: PositionsConfig = PositionsConfig()
    clearing: ClearingConfig | None = None
    delivery: DeliveryConfig = DeliveryConfig()
    metrics: MetricsConfig | None = None

    @property
    def read_options(self) -> ReadOptions:
        """What every read of a capture asks of Spanner."""
        return ReadOptions(self.priority, self.directed_read)

    @property
    def address(self) -> DatabaseAddress:
        """The database. Raises AddressError."""
        return DatabaseAddress.parse(self.database, self.endpoint)

    @property
    def format(self) -> AnyEnvelope:
        """The envelope with its options. Raises ConfigurationError."""
        delivery = self.delivery
        return envelope(delivery.envelope, delivery.envelope_options, self.stream.name)

    @property
    def positions_address(self) -> DatabaseAddress:
        """The database that keeps the positions."""
        named = self.positions.database
        return DatabaseAddress.parse(named, self.endpoint) if named else self.address


def watch_config(given: Mapping[str, object]) -> WatchConfig:
    """A checked configuration. Raises ConfigurationError that names what is wrong."""
    try:
        config = WatchConfig.model_validate(given)
    except ValidationError as error:
        for each in error.errors():
            if each["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
                raise unknown_option(str(each["loc"][-1]), names_at(each["loc"][:-1])) from error
        raise ConfigurationError(explained(error)) from error
    check_together(config)
    return config


def names_at(place: tuple[int | str, ...]) -> list[str]:
    """The options that are known in a section."""
    if place and place[0] == "table":
        return [field.name for field in fields(TableSpec)]
    if place and place[0] == "directed_read":
        return [field.name for field in fields(Replica if len(place) > 1 else DirectedRead)]
    if place and place[0] == "endpoint":
        return [field.name for field in fields(Endpoint)]
    sections: dict[str, type[BaseModel]] = {
        "stream": StreamConfig,
        "positions": PositionsConfig,
        "clearing": ClearingConfig,
        "delivery": DeliveryConfig,
        "metrics": MetricsConfig,
    }
    model = sections.get(str(place[0]), WatchConfig) if place else WatchConfig
    return list(model.model_fields)


def check_together(config: WatchConfig) -> None:
    """What the fields cannot say one by one. Raises ConfigurationError."""
    resolve_start(config.start)
    _ = config.address, config.positions_address
    if config.backfill and config.start != LATEST:
        raise ConfigurationError(
            "a backfill begins now: leave out start, or write start = 'latest'"
        )
    check_stream(config)
    if config.positions.keep == "file" and config.positions.path is None:
        raise ConfigurationError("positions.keep = 'file' needs positions.path")
    if config.clearing is not None and config.positions.keep != "spanner":
        raise ConfigurationError(
            "clearing needs positions.keep = 'spanner': it goes behind every consumer, so it must"
            " know them all"
        )
    if config.clearing is not None and config.consumer is None:
        raise ConfigurationError("clearing needs a consumer: name this watcher")
    if config.delivery.then == "skip" and config.delivery.dead_letters is None:
        raise ConfigurationError("delivery.then = 'skip' needs delivery.dead_letters, a file")
    check_envelope(config)
    for name, table in config.table.items():
        if table.shard == "fixed" and not table.shard_values:
            raise ConfigurationError(f"table.{name}.shard = 'fixed' needs shard_values")
        if table.shard in ("fixed", "time", "not-null") and table.shard_column is None:
            raise ConfigurationError(f"table.{name}.shard = '{table.shard}' needs shard_column")


def check_stream(config: WatchConfig) -> None:
    """What goes with a change stream and what does not. Raises ConfigurationError."""
    if config.capture != "change-stream":
        if config.stream != StreamConfig():
            raise ConfigurationError("[stream] needs capture = 'change-stream'")
        return
    if config.clearing is not None:
        raise ConfigurationError(
            "clearing is for polled tables: Spanner itself lets go of the records of a change"
            " stream after its retention period; leave [clearing] out"
        )
    if config.stream.push and config.transactions:
        raise ConfigurationError(
            "stream.push delivers changes as they come, transactions = true a window of them at"
            " its end: choose one"
        )
    for name, spec in config.table.items():
        if replace(spec, columns=None, exclude_columns=()) != TableSpec():
            raise ConfigurationError(
                f"[table.{name}] says how a table is polled; with capture = 'change-stream' it may"
                " hold columns and exclude_columns only"
            )
    if config.start == EARLIEST:
        raise ConfigurationError(
            "a change stream has no beginning: write a start within its retention period, or"
            " backfill = ['*'] for whole tables before their changes"
        )


def check_envelope(config: WatchConfig) -> None:
    """Can what is watched be written in this format, as lines? Raises ConfigurationError.

    What a change stream can fill is seen when the stream is found.
    """
    delivery = config.delivery
    chosen, name = config.format, delivery.envelope
    if config.capture != "change-stream":
        chosen.check(Known("poll", backfill=bool(config.backfill)))
    if name == "plain":
        return
    if delivery.callback is not None:
        raise ConfigurationError(
            f"a callback gets the change itself: leave out delivery.envelope = '{name}', and call"
            " watcher.envelopes.encode in the callback"
        )
    if chosen.binary:
        raise ConfigurationError(
            f"the envelope '{name}' is binary, and this writes lines: use its JSON form"
            " ('datastream'), or call watcher.envelopes.encode in a callback"
        )
    if not chosen.names_table and (len(config.tables) != 1 or is_glob(config.tables[0])):
        raise ConfigurationError(
            f"records of the envelope '{name}' do not name their table: watch one table, by its"
            " whole name, and start a watcher for each"
        )


def read_toml(path: Path) -> dict[str, object]:
    """A TOML file as plain values. Raises ConfigurationError with its line."""
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is no TOML: {error}") from error
