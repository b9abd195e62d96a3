"""What an executor does: reads a slice and shapes its rows, also after a column was dropped."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from google.api_core.exceptions import GoogleAPICallError

from watcher.captures import Capture
from watcher.captures.change_stream import StreamSlice
from watcher.captures.key_ranges import KeyRangeCapture, KeyRangeSlice
from watcher.captures.poll import PollCapture
from watcher.model.errors import TableNotFoundError
from watcher.model.log_events.spark import COLUMNS_READ_AS_NULL
from watcher.model.window import ShardSlice, Slice, TableSlice
from watcher.runners.spark.refusals import translate_errors
from watcher.runners.spark.scan import Scan
from watcher.settings.spark import SchemaChange
from watcher.spanner.database import connect
from watcher.spanner.failures import FailureKind, classify_error
from watcher.tables.discovery import read_schema

LOG = logging.getLogger("watcher.spark")
TASK_SLICES_MAX = 10
"""A task asks for one slice after another, and waits for Spanner each time."""


@dataclass(frozen=True)
class PlannedSlice:
    """A slice, and the capture that reads it: by the schema that is valid at the window's end.
    Picklable: it goes to an executor. ``rows`` are those of the slice, as the query shows them,
    where the driver has read them."""

    part: Slice
    capture: Capture[Any]
    rows: tuple[pa.RecordBatch, ...] | None = None


def attach_captures(scan: Scan, parts: Iterable[Slice]) -> list[PlannedSlice]:
    """Slices with the captures of a query in one schema."""
    return [PlannedSlice(part, choose_capture(scan, part)) for part in parts]


def gather_slices(
    slices: Iterable[PlannedSlice], rows_per_task: int
) -> list[tuple[PlannedSlice, ...]]:
    """What each task reads: one slice, or as many small ones of several tables as have about so
    many rows together. A task costs Spark more than a query that finds few rows."""
    alone: list[tuple[PlannedSlice, ...]] = []
    small: list[PlannedSlice] = []
    rows = 0
    for planned in slices:
        count = planned.part.rows if isinstance(planned.part, ShardSlice) else None
        if count is None or count >= rows_per_task:
            alone.append((planned,))
            continue
        if rows + count > rows_per_task or len(small) == TASK_SLICES_MAX:
            alone.append(tuple(small))
            small, rows = [], 0
        small.append(planned)
        rows += count
    return [*alone, tuple(small)] if small else alone


def choose_capture(scan: Scan, part: Slice) -> Capture[Any]:
    """The capture that reads a slice."""
    if isinstance(part, StreamSlice):
        assert scan.stream is not None
        return scan.stream
    assert isinstance(part, TableSlice)
    capture = scan.capture(part.table)
    return KeyRangeCapture(capture) if isinstance(part, KeyRangeSlice) else capture


def read_slice(scan: Scan, slice_: PlannedSlice) -> Iterator[pa.RecordBatch]:
    """The rows of a slice, as the query shows them.

    Raises SchemaChangedError for a column that was dropped, unless the options want NULLs instead.
    """
    if slice_.rows is not None:
        yield from slice_.rows
        return
    part, capture = slice_.part, slice_.capture
    with translate_errors(scan):
        started = False
        try:
            for rows in capture.read(part):
                started = True
                yield scan.shape(rows)
        except GoogleAPICallError as error:
            nulls = scan.options.on_schema_change is SchemaChange.NULLS
            fewer = not started and nulls and classify_error(error) is FailureKind.SCHEMA
            if not fewer or not isinstance(capture, PollCapture | KeyRangeCapture):
                raise
            name = capture.table.name
            COLUMNS_READ_AS_NULL.log(LOG, table=name, error=error.message)
            for rows in drop_missing_columns(capture).read(part):
                yield scan.shape(rows)


def drop_missing_columns(capture: PollCapture | KeyRangeCapture) -> Capture[Any]:
    """A capture of the columns that are still there. Raises TableNotFoundError."""
    poll = capture.poll if isinstance(capture, KeyRangeCapture) else capture
    table = read_schema(connect(poll.queries.address)).table(poll.table.name)
    if table is None:
        raise TableNotFoundError(f"table {poll.table.name} was dropped while it was read")
    there = {column.name for column in table.columns}
    narrowed = replace(poll, table=poll.table.keep_columns(there))
    return replace(capture, poll=narrowed) if isinstance(capture, KeyRangeCapture) else narrowed
