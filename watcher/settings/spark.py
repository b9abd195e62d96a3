"""The options of the Spark source, in Spark's spelling: camelCase names, every value a text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from spanner_schema.model.strategies import ShardKind
from watcher.consumers.leases import LEASE_SECONDS
from watcher.consumers.positions import TABLE
from watcher.model.change import Operation
from watcher.model.errors import ConfigurationError
from watcher.planning.limits import WindowLimit
from watcher.replica.cuts.modes import LATEST as LATEST_ROWS
from watcher.replica.cuts.modes import Mode
from watcher.settings.fields import (
    LATEST,
    Duration,
    End,
    PositionsTable,
    SharedSettings,
    Size,
    Start,
    Text,
)
from watcher.settings.spark_texts import (
    convert_columns,
    convert_directed_read,
    convert_json,
    convert_mask_key,
    convert_operations,
    convert_shard_values,
    convert_table_options,
    join_names,
    split_names,
)
from watcher.settings.table_specs import (
    put_mask_key,
)
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.read_options import DirectedRead
from watcher.tables.masks import MaskKey
from watcher.tables.values import TableSpec

OUTAGE_SECONDS = 600.0


class SchemaChange(StrEnum):
    """What a query does if a column that it reads is dropped."""

    STOP = "stop"
    NULLS = "nulls"
    """It continues, with NULLs in that column."""


class ClearedRows(StrEnum):
    """What a batch read does if rows between its timestamps may have been cleared."""

    FAIL = "fail"
    IGNORE = "ignore"
    """It returns what is left, and logs a warning."""


class JsonType(StrEnum):
    """The type of JSON columns in Spark."""

    STRING = "string"
    VARIANT = "variant"


class CaptureName(StrEnum):
    """How changes are found."""

    POLL = "poll"
    CHANGE_STREAM = "change-stream"


OF_WATCHER = {
    "nanoseconds": "nanoseconds",
    "priority": "priority",
    "lease": "lease_seconds",
    "shard_groups": "shard_groups",
    "max_rows": "max_rows_per_batch",
    "max_bytes": "max_bytes_per_batch",
    "max_span": "max_span_per_batch",
    "accept_failed_probes": "accept_failed_probes",
}
"""Settings of a watcher that are options here, under these names."""
OF_TABLE = ("shard", "shard_column", "shard_values", "timestamp_column", "index", "where")
"""The options that say how ``table`` is polled."""


class SourceOptions(SharedSettings):
    """The options of the Spark source ``spanner-changes``, in camelCase there. The text below a
    field is its line in the reference."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    database: Text
    """The database's id; or its address, ``spanner://projects/P/instances/I/databases/D``, with all
    that may stand after it, and without ``project``, ``instance`` and ``databaseRole``."""
    project: Text | None = None
    """The project's id."""
    instance: Text | None = None
    """The instance's id."""
    database_role: Text | None = None
    """The role of the database as which it is read."""
    table: Text | None = None
    """One table, in its own columns. One of ``table`` and ``tables`` is required."""
    tables: Text | None = None
    """Several tables, by comma-separated names and globs (``Singers,Album*``), as rows of one
    form."""
    exclude: str = ""
    """Comma-separated names and globs that ``tables`` leaves out."""
    lease_seconds: Annotated[float, Field(ge=1)] = LEASE_SECONDS
    """How many seconds after the last renewal another query may use the name of a killed one."""
    shard_groups: Annotated[int, Field(ge=1)] = 4
    """About how many input partitions a table has at most in a micro-batch."""
    rows_per_slice: Annotated[int, Field(ge=1)] = 20_000
    """Use fewer partitions if each would have fewer rows than this; tables share one."""
    starting_timestamp: Start = LATEST
    """Where a query without a checkpoint starts; ``earliest`` is the whole table as it is now, then
    its changes. Batch reads: the start of the changes (outside); ``earliest`` is what is still in
    the index."""
    ending_timestamp: End = LATEST
    """Batch reads: the end of the changes (inside)."""
    snapshot_timestamp: End = LATEST
    """Batch reads: as of when whole tables are read."""
    max_rows_per_batch: Annotated[int, Field(ge=0)] = 0
    """Split a backlog into micro-batches of about this many rows; 0 is no limit. Of a change
    stream: at most this many changes, or one commit that has more."""
    max_bytes_per_batch: Size = 0
    """Split a backlog into micro-batches of about this size as Spanner sends it, such as ``64MiB``;
    0 is no limit. Of a table: by the average of 200 rows. Of a change stream: at most this size of
    records, or one commit that is larger."""
    max_span_per_batch: Duration = 0.0
    """Split a backlog by commit timestamps; 0 is no limit."""
    limit_first_batch: bool = False
    """Spark 4.0 and 4.1: limits hold for the first batch after a start, too. Not with
    ``Trigger.AvailableNow``, which ends after it. From Spark 4.2 on they always hold."""
    backfill_rows_per_batch: Annotated[int, Field(ge=1)] = 500_000
    """Rows of a micro-batch during a backfill of whole tables."""
    idle_seconds: Annotated[float, Field(ge=0)] = 10.0
    """How often the position of an idle table advances, by an empty micro-batch, in seconds, and
    every other trigger at most. 0: by every trigger, and ``processAllAvailable`` does not end."""
    outage_seconds: Duration = OUTAGE_SECONDS
    """How long calls are retried while Spanner does not answer, before the query fails."""
    directed_read: Annotated[DirectedRead | None, BeforeValidator(convert_directed_read)] = None
    """Which replicas serve the reads of captures, as JSON with names in camelCase: ``{"include":
    [{"location": "us-east4", "type": "read-only"}], "autoFailoverDisabled": true}``."""
    mask_key: Annotated[MaskKey | None, BeforeValidator(convert_mask_key)] = None
    """Where the key of the hashes is by which columns are masked, on each executor, as JSON:
    ``{"env": "NAME"}`` or ``{"file": "PATH"}``. It has 16 characters at least."""
    positions_table: PositionsTable = TABLE
    """The table in the same database that keeps positions, TABLE or SCHEMA.TABLE. Created if it is
    missing, as those that go with it are (``...Consumers`` and others)."""
    json_type: JsonType = JsonType.STRING
    """``variant``: JSON is Spark's VARIANT, also ``key`` and ``values`` with ``tables``."""
    on_schema_change: SchemaChange = SchemaChange.STOP
    """When a column that is read is dropped: stop, or continue with NULLs in it."""
    on_cleared_rows: ClearedRows = ClearedRows.FAIL
    """Batch reads of changes, when some may have been cleared from the index: fail, or read what is
    left, with a warning."""
    data_boost: bool = False
    """Batch reads: whole tables are read on Spanner's own machines, at its own price."""
    max_partitions: Annotated[int, Field(ge=0)] = 0
    """Batch reads of whole tables: a table is at most so many tasks of Spark's, which read
    Spanner's partitions one after another; 0: each of them is a task. How many there are, Spanner
    decides. A task has its own cost: let there be a few for each core."""
    columns: Annotated[tuple[str, ...], BeforeValidator(convert_columns)] = ()
    """Only these columns, by comma-separated names: no others are read. As ``.schema(...)``, which
    comes first, without types."""
    push_filters: bool = False
    """Batch reads: Spanner evaluates filters. Spark keeps those of one query for the next query of
    the same ``load()``, so each query then needs a ``load()`` of its own."""
    capture: CaptureName = CaptureName.POLL
    """How changes are found; ``change-stream``: every version, and deletes."""
    stream: Text | None = None
    """The change stream; without it, the only one that watches the tables."""
    placements: str = ""
    """Of a change stream, the functions of these placements instead of its own, with commas
    between (Spanner: ``per_placement_tvf``)."""
    operations: Annotated[tuple[Operation, ...], BeforeValidator(convert_operations)] = ()
    """Of a change stream, only these operations, with commas between: ``INSERT,DELETE``."""
    transaction_tag: Text | None = None
    """Of a change stream, only changes of transactions with this tag."""
    whole_rows: bool = False
    """Of a change stream: read the values that its capture type leaves out."""
    change_columns: bool = False
    """Adds ``_change_type`` and ``_commit_version``, named and typed as in Spark's ``CHANGES``."""
    envelope: Text | None = None
    """Records in another format, as binary ``key`` and ``value``."""
    envelope_options: Annotated[Mapping[str, object], BeforeValidator(convert_json)] = {}
    """The options of that format, as a JSON object."""

    arrow_rows: bool = False
    """With ``tables``: rows are Arrow batches of one table each, in its own columns, as
    ``watcher.replicate`` reads them."""
    copy_mode: Mode = LATEST_ROWS
    """With ``arrowRows``: what the copies keep, as ``mode`` of ``[replica]``."""
    starts_with_window: bool = False
    """With ``arrowRows``: the first batch of a start has a window, even if nothing has changed."""
    deleted_columns: Annotated[Mapping[str, str], BeforeValidator(convert_json)] = {}
    """With ``arrowRows``: the soft-delete columns of tables, as a JSON object: ``{"Singers":
    "IsDeleted"}``."""

    shard: ShardKind | None = None
    """With ``table``: what its shard is, as in ``[table.NAME]`` of a watcher: ``computed``, or
    ``time``, ``fixed``, ``not-null`` for a column that applications write, or ``none``."""
    shard_column: Text | None = None
    """With ``table``: the column of the shard."""
    shard_values: Annotated[tuple[int | str, ...] | None, BeforeValidator(convert_shard_values)] = (
        None
    )
    """With ``table`` and ``shard`` = ``fixed``: all values of the shard, with commas between, or as
    a JSON array."""
    timestamp_column: Text | None = None
    """With ``table``: the column of the commit timestamp, where it has several."""
    index: Text | None = None
    """With ``table``: the index to poll through."""
    where: Text | None = None
    """With ``table``: only its rows that satisfy this condition, which Spanner checks, such as
    ``City = 'Bern' AND Age >= 18``: ``where`` of ``[table.NAME]`` of a watcher."""
    table_options: Annotated[Mapping[str, TableSpec], BeforeValidator(convert_table_options)] = {}
    """The same of several tables, as a JSON object: ``{"Events": {"shard": "time", "shardColumn":
    "Hour"}}``. Names are those of ``[table.NAME]`` of a watcher, in camelCase."""

    text_columns: str = ""
    """Comma-separated columns of the type numeric (PostgreSQL dialect) that are read as text, as
    ``Singers.Budget``; with ``table`` the column alone will do."""

    @property
    def specs(self) -> Mapping[str, TableSpec]:
        """What the schema does not say about single tables."""
        texts = self._text_columns
        told = {
            name: put_mask_key(spec, self.mask_key) for name, spec in self.table_options.items()
        }
        if self.table is not None and self._own_table:
            own = next((each for each in told if each.casefold() == self.table.casefold()), None)
            spec = told.pop(own) if own is not None else TableSpec()
            told[self.table] = replace(spec, **self._own_table)
        names = dict.fromkeys([*self.deleted_columns, *texts, *told])
        return {
            name: replace(
                (spec := told.get(name, TableSpec())),
                deleted=self.deleted_columns.get(name, spec.deleted),
                text_columns=texts.get(name, spec.text_columns),
            )
            for name in names
        }

    @property
    def _own_table(self) -> dict[str, Any]:
        """What options say of how ``table`` is polled."""
        values = {name: getattr(self, name) for name in OF_TABLE}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def _text_columns(self) -> dict[str, tuple[str, ...]]:
        """``text_columns`` by table."""
        columns: dict[str, tuple[str, ...]] = {}
        for written in split_names(self.text_columns):
            table, _, column = written.rpartition(".")
            name = table or self.table
            if name is None:
                raise ConfigurationError(
                    f"option 'textColumns': write the table of column {written}, as"
                    f" Singers.{written}"
                )
            columns[name] = (*columns.get(name, ()), column)
        return columns

    @property
    def streamed(self) -> bool:
        """True if the changes come from a change stream."""
        return self.capture is CaptureName.CHANGE_STREAM

    @property
    def window_limit(self) -> WindowLimit:
        """How much a micro-batch may hold."""
        span = round(self.max_span_per_batch * 1_000_000)
        return WindowLimit(self.max_rows_per_batch, self.max_bytes_per_batch, span)

    @property
    def address(self) -> DatabaseAddress:
        """The database. Raises AddressError."""
        if self.project is None or self.instance is None:
            return DatabaseAddress.parse(self.database)
        return DatabaseAddress(
            self.project, self.instance, self.database, database_role=self.database_role
        )

    @property
    def uniform(self) -> bool:
        """True if rows of any table have the same columns."""
        return self.tables is not None or self.envelope is not None

    @property
    def source(self) -> str:
        """The tables, as a checkpoint names them."""
        return self.table or join_names(self.tables or "", self.exclude)

    @property
    def reads_changes(self) -> bool:
        """For a batch read: changes between two timestamps, rather than a snapshot."""
        return not self.model_fields_set.isdisjoint({"starting_timestamp", "ending_timestamp"})
