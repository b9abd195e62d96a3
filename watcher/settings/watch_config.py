"""The settings of a watcher, in TOML's spelling: what each means, and what follows from several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from spanner_schema.model.selection import is_glob
from watcher.consumers.leases import LEASE_SECONDS
from watcher.envelopes import Envelope, EnvelopeOptions, Known, make_envelope
from watcher.envelopes.wrapped import TableKeys
from watcher.model.errors import ConfigurationError
from watcher.planning.limits import WindowLimit
from watcher.settings.destinations import TABLE_FIELD
from watcher.settings.fields import (
    LATEST,
    Duration,
    SharedSettings,
    Size,
    Start,
    Text,
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
from watcher.spanner.address import DatabaseAddress, Endpoint
from watcher.tables.values import TableSpec

GRACE_SECONDS = 60.0
IDLE_SECONDS_MAX = 45.0
"""A consumer that says nothing for a minute is behind, for those who look at it."""
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
    idle_interval: Annotated[Duration, Field(le=IDLE_SECONDS_MAX)] = 0.0
    """The longest pause while nothing changes, at most 45 s: pauses grow by an interval with each
    poll that finds nothing. 0 leaves them as they are. What comes first after a quiet time may wait
    so long."""
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
    """Where Spanner's API is, if not at spanner.googleapis.com."""
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
        compacted, may have rows of several. Those of a registry do, by their schema."""
        chosen = self.format
        named = chosen.needs_registry or not self.mixes_tables
        return chosen if named else TableKeys(chosen)

    @property
    def mixes_tables(self) -> bool:
        """Whether rows of several tables are in one place where equal keys would be one row's."""
        queue = self.delivery.queue
        one_target = queue is None or (queue.compacted and TABLE_FIELD not in queue.topic)
        return one_target and self.names_several_tables

    def check_known(self, known: Known) -> None:
        """Checks that a capture can fill the envelope, and has one schema for the records of a
        table where a registry keeps it. Raises ConfigurationError."""
        self.format.check(known)
        if self.delivery.takes_columns and not known.whole_rows:
            raise ConfigurationError(
                f"{known} has only the columns that change, and a row of {self.delivery.queue} has"
                " all: use value_capture_type NEW_ROW or NEW_ROW_AND_OLD_VALUES, or"
                " stream.whole_rows = true"
            )
        if self.delivery.kafka.schema_registry is not None and not known.whole_rows:
            raise ConfigurationError(
                f"{known} has records of as many schemas as there are sets of columns that change"
                " together: use value_capture_type NEW_ROW or NEW_ROW_AND_OLD_VALUES, or remove"
                " delivery.kafka.schema_registry"
            )

    @property
    def names_several_tables(self) -> bool:
        """Whether ``tables`` is more than one name; a glob may stand for several at any time."""
        return len(self.tables) != 1 or is_glob(self.tables[0])

    @property
    def window_limit(self) -> WindowLimit:
        """How much a window may hold."""
        return WindowLimit(self.max_rows, self.max_bytes, round(self.max_span * 1_000_000))

    @property
    def keeps_positions_apart(self) -> bool:
        """Whether another database keeps the positions, or another role writes them."""
        return self.positions_address != self.address.for_writes

    @property
    def positions_address(self) -> DatabaseAddress:
        """The database that keeps the positions."""
        named = self.positions.database
        if not named:
            return self.address.for_writes
        return DatabaseAddress.parse_for_writes(named, self.endpoint)
