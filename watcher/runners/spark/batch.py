"""Batch reads: whole tables at a timestamp, or the changes between two."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from google.api_core.exceptions import FailedPrecondition, InvalidArgument, NotFound
from pydantic.alias_generators import to_snake
from pyspark.sql.datasource import DataSourceReader, InputPartition

from spanner_schema.model.column_types import Type, TypeCode
from watcher.captures import COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN, TableRows
from watcher.captures.poll import PollCapture
from watcher.captures.snapshot import SnapshotCapture
from watcher.consumers.positions import cleared_table
from watcher.consumers.positions.cleared import read_cleared
from watcher.model.errors import ClearedError, ConfigurationError
from watcher.model.log_events.spark import CLEARED_ROWS_MISSING
from watcher.model.window import BEGINNING, ShardSlice, TableSlice, Window
from watcher.process.version import check_version, read_version
from watcher.runners.spark.few_rows import Room, read_few
from watcher.runners.spark.refusals import translate_errors
from watcher.runners.spark.resolution import resolve_scan_again
from watcher.runners.spark.scan import Scan
from watcher.runners.spark.slices import (
    PlannedSlice,
    attach_captures,
    gather_slices,
    read_slice,
)
from watcher.runners.spark.spark_versions import PUSHES_FILTERS, check_filters
from watcher.runners.spark.window_sources import make_window_source
from watcher.runners.spark.worker_errors import lead_with_sentence
from watcher.settings.fields import resolve_start
from watcher.settings.spark import ClearedRows, SourceOptions
from watcher.spanner.database import connect
from watcher.spanner.dialects import find_dialect
from watcher.spanner.results.supported_types import Nanoseconds
from watcher.spanner.resumption import convert_refusal
from watcher.spanner.timestamps import format_timestamp, to_datetime
from watcher.tables.predicates import Every, Predicate, RowFilter
from watcher.tables.schema_reader import read_epoch

if PUSHES_FILTERS:
    from pyspark.sql.datasource import Filter

    from watcher.runners.spark.filters import FilterTranslator

LOG = logging.getLogger("watcher.spark")
Shape = Callable[[TableRows], pa.RecordBatch]
"""What a query shows of rows."""


@dataclass
class SlicePartition(InputPartition):
    """An input partition: slices of a window. A worker with another version of the product than
    the driver refuses it."""

    planned: tuple[PlannedSlice, ...]
    version: str = field(default_factory=read_version)

    @lead_with_sentence
    def __setstate__(self, state: dict[str, object]) -> None:
        """Raises VersionMismatchError."""
        check_version(str(state["version"]))
        self.__dict__.update(state)


class SnapshotReader(DataSourceReader):
    """Whole tables at a timestamp, in the parts that Spanner makes of them."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan

    @lead_with_sentence
    def partitions(self) -> Sequence[InputPartition]:
        """Spanner's partitions, all of one read timestamp."""
        with translate_errors(self._scan):
            window = Window(BEGINNING, resolve_timestamp(self._scan, "snapshotTimestamp"))
            scan = resolve_scan_at(self._scan, window.end, whole=True)
            return plan_tables(scan, window, self._scan.shape)

    @lead_with_sentence
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one of Spanner's partitions."""
        if not isinstance(partition, SlicePartition):
            return
        for planned in partition.planned:
            yield from read_slice(self._scan, planned)


def plan_tables(scan: Scan, window: Window, shape: Shape) -> list[InputPartition]:
    """Spanner's partitions of each table, in at most ``maxPartitions`` tasks; small tables without
    filters are read here, and are one task."""
    room, few, tasks = Room(), [], []
    most = scan.options.max_partitions
    for poll in scan.captures:
        capture = SnapshotCapture(poll, scan.options.data_boost)
        if (rows := read_small(capture, window, shape, room)) is not None:
            few.append(PlannedSlice(TableSlice(window, poll.table.name), capture, rows))
            continue
        planned = [PlannedSlice(part, capture) for part in capture.plan(window)]
        number = min(most or len(planned), len(planned))
        tasks += [tuple(planned[first::number]) for first in range(number)]
    return [SlicePartition(each) for each in (*([tuple(few)] if few else ()), *tasks)]


def read_small(
    capture: SnapshotCapture, window: Window, shape: Shape, room: Room
) -> tuple[pa.RecordBatch, ...] | None:
    """The rows of a table, if there is room for them. Not asked where Spanner would read more of
    the table than it gives, or is to read it on other machines."""
    if capture.data_boost or capture.poll.table.row_filter is not None or not room.rows:
        return None
    return room.take(map(shape, capture.read_first(window, room.rows + 1)))


class WindowReader(DataSourceReader):
    """The rows that changed between two timestamps, as they were at the second."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan

    @lead_with_sentence
    def partitions(self) -> Sequence[InputPartition]:
        """Slices of about the same size, at most ``shardGroups`` a table. Raises ClearedError when
        rows of the window may have left the index before its end."""
        with translate_errors(self._scan):
            window = resolve_window(self._scan)
            scan = resolve_scan_at(self._scan, window.end)
            check_cleared(scan, window)
            slices = make_window_source(scan).plan_slices(dict.fromkeys(scan.tables, window))
        planned = read_few(attach_captures(scan, slices), self._read_slice)
        return [SlicePartition(e) for e in gather_slices(planned, scan.options.rows_per_slice)]

    @lead_with_sentence
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of some slices."""
        if not isinstance(partition, SlicePartition):
            return
        for planned in partition.planned:
            yield from self._read_slice(planned)

    def _read_slice(self, planned: PlannedSlice) -> Iterator[pa.RecordBatch]:
        part, capture = planned.part, planned.capture
        if planned.rows is not None or not (
            isinstance(capture, PollCapture) and isinstance(part, ShardSlice)
        ):
            yield from read_slice(self._scan, planned)
            return
        with translate_errors(self._scan):
            for rows in capture.read_exactly(part):
                yield self._scan.shape(rows)


class FilterPushdown(DataSourceReader):
    """A reader that leaves filters to Spanner, by choice.

    Spark 4.3 keeps the reader of a ``load()`` for all queries that are derived from it: a query
    without filters of its own gets those of the one before.
    """

    _scan: Scan

    @lead_with_sentence
    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 (Spark's name)
        """Keeps what Spanner can check; what is left to Spark."""
        self._scan, left = push_filters(self._scan, filters)
        return left


class PushdownSnapshotReader(FilterPushdown, SnapshotReader):
    """As ``SnapshotReader``, of the rows that pass."""


class PushdownWindowReader(FilterPushdown, WindowReader):
    """As ``WindowReader``, of the rows that pass."""


def make_batch_reader(scan: Scan) -> DataSourceReader:
    """Changes when a start or an end is given, else a snapshot."""
    changes = scan.options.reads_changes
    if scan.options.push_filters:
        check_filters()
        return PushdownWindowReader(scan) if changes else PushdownSnapshotReader(scan)
    return WindowReader(scan) if changes else SnapshotReader(scan)


def resolve_scan_at(scan: Scan, end: int, whole: bool = False) -> Scan:
    """The query in the schema that is valid at a timestamp. A column that it shows and that was not
    there then is NULL. ``whole``: no index is needed. Raises VersionExpiredError."""
    fresh = resolve_scan_again(scan, read_epoch(scan.queries.stream, end).schema, whole)
    if not scan.options.push_filters:
        return fresh
    row_filters = {capture.table.name: capture.table.row_filter for capture in scan.captures}
    kept = (keep_rows(each, row_filters.get(each.table.name)) for each in fresh.captures)
    return replace(fresh, captures=tuple(kept))


def resolve_timestamp(scan: Scan, option: str) -> int:
    """The timestamp of an option; ``latest`` is now. Raises ConfigurationError for the future."""
    text: str = getattr(scan.options, to_snake(option))
    now, timestamp = scan.queries.fetch_read_timestamp(), resolve_start(text)
    if timestamp is not None and timestamp > now:
        raise ConfigurationError(
            f"'{option}' {text} is in the future: use an earlier timestamp, or leave it out to read"
            " up to now"
        )
    return now if timestamp is None else timestamp


def resolve_window(scan: Scan) -> Window:
    """The window that the options name. Raises ConfigurationError for one that is not valid."""
    options: SourceOptions = scan.options
    begin = resolve_start(options.starting_timestamp)
    if begin is None:
        raise ConfigurationError(
            "a batch read of changes needs 'startingTimestamp': a timestamp, or earliest for"
            " everything that is still in the index"
        )
    end = resolve_timestamp(scan, "endingTimestamp")
    if end < begin:
        raise ConfigurationError(
            f"'endingTimestamp' {options.ending_timestamp} is before 'startingTimestamp'"
            f" {options.starting_timestamp}"
        )
    return Window(begin, end)


def check_cleared(scan: Scan, window: Window) -> None:
    """Raises ClearedError when rows of the window may have left the index before its end, at which
    it is read; or warns of it, by choice. A start at the beginning asks for what is left."""
    if window.start == BEGINNING or scan.stream is not None:
        return
    for table, cleared in sorted(read_cleared_at(scan, window.end).items()):
        if cleared > window.start:
            refuse_cleared(scan, window, table, cleared)


def refuse_cleared(scan: Scan, window: Window, table: str, cleared: int) -> None:
    """Raises ClearedError, or warns, by choice."""
    missing = (
        f"changes of {table} from {format_timestamp(window.start)} on are asked for, but those"
        f" up to {format_timestamp(cleared)} may have been cleared from the index before"
        f" {format_timestamp(window.end)}"
    )
    if scan.options.on_cleared_rows is ClearedRows.FAIL:
        raise ClearedError(
            f"{missing}: start at {format_timestamp(cleared)} or later, read the whole table with"
            " 'snapshotTimestamp', set 'onClearedRows' to 'ignore' to read what is left, or"
            " keep a consumer registered, so that nothing is cleared that it has not read"
        )
    CLEARED_ROWS_MISSING.log(LOG, detail=missing)


def read_cleared_at(scan: Scan, micros: int) -> dict[str, int]:
    """Cleared-to of the tables as it was at a timestamp. A table of the product's own that was not
    there then means that nothing was cleared. Raises VersionExpiredError."""
    options = scan.options
    sets = {c.table.change_sets.table for c in scan.captures if c.table.change_sets is not None}
    names = [*scan.tables, *sorted(sets)]
    try:
        database = connect(options.address)
        sql = find_dialect(database)
        with database.snapshot(read_timestamp=to_datetime(micros)) as snapshot:
            return read_cleared(snapshot, options.positions_table, names, sql)
    except FailedPrecondition as error:
        raise convert_refusal(error, micros) from error
    except (InvalidArgument, NotFound) as error:
        if cleared_table(options.positions_table).casefold() in error.message.casefold():
            return {}
        raise


def push_filters(scan: Scan, filters: list[Filter]) -> tuple[Scan, list[Filter]]:
    """A scan of fewer rows, and the filters that are left to Spark."""
    if scan.options.uniform or scan.stream is not None:
        return scan, filters
    capture = scan.captures[0]
    texts = {n.casefold() for spec in scan.options.specs.values() for n in spec.text_columns}
    names = {n: c for n, c in list_filterable(capture).items() if n.casefold() not in texts}
    translator = FilterTranslator(names)
    translated = [(each, translator.translate(each)) for each in filters]
    pushed = [predicate for _, predicate in translated if predicate is not None]
    left = [each for each, predicate in translated if predicate is None]
    if not pushed:
        return scan, left
    row_filter = add_predicates(capture.table.row_filter, pushed, translator.found)
    return replace(scan, captures=(keep_rows(capture, row_filter),)), left


def add_predicates(
    own: RowFilter | None, pushed: Sequence[Predicate], columns: Mapping[str, Type]
) -> RowFilter:
    """The rows that a table's own filter keeps and Spark's filters let pass."""
    if own is None:
        return RowFilter(Every(tuple(pushed)), tuple(columns.items()))
    both = {**columns, **dict(own.columns)}
    return RowFilter(Every((own.predicate, *pushed)), tuple(both.items()))


def keep_rows(capture: PollCapture, row_filter: RowFilter | None) -> PollCapture:
    """The capture of those rows."""
    return replace(capture, table=replace(capture.table, row_filter=row_filter))


def list_filterable(capture: PollCapture) -> dict[str, tuple[str, TypeCode]]:
    """The columns that are shown as Spanner knows them: a masked one is not."""
    table = capture.table
    masked = {mask.column for mask in table.masks}
    columns = {name: (name, type_.code) for name, type_ in table.columns if name not in masked}
    if capture.nanoseconds is Nanoseconds.STRING:
        columns = {n: pair for n, pair in columns.items() if pair[1] is not TypeCode.TIMESTAMP}
    columns[COMMIT_TIMESTAMP_COLUMN] = (table.timestamp_column, TypeCode.TIMESTAMP)
    if table.shard_column is not None:
        code = table.column_type(table.shard_column).code
        columns[SHARD_ID_COLUMN] = (table.shard_column, code)
    return columns
