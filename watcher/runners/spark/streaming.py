"""The streaming reader: plans windows and pages on the driver, reads slices on the executors."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from watcher.config import EARLIEST, resolve_start
from watcher.errors import CheckpointError
from watcher.runners.spark.batch import SlicePartition
from watcher.runners.spark.consumer import QueryConsumer
from watcher.runners.spark.failing import answered
from watcher.runners.spark.offsets import Offset, Offsets, Place
from watcher.runners.spark.paging import Pages
from watcher.runners.spark.planning import planning
from watcher.runners.spark.reading import Reading
from watcher.runners.spark.slices import read_slice
from watcher.stream import timestamp_text
from watcher.window import Slice, Window


class ChangesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One query's reader. What only the driver needs is left out when it is pickled."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._driver: Driver | None = None

    def __getstate__(self) -> dict[str, object]:
        return {"_reading": self._reading, "_driver": None}

    @property
    def _planner(self) -> Driver:
        if self._driver is None:
            self._driver = Driver(self._reading)
        return self._driver

    def initialOffset(self) -> Offset:  # noqa: N802 (Spark's name)
        """The same at every call: what the options say, not what the time is."""
        return self._planner.offsets.initial(self._reading.options.starting_timestamp)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 (Spark's name)
        """``maxRowsPerBatch``."""
        limit = self._reading.options.max_rows_per_batch
        return ReadMaxRows(limit) if limit else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        """Fixes where ``Trigger.AvailableNow`` ends."""
        answered(self._reading, self._planner.fix_end)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 (Spark's name)
        """The end of the next batch; the start itself when there is nothing to deliver."""
        return answered(self._reading, lambda: self._planner.next_end(start, limit))

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802 (Spark's name)
        """The newest timestamp that was seen: what Spark's progress shows. No call is made."""
        return self._planner.newest()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The slices of a batch."""
        parts = answered(self._reading, lambda: self._planner.slices(start, end))
        return [SlicePartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a slice, as they were at the batch's end."""
        assert isinstance(partition, SlicePartition)
        return read_slice(self._reading, partition.part)

    def commit(self, end: Offset) -> None:
        """Everything up to ``end`` is in the sink: clearing may follow."""
        answered(self._reading, lambda: self._planner.commit(end))

    def stop(self) -> None:
        """Gives the consumer's name back; clients are shared by the process and end with it."""
        if self._driver is not None:
            self._driver.stop()


class Driver:
    """The state of a query that runs: where it was asked to end, and what it has seen."""

    def __init__(self, reading: Reading) -> None:
        options = reading.options
        self._reading = reading
        self._planning = planning(reading)
        self._pages = Pages(reading)
        self.offsets = Offsets(options.address.path, options.source)
        self._until: int | None = None
        self._seen: int | None = None
        self._changed: tuple[int, frozenset[str]] | None = None
        self._advanced_at = 0.0
        self._consumer = (
            QueryConsumer(options, options.consumer, reading.tables, reading.queries.outages)
            if options.consumer
            else None
        )

    def fix_end(self) -> None:
        """The query ends at a timestamp that is served now."""
        self._until = self._look(0)[0]

    def newest(self) -> Offset | None:
        """The newest timestamp that was seen."""
        return self.offsets.at(self._seen) if self._seen is not None else None

    def next_end(self, start: Offset, limit: ReadLimit) -> Offset:
        """Where the next batch ends."""
        place = self.offsets.place(start)
        if self._consumer is not None and place.position is not None:
            self._consumer.start(place.position)
            if self._consumer.paused:
                return start
        if place.backfill is not None:
            assert place.position is not None
            return self._next_page(place.position, place.backfill, limit, None)
        if place.position is None and start["start"] == EARLIEST:
            at = self._until if self._until is not None else self._look(0)[0]
            self._register(at)
            return self._next_page(at, self._pages.first, limit, EARLIEST)
        return self._next_window(start, place, limit)

    def _next_window(self, start: Offset, place: Place, limit: ReadLimit) -> Offset:
        """An idle table's position advances every ``idleSeconds`` too, so that lag is honest and
        clearing is not held up."""
        first = place.position is None
        begin = self._begin(start) if place.position is None else place.position
        end, changed = self._look(begin)
        if self._until is not None:
            end = max(begin, min(end, self._until))
        found = bool(changed) and end > begin
        recent = time.monotonic() - self._advanced_at < self._reading.options.idle_seconds
        if not found and not first and (recent or self._until is not None):
            return start
        if found:
            end = self._limited(Window(begin, end), changed, limit)
        self._register(begin)
        self._advanced_at = time.monotonic()
        self._changed = (end, changed)
        return self.offsets.at(end, began=timestamp_text(begin) if first else None)

    def _next_page(
        self,
        at: int,
        place: tuple[str, Any],
        limit: ReadLimit,
        began: str | None,
    ) -> Offset:
        rows = self._reading.options.backfill_rows_per_batch
        if isinstance(limit, ReadMaxRows):
            rows = min(rows, limit.max_rows)
        self._advanced_at = time.monotonic()
        after = self._pages.plan(at, place, rows)
        end = self.offsets.at(at, after, began)
        self._pages.remember(json.dumps(end, sort_keys=True))
        return end

    def _limited(self, window: Window, changed: frozenset[str], limit: ReadLimit) -> int:
        """The window's end, or an earlier one for the limits of rows and of time."""
        end = window.end
        span = round(self._reading.options.max_span_per_batch * 1_000_000)
        if span:
            end = min(end, self._planning.first_change(window, changed) + span)
        if isinstance(limit, ReadMaxRows):
            end = min(end, self._planning.cut(Window(window.start, end), changed, limit.max_rows))
        return end

    def slices(self, start: Offset, end: Offset) -> list[Slice]:
        """What the tasks of a batch read."""
        before, after = self.offsets.place(start), self.offsets.place(end)
        if after.position is None:
            raise CheckpointError(f"the offset {end} does not say where its batch ends")
        paged = before.backfill is not None or (after.first_end and after.began_at is None)
        if paged:
            self._register(after.position)
            known = self._pages.recall(json.dumps(end, sort_keys=True))
            first = before.backfill or self._pages.first
            return known or self._pages.between(after.position, first, after.backfill)
        begin = after.began_at if after.first_end else before.position
        if begin is None:
            raise CheckpointError(f"the offset {end} does not say where its window begins")
        self._register(begin)
        seen = self._changed
        changed = seen[1] if seen is not None and seen[0] == after.position else None
        return self._planning.slices(Window(begin, after.position), changed)

    def commit(self, end: Offset) -> None:
        """Everything up to ``end`` is in the sink."""
        position = self.offsets.place(end).position
        if self._consumer is not None and position is not None:
            self._consumer.start(position)
            self._consumer.advance(position)

    def stop(self) -> None:
        """Gives the consumer's name back."""
        if self._consumer is not None:
            self._consumer.stop()

    def _register(self, begin: int) -> None:
        if self._consumer is not None:
            self._consumer.start(begin)

    def _begin(self, start: Offset) -> int:
        wanted = resolve_start(start["start"])
        return wanted if wanted is not None else self._look(0)[0]

    def _look(self, begin: int) -> tuple[int, frozenset[str]]:
        end, changed = self._planning.look(begin)
        self._seen = end
        return end, changed
