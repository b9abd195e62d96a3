"""Batch reads: whole tables at a timestamp, or the changes between two."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from google.api_core.exceptions import FailedPrecondition, InvalidArgument, NotFound
from pydantic.alias_generators import to_snake
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from ddl.schema import TypeCode
from watcher.captures import COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN
from watcher.captures.poll import PollCapture
from watcher.captures.snapshot import SnapshotCapture
from watcher.consumers.positions import cleared_table
from watcher.consumers.positions.cleared import read_cleared
from watcher.errors import ClearedError, ConfigurationError
from watcher.runners.spark.failing import explaining
from watcher.runners.spark.filters import Pusher
from watcher.runners.spark.planning import planning
from watcher.runners.spark.reading import Reading
from watcher.runners.spark.slices import PlannedSlice, planned, read_slice
from watcher.settings.fields import resolve_start
from watcher.settings.spark import ClearedRows, SourceOptions
from watcher.spanner.database import connect
from watcher.spanner.results.supported_types import Nanoseconds
from watcher.spanner.resumption import convert_refusal
from watcher.spanner.sql import combine_conditions
from watcher.spanner.timestamps import format_timestamp, to_datetime
from watcher.tables.schema_reader import read_epoch
from watcher.window import BEGINNING, ShardSlice, Window

LOG = logging.getLogger("watcher.spark")


@dataclass
class SlicePartition(InputPartition):
    """An input partition: a slice of a window."""

    planned: PlannedSlice


class SnapshotReader(DataSourceReader):
    """Whole tables at a timestamp, in the parts that Spanner makes of them."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def partitions(self) -> Sequence[InputPartition]:
        """Spanner's partitions, all of one read timestamp."""
        with explaining(self._reading):
            window = Window(BEGINNING, past(self._reading, "snapshotTimestamp"))
            reading = in_schema_of(self._reading, window.end, whole=True)
            return [
                SlicePartition(PlannedSlice(part, capture))
                for capture in map(self._capture, reading.captures)
                for part in capture.plan(window)
            ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one of Spanner's partitions."""
        if not isinstance(partition, SlicePartition):
            return
        part, capture = partition.planned.part, partition.planned.capture
        with explaining(self._reading):
            for rows in capture.read(part):
                yield self._reading.shaped(rows)

    def _capture(self, poll: PollCapture) -> SnapshotCapture:
        bare = replace(poll, condition=None)
        return SnapshotCapture(bare, poll.condition, self._reading.options.data_boost)


class BetweenReader(DataSourceReader):
    """The rows that changed between two timestamps, as they were at the second."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def partitions(self) -> Sequence[InputPartition]:
        """Slices of about the same size, at most ``shardGroups`` a table. Raises ClearedError when
        rows of the window may have left the index before its end."""
        with explaining(self._reading):
            window = between(self._reading)
            reading = in_schema_of(self._reading, window.end)
            check_cleared(reading, window)
            slices = planning(reading).slices(dict.fromkeys(reading.tables, window))
        return [SlicePartition(each) for each in planned(reading, slices)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a slice."""
        if not isinstance(partition, SlicePartition):
            return
        part, capture = partition.planned.part, partition.planned.capture
        if not isinstance(capture, PollCapture) or not isinstance(part, ShardSlice):
            yield from read_slice(self._reading, partition.planned)
            return
        with explaining(self._reading):
            for rows in capture.read_exactly(part):
                yield self._reading.shaped(rows)


class Filtering(DataSourceReader):
    """A reader that leaves filters to Spanner, by choice.

    Spark 4.3 keeps the reader of a ``load()`` for all queries that are made of it: a query without
    filters of its own gets those of the one before.
    """

    _reading: Reading

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 (Spark's name)
        """Keeps what Spanner can check; what is left to Spark."""
        self._reading, left = pushed(self._reading, filters)
        return left


class FilteringSnapshotReader(Filtering, SnapshotReader):
    """As ``SnapshotReader``, of the rows that pass."""


class FilteringBetweenReader(Filtering, BetweenReader):
    """As ``BetweenReader``, of the rows that pass."""


def batch_reader(reading: Reading) -> DataSourceReader:
    """Changes when a start or an end is given, else a snapshot."""
    changes = reading.options.changes_wanted
    if reading.options.push_filters:
        return FilteringBetweenReader(reading) if changes else FilteringSnapshotReader(reading)
    return BetweenReader(reading) if changes else SnapshotReader(reading)


def in_schema_of(reading: Reading, end: int, whole: bool = False) -> Reading:
    """The query in the schema that is valid at a timestamp. A column that it shows and that was not
    there then is NULL. ``whole``: no index is needed. Raises VersionExpiredError."""
    fresh = reading.in_schema(read_epoch(reading.queries.stream, end).schema, whole)
    conditions = {capture.table.name: capture.condition for capture in reading.captures}
    captures = tuple(replace(c, condition=conditions.get(c.table.name)) for c in fresh.captures)
    return replace(fresh, captures=captures)


def now(reading: Reading) -> int:
    """A timestamp at which a strong read is served now."""
    return reading.queries.stream.fetch_read_timestamp()


def past(reading: Reading, option: str) -> int:
    """The timestamp of an option; ``latest`` is now. Raises ConfigurationError for the future."""
    text: str = getattr(reading.options, to_snake(option))
    latest, wanted = now(reading), resolve_start(text)
    if wanted is not None and wanted > latest:
        raise ConfigurationError(f"'{option}' {text} is not over yet; leave it out")
    return latest if wanted is None else wanted


def between(reading: Reading) -> Window:
    """The window that the options name. Raises ConfigurationError when it is none."""
    options: SourceOptions = reading.options
    begin = resolve_start(options.starting_timestamp)
    if begin is None:
        raise ConfigurationError(
            "a batch read of changes needs 'startingTimestamp': a timestamp, or earliest for"
            " everything that is still in the index"
        )
    end = past(reading, "endingTimestamp")
    if end < begin:
        raise ConfigurationError(
            f"'endingTimestamp' {options.ending_timestamp} is before 'startingTimestamp'"
            f" {options.starting_timestamp}"
        )
    return Window(begin, end)


def check_cleared(reading: Reading, window: Window) -> None:
    """Raises ClearedError when rows of the window may have left the index before its end, at which
    it is read; or warns of it, by choice. A start at the beginning asks for what is left."""
    if window.start == BEGINNING or reading.stream is not None:
        return
    for table, cleared in sorted(cleared_at(reading, window.end).items()):
        if cleared <= window.start:
            continue
        said = (
            f"changes of {table} from {format_timestamp(window.start)} on are asked for, but those"
            f" up to {format_timestamp(cleared)} may have been cleared from the index before"
            f" {format_timestamp(window.end)}"
        )
        if reading.options.on_cleared_rows is ClearedRows.FAIL:
            raise ClearedError(
                f"{said}; start at {format_timestamp(cleared)} or later, read the whole table with"
                " 'snapshotTimestamp', set 'onClearedRows' to 'ignore' to read what is left, or"
                " keep a consumer registered, behind which nothing is cleared"
            )
        LOG.warning("%s; reading what is left", said)


def cleared_at(reading: Reading, micros: int) -> dict[str, int]:
    """Cleared-to of the tables as it was at a timestamp. A table of the product's own that was not
    there then means that nothing was cleared. Raises VersionExpiredError."""
    options = reading.options
    sets = {c.table.change_sets.table for c in reading.captures if c.table.change_sets is not None}
    names = [*reading.tables, *sorted(sets)]
    try:
        with connect(options.address).snapshot(read_timestamp=to_datetime(micros)) as snapshot:
            return read_cleared(snapshot, options.positions_table, names)
    except FailedPrecondition as error:
        raise convert_refusal(error, micros) from error
    except (InvalidArgument, NotFound) as error:
        if cleared_table(options.positions_table).casefold() in error.message.casefold():
            return {}
        raise


def pushed(reading: Reading, filters: list[Filter]) -> tuple[Reading, list[Filter]]:
    """A reading of fewer rows, and the filters that are left to Spark."""
    if reading.options.uniform or reading.stream is not None:
        return reading, filters
    capture = reading.captures[0]
    pusher = Pusher(filterable(capture))
    left = pusher.push(filters)
    condition = combine_conditions(pusher.conditions)
    return replace(reading, captures=(replace(capture, condition=condition),)), left


def filterable(capture: PollCapture) -> dict[str, tuple[str, TypeCode]]:
    """The columns that are shown, as Spanner knows them."""
    table = capture.table
    found = {name: (name, type_.code) for name, type_ in table.columns}
    if capture.nanoseconds is Nanoseconds.STRING:
        found = {n: pair for n, pair in found.items() if pair[1] is not TypeCode.TIMESTAMP}
    found[COMMIT_TIMESTAMP_COLUMN] = (table.timestamp_column, TypeCode.TIMESTAMP)
    if table.shard_column is not None:
        code = table.column_type(table.shard_column).code
        found[SHARD_ID_COLUMN] = (table.shard_column, code)
    return found
