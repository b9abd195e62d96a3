"""The streaming reader: plans windows and pages on the driver, reads slices on the executors."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from google.api_core.exceptions import InvalidArgument, NotFound
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from ddl.schema import Schema
from watcher.captures import Look
from watcher.captures.poll_tables import shorten_window
from watcher.errors import (
    CheckpointError,
    NotWatchableError,
    TableNotFoundError,
    VersionExpiredError,
)
from watcher.runners.spark.batch import SlicePartition
from watcher.runners.spark.consumer import QueryConsumer
from watcher.runners.spark.failing import answered
from watcher.runners.spark.offsets import Offset, Offsets, Place
from watcher.runners.spark.paging import BackfillPlace, Pages
from watcher.runners.spark.planning import Planning, planning
from watcher.runners.spark.reading import Reading, selection_of
from watcher.runners.spark.slices import PlannedSlice, planned, read_slice
from watcher.settings.fields import EARLIEST, resolve_start
from watcher.settings.spark import SourceOptions
from watcher.spanner.failures import FailureKind, classify_error
from watcher.spanner.outages import Outages
from watcher.spanner.timestamps import format_timestamp
from watcher.tables.epochs import Epochs
from watcher.window import BEGINNING, Window


class ChangesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One query's reader. What only the driver needs is left out when it is pickled."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._driver: Driver | None = None

    def __getstate__(self) -> dict[str, object]:
        return {"_reading": self._reading, "_driver": None}

    @property
    def _running(self) -> Driver:
        if self._driver is None:
            self._driver = Driver(self._reading)
        return self._driver

    def initialOffset(self) -> Offset:  # noqa: N802 (Spark's name)
        """The same at every call: what the options say, not what the time is."""
        return self._running.offsets.initial(self._reading.options.starting_timestamp)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 (Spark's name)
        """``maxRowsPerBatch``."""
        limit = self._reading.options.max_rows_per_batch
        return ReadMaxRows(limit) if limit else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        """Fixes where ``Trigger.AvailableNow`` ends."""
        answered(self._reading, self._running.fix_end)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 (Spark's name)
        """The end of the next batch; the start itself when there is nothing to deliver."""
        return answered(self._reading, lambda: self._running.next_end(start, limit))

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802 (Spark's name)
        """The newest timestamp that was seen: what Spark's progress shows. No call is made."""
        return self._running.newest()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The slices of a batch."""
        parts = answered(self._reading, lambda: self._running.slices(start, end))
        return [SlicePartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a slice, as they were at the batch's end."""
        assert isinstance(partition, SlicePartition)
        return read_slice(self._reading, partition.planned)

    def commit(self, end: Offset) -> None:
        """Everything up to ``end`` is in the sink: clearing may follow."""
        answered(self._reading, lambda: self._running.commit(end))

    def stop(self) -> None:
        """Gives the consumer's name back; clients are shared by the process and end with it."""
        if self._driver is not None:
            self._driver.stop()


@dataclass(frozen=True)
class Planned:
    """A query in one schema, and how its windows become batches there. ``there`` names all tables
    of the schema."""

    reading: Reading
    planning: Planning
    there: frozenset[str] = frozenset()

    @classmethod
    def of(cls, reading: Reading) -> Planned:
        """That of a reading."""
        return cls(reading, planning(reading))

    @classmethod
    def within(cls, reading: Reading, schema: Schema) -> Planned:
        """That of a reading in another schema."""
        there = frozenset(table.name for table in schema.tables)
        return replace(cls.of(reading.in_schema(schema)), there=there)

    def check_tables(self, place: Place) -> None:
        """Raises NotWatchableError where a table that was read up to ``place`` is still there, but
        cannot be polled. Left out, it would count as new later, and come again from its beginning.
        """
        if self.reading.stream is not None:
            return
        missing = frozenset(place.tables or ()) - frozenset(self.reading.tables)
        for name in sorted(missing & self.there):
            raise NotWatchableError(
                f"table {name} cannot be polled any more: its index is gone; make it again with"
                " 'spanner-watcher ddl apply', or exclude the table and use a new checkpoint"
            )


class Driver:
    """The state of a query that runs: where it was asked to end, and what it has seen.

    A window is read with the tables, columns, index and shards of the schema at its end, and its
    offset names the tables: what a batch holds follows from its offsets alone.
    """

    def __init__(self, reading: Reading) -> None:
        options = reading.options
        self._reading = reading
        self._epochs = Epochs(
            reading.queries.stream, lambda schema: Planned.within(reading, schema)
        )
        self._latest = Planned.of(reading)
        self._pages: tuple[int, Pages] | None = None
        self.offsets = Offsets(options.address.path, options.source)
        self._until: int | None = None
        self._seen: int | None = None
        self._changed: tuple[int, frozenset[str]] | None = None
        self._advanced_at = 0.0
        self._consumer = consumer_of(options, reading.queries.outages)

    def fix_end(self) -> None:
        """The query ends at a timestamp that is served now."""
        self._until = self._now()

    def newest(self) -> Offset | None:
        """The newest timestamp that was seen."""
        return self.offsets.at(self._seen) if self._seen is not None else None

    def next_end(self, start: Offset, limit: ReadLimit) -> Offset:
        """Where the next batch ends."""
        place = self.offsets.place(start)
        if place.position is not None:
            self._register(self._starts(place.tables or self._latest.reading.tables, place))
        if self._consumer is not None and self._consumer.paused:
            return start
        if place.backfill is not None:
            assert place.position is not None
            return self._next_page(place.position, place.backfill, place.tables, limit, None)
        if place.position is None and start["start"] == EARLIEST:
            at = self._until if self._until is not None else self._now()
            at = self._begin_at(at, now=True)
            tables = self._named(self._at(at).reading)
            first = self._pages_of(at, tables).first
            return self._next_page(at, first, tables, limit, EARLIEST)
        return self._next_window(start, place, limit)

    def _next_window(self, start: Offset, place: Place, limit: ReadLimit) -> Offset:
        """An idle table's position advances every ``idleSeconds`` too, so that lag is honest and
        clearing is not held up."""
        first = place.position is None
        begin = self._begin(start) if place.position is None else place.position
        place = replace(place, position=begin)
        look = self._look(place)
        end = look.end if self._until is None else max(begin, min(look.end, self._until))
        recent = time.monotonic() - self._advanced_at < self._reading.options.idle_seconds
        moves = bool(look.changed) and end > begin
        if not moves and not first and (recent or self._until is not None):
            return start
        end, current, changed = self._followed(place, look, end, limit)
        starts = self._starts(current.reading.tables, place)
        self._register(starts)
        self._advanced_at = time.monotonic()
        self._changed = (end, changed) if changed is not None else None
        began = format_timestamp(begin) if first else None
        return self.offsets.at(end, None, began, self._named(current.reading))

    def _followed(
        self, place: Place, look: Look, end: int, limit: ReadLimit
    ) -> tuple[int, Planned, frozenset[str] | None]:
        """The window's end within the limits, the query in the schema that is valid there, and
        which tables changed; None where that was not looked at there."""
        current = self._at(end)
        current.check_tables(place)
        changed: frozenset[str] | None = look.changed if end == look.end else None
        if current is not self._latest:
            self._latest = current
            starts = self._starts(current.reading.tables, place)
            changed = current.planning.look(starts, end).changed
        windows = self._windows(place, end, current.reading, changed)
        if not any(not window.empty for window in windows.values()):
            return end, current, changed
        cut = self._limited(current, windows, end, limit)
        if cut == end:
            return end, current, changed
        try:
            shorter = self._at(cut)
            shorter.check_tables(place)
        except (NotWatchableError, TableNotFoundError):
            return end, current, changed
        # What has changed again since, or is deleted, is told at the cut only: all are asked.
        return cut, shorter, None

    def _limited(
        self, current: Planned, windows: Mapping[str, Window], end: int, limit: ReadLimit
    ) -> int:
        """The window's end, or an earlier one for the limits of rows and of time."""
        span = round(self._reading.options.max_span_per_batch * 1_000_000)
        if span:
            end = min(end, current.planning.first_change(windows) + span)
        if isinstance(limit, ReadMaxRows):
            shorter = {name: shorten_window(window, end) for name, window in windows.items()}
            end = min(end, current.planning.cut(shorter, limit.max_rows))
        return end

    def _next_page(
        self,
        at: int,
        place: BackfillPlace,
        tables: Sequence[str] | None,
        limit: ReadLimit,
        began: str | None,
    ) -> Offset:
        rows = self._reading.options.backfill_rows_per_batch
        if isinstance(limit, ReadMaxRows):
            rows = min(rows, limit.max_rows)
        self._advanced_at = time.monotonic()
        pages = self._pages_of(at, tables)
        end = self.offsets.at(at, pages.plan(at, place, rows), began, tables)
        pages.remember(json.dumps(end, sort_keys=True))
        return end

    def slices(self, start: Offset, end: Offset) -> list[PlannedSlice]:
        """What the tasks of a batch read."""
        before, after = self.offsets.place(start), self.offsets.place(end)
        if before == after:
            return []  # a query that was paused before its first batch
        if after.position is None:
            raise CheckpointError(f"the offset {end} does not say where its batch ends")
        reading = self._at(after.position).reading.only(after.tables)
        paged = before.backfill is not None or (after.first_end and after.began_at is None)
        if paged:
            self._register(dict.fromkeys(reading.tables, after.position))
            pages = self._pages_of(after.position, after.tables)
            known = pages.recall(json.dumps(end, sort_keys=True))
            first = before.backfill or pages.first
            return planned(reading, known or pages.between(after.position, first, after.backfill))
        begin = after.began_at if after.first_end else before.position
        if begin is None:
            raise CheckpointError(f"the offset {end} does not say where its window begins")
        place = replace(before, position=begin)
        self._register(self._starts(reading.tables, place))
        seen = self._changed
        changed = seen[1] if seen is not None and seen[0] == after.position else None
        windows = self._windows(place, after.position, reading, changed)
        return planned(reading, planning(reading).slices(windows)) if windows else []

    def commit(self, end: Offset) -> None:
        """Everything up to ``end`` is in the sink."""
        place = self.offsets.place(end)
        if self._consumer is not None and place.position is not None:
            tables = place.tables or self._reading.tables
            self._register(dict.fromkeys(tables, place.position))
            self._consumer.advance(place.position, tables)

    def stop(self) -> None:
        """Gives the consumer's name back."""
        if self._consumer is not None:
            self._consumer.stop()

    # Tables and schemas.

    def _at(self, timestamp: int) -> Planned:
        """The query in the schema at a timestamp; past the version retention, where rows are read
        as of now, in that of now. Raises SchemaChangedError where the columns do not fit any more;
        one that was not there yet is NULL."""
        try:
            found = self._epochs.at(timestamp)
        except VersionExpiredError:
            _, found = self._epochs.latest()
        if timestamp >= self._reading.known_at:
            found.reading.check_columns(self._reading)
        return found

    def _named(self, reading: Reading) -> tuple[str, ...] | None:
        """The tables as an offset names them, where the options may mean several."""
        return reading.tables if self._reading.options.tables is not None else None

    def _starts(self, tables: Iterable[str], place: Place) -> dict[str, int]:
        """Where tables begin. One that is not in the start is new: all that lies in its index came
        after it was made watchable. Of a change stream it came after the start."""
        assert place.position is not None
        polled = self._reading.stream is None
        return {
            name: BEGINNING
            if polled and place.tables is not None and name not in place.tables
            else place.position
            for name in tables
        }

    def _windows(
        self, place: Place, end: int, reading: Reading, changed: frozenset[str] | None
    ) -> dict[str, Window]:
        """The windows of the tables that may have changed."""
        starts = self._starts(reading.tables, place)
        return {
            name: Window(start, max(start, end))
            for name, start in starts.items()
            if changed is None or name in changed
        }

    def _pages_of(self, at: int, tables: Sequence[str] | None) -> Pages:
        """The pages of the tables as they were at a timestamp."""
        if self._pages is None or self._pages[0] != at:
            self._pages = (at, Pages(self._at(at).reading.only(tables)))
        return self._pages[1]

    # Timestamps and positions.

    def _register(self, starts: Mapping[str, int]) -> None:
        if self._consumer is not None:
            self._consumer.register(starts, with_sets=self._change_sets())

    def _change_sets(self) -> Mapping[str, str]:
        tables = [capture.table for capture in self._latest.reading.captures]
        return {each.name: s.table for each in tables if (s := each.change_sets) is not None}

    def _begin_at(self, at: int, now: bool) -> int:
        """Where the query begins: registered there, so that clearing does not pass it."""
        if self._consumer is None:
            return at
        starts = dict.fromkeys(self._latest.reading.tables, at)
        registered = self._consumer.register(starts, now, self._change_sets())
        return max(at, *registered.values())

    def _begin(self, start: Offset) -> int:
        explicit = resolve_start(start["start"])
        if explicit is None:
            return self._begin_at(self._now(), now=True)
        return self._begin_at(explicit, now=False)

    def _now(self) -> int:
        return self._reading.queries.stream.fetch_read_timestamp()

    def _look(self, place: Place) -> Look:
        """What changed by now; once more where the tables are not what they were."""
        try:
            look = self._look_in_latest(place)
        except (InvalidArgument, NotFound) as error:
            if classify_error(error) not in (FailureKind.SCHEMA, FailureKind.INDEX):
                raise
            _, self._latest = self._epochs.latest()
            self._latest.check_tables(place)
            look = self._look_in_latest(place)
        self._seen = look.end
        return look

    def _look_in_latest(self, place: Place) -> Look:
        tables = self._latest.reading.tables
        return self._latest.planning.look(self._starts(tables, place))


def consumer_of(options: SourceOptions, outages: Outages) -> QueryConsumer | None:
    """The consumer that a query is; its selection is for clearing, of tables that are polled."""
    if options.consumer is None:
        return None
    selection = None if options.streamed else selection_of(options).to_text()
    return QueryConsumer(options, options.consumer, selection, outages)
