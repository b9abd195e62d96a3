"""The options of the Spark source, as one validated model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel, to_snake

from watcher.change import Operation
from watcher.consumers.leases import LEASE_SECONDS
from watcher.consumers.positions import TABLE
from watcher.errors import ConfigurationError
from watcher.settings.fields import (
    LATEST,
    Text,
    duration_seconds,
    explained,
    resolve_start,
    unknown_option,
)
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.read_options import DirectedRead, Priority, ReadOptions
from watcher.spanner.results.supported_types import Nanoseconds
from watcher.window import BEGINNING

OUTAGE_SECONDS = 600.0


class SchemaChange(StrEnum):
    """What a query does when a column that it reads is dropped."""

    STOP = "stop"
    NULLS = "nulls"
    """It goes on, with NULLs in that column."""


class ClearedRows(StrEnum):
    """What a batch read does when rows between its timestamps may have been cleared."""

    FAIL = "fail"
    IGNORE = "ignore"
    """It gives what is left, with a warning."""


class JsonType(StrEnum):
    """What JSON is in Spark."""

    STRING = "string"
    VARIANT = "variant"


class CaptureName(StrEnum):
    """How changes are found."""

    POLL = "poll"
    CHANGE_STREAM = "change-stream"


def seconds_of(given: object) -> object:
    """A duration as Spark's options give it, in seconds."""
    return duration_seconds(given) if isinstance(given, str) else given


def operations_of(given: object) -> object:
    """Operations as Spark's options give them: names with commas between."""
    return tuple(name.upper() for name in listed(given)) if isinstance(given, str) else given


def json_object(given: object) -> object:
    """A JSON object as Spark's options give it. Raises ValueError."""
    return json.loads(given) if isinstance(given, str) else given


def directed_read_of(given: object) -> object:
    """A directed read as Spark's options give it: a JSON object in camelCase. Raises ValueError."""
    found = json_object(given)
    return (
        {to_snake(name): value for name, value in found.items()}
        if isinstance(found, dict)
        else found
    )


class SourceOptions(BaseModel):
    """The options of the Spark source ``spanner-changes``, in camelCase there.

    Exactly one of ``table`` (its own columns) and ``tables`` (names and globs with commas between;
    an envelope a change). ``consumer`` names this reader for clearing; without it nothing waits for
    the reader. ``starting_timestamp`` is ``latest``, ``earliest`` (the whole table as it is now,
    then its changes) or an RFC 3339 timestamp. ``max_rows_per_batch`` 0 is no limit, nor is
    ``max_span_per_batch`` (of commit timestamps) 0. ``idle_seconds`` is how often the position of
    an idle table advances. ``outage_seconds`` is how long calls are tried again while Spanner does
    not answer. ``priority`` and ``directed_read`` (JSON) go with every read. With
    ``push_filters`` Spanner checks filters of batch reads; Spark
    then keeps those of one query for the next one of the same ``load()``, so each needs a load of
    its own. ``on_cleared_rows`` says what a batch read of changes does when some of them may have
    left the index. ``json_type`` is ``string``, or ``variant`` for Spark's VARIANT, also of the
    envelope's key and values.

    ``capture`` is ``poll`` or ``change-stream``; then ``stream`` names the change stream (default:
    the only one that watches the tables), ``operations`` and ``transaction_tag`` leave other
    changes out, and ``whole_rows`` reads the values that the stream's capture type leaves out.
    ``envelope`` writes changes in the format of others, as a key and a value; its own options are
    JSON in ``envelope_options``.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )

    project: Text
    instance: Text
    database: Text
    table: Text | None = None
    tables: Text | None = None
    exclude: str = ""
    consumer: Text | None = None
    lease_seconds: Annotated[float, Field(ge=1)] = LEASE_SECONDS
    shard_groups: Annotated[int, Field(ge=1)] = 4
    rows_per_slice: Annotated[int, Field(ge=1)] = 20_000
    starting_timestamp: Text = LATEST
    ending_timestamp: Text = LATEST
    snapshot_timestamp: Text = LATEST
    max_rows_per_batch: Annotated[int, Field(ge=0)] = 0
    max_span_per_batch: Annotated[float, BeforeValidator(seconds_of), Field(ge=0)] = 0.0
    backfill_rows_per_batch: Annotated[int, Field(ge=1)] = 500_000
    idle_seconds: Annotated[float, Field(ge=0)] = 10.0
    outage_seconds: Annotated[float, BeforeValidator(seconds_of), Field(ge=0)] = OUTAGE_SECONDS
    priority: Priority | None = None
    directed_read: Annotated[DirectedRead | None, BeforeValidator(directed_read_of)] = None
    positions_table: Text = TABLE
    nanoseconds: Nanoseconds = Nanoseconds.TRUNCATE
    json_type: JsonType = JsonType.STRING
    on_schema_change: SchemaChange = SchemaChange.STOP
    on_cleared_rows: ClearedRows = ClearedRows.FAIL
    data_boost: bool = False
    push_filters: bool = False
    capture: CaptureName = CaptureName.POLL
    stream: Text | None = None
    operations: Annotated[tuple[Operation, ...], BeforeValidator(operations_of)] = ()
    transaction_tag: Text | None = None
    whole_rows: bool = False
    envelope: Text | None = None
    envelope_options: Annotated[Mapping[str, object], BeforeValidator(json_object)] = {}

    @property
    def streamed(self) -> bool:
        """True when a change stream tells the changes."""
        return self.capture is CaptureName.CHANGE_STREAM

    @property
    def read_options(self) -> ReadOptions:
        """What every read asks of Spanner."""
        return ReadOptions(self.priority, self.directed_read)

    @property
    def address(self) -> DatabaseAddress:
        """The database."""
        return DatabaseAddress(self.project, self.instance, self.database)

    @property
    def uniform(self) -> bool:
        """True when rows of any table come in one form."""
        return self.tables is not None or self.envelope is not None

    @property
    def source(self) -> str:
        """What is read, as a checkpoint names it."""
        return self.table or names_of(self.tables or "", self.exclude)

    @property
    def changes_wanted(self) -> bool:
        """For a batch read: changes between two timestamps, rather than a snapshot."""
        return not self.model_fields_set.isdisjoint({"starting_timestamp", "ending_timestamp"})


def names_of(tables: str, exclude: str) -> str:
    """A list of names in one spelling."""
    left_out = f" except {','.join(listed(exclude))}" if exclude else ""
    return ",".join(listed(tables)) + left_out


def listed(text: str) -> tuple[str, ...]:
    """Names with commas between."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def source_options(given: Mapping[str, str]) -> SourceOptions:
    """Spark's options, whose names are without regard to case. Raises ConfigurationError."""
    known = {to_camel(name).lower(): to_camel(name) for name in SourceOptions.model_fields}
    values = {}
    for name, value in given.items():
        if name.lower() not in known:
            raise unknown_option(name, known.values())
        values[known[name.lower()]] = value
    try:
        options = SourceOptions.model_validate(values)
    except ValidationError as error:
        raise ConfigurationError(explained(error)) from error
    if (options.table is None) == (options.tables is None):
        raise ConfigurationError(
            "one of the options 'table' (one table, its own columns) and 'tables' (several, an"
            " envelope a change) is needed"
        )
    check_stream(options)
    resolve_start(options.starting_timestamp)
    for each in (options.ending_timestamp, options.snapshot_timestamp):
        if resolve_start(each) == BEGINNING:
            raise ConfigurationError(f"'{each}' is no end: write {LATEST} or a timestamp")
    if options.changes_wanted and "snapshot_timestamp" in options.model_fields_set:
        raise ConfigurationError(
            "'snapshotTimestamp' reads whole tables, 'startingTimestamp' and 'endingTimestamp' read"
            " changes; choose one"
        )
    return options


def check_stream(options: SourceOptions) -> None:
    """What goes with a change stream and what does not. Raises ConfigurationError."""
    given = options.model_fields_set
    if not options.streamed:
        for name in ("stream", "operations", "transaction_tag", "whole_rows"):
            if name in given:
                raise ConfigurationError(
                    f"'{to_camel(name)}' needs 'capture' = '{CaptureName.CHANGE_STREAM}'"
                )
        return
    if options.max_rows_per_batch:
        raise ConfigurationError(
            "the changes of a change stream cannot be counted without being read: bound a batch by"
            " 'maxSpanPerBatch', such as 5m, instead of 'maxRowsPerBatch'"
        )
