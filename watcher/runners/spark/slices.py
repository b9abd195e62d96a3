"""What an executor does: reads a slice and shapes its rows, also after a column was dropped."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from google.api_core.exceptions import GoogleAPICallError

from watcher.captures import Rows
from watcher.captures.change_stream import ChangeStreamCapture, PartitionSlice
from watcher.captures.poll import PollCapture
from watcher.captures.ranges import RangeCapture, RangeSlice
from watcher.errors import TableNotFoundError
from watcher.runners.spark.refusals import translate_errors
from watcher.runners.spark.scan import Scan
from watcher.settings.spark import SchemaChange
from watcher.spanner.database import connect
from watcher.spanner.failures import Kind, kind_of
from watcher.tables.discovery import read_schema
from watcher.window import Slice

LOG = logging.getLogger("watcher.spark")


@dataclass(frozen=True)
class PlannedSlice:
    """A slice, and the capture that reads it: by the schema that is valid at the window's end.
    ``stream`` is that of a change stream. Picklable: it goes to an executor."""

    part: Slice
    capture: PollCapture | None = None
    stream: ChangeStreamCapture | None = None


def attach_captures(scan: Scan, parts: Iterable[Slice]) -> list[PlannedSlice]:
    """Slices with the captures of a query in one schema."""
    return [
        PlannedSlice(part, stream=scan.stream)
        if isinstance(part, PartitionSlice)
        else PlannedSlice(part, scan.capture(part.table))
        for part in parts
    ]


def read_slice(scan: Scan, slice_: PlannedSlice) -> Iterator[pa.RecordBatch]:
    """The rows of a slice, as the query shows them.

    Raises SchemaChangedError for a column that was dropped, unless the options want NULLs instead.
    """
    part, capture = slice_.part, slice_.capture
    with translate_errors(scan):
        if isinstance(part, PartitionSlice):
            assert slice_.stream is not None
            for changes in slice_.stream.read(part):
                yield scan.shape(changes)
            return
        assert capture is not None
        started = False
        try:
            for rows in read_rows(capture, part):
                started = True
                yield scan.shape(rows)
        except GoogleAPICallError as error:
            nulls = scan.options.on_schema_change is SchemaChange.NULLS
            if started or not nulls or kind_of(error) is not Kind.SCHEMA:
                raise
            LOG.warning(
                "table %s: %s; columns that were dropped are NULL", part.table, error.message
            )
            for rows in read_rows(drop_missing_columns(capture), part):
                yield scan.shape(rows)


def read_rows(capture: PollCapture, part: Slice) -> Iterator[Rows]:
    """The rows of a slice of a window, or of a page of a backfill."""
    if isinstance(part, RangeSlice):
        for batch in RangeCapture(capture).read(part):
            yield Rows(capture.table, part.window, batch, backfill=True)
        return
    for batch in capture.read(part):
        yield Rows(capture.table, part.window, batch)


def drop_missing_columns(capture: PollCapture) -> PollCapture:
    """A capture of the columns that are still there. Raises TableNotFoundError."""
    table = read_schema(connect(capture.queries.address)).table(capture.table.name)
    if table is None:
        raise TableNotFoundError(f"table {capture.table.name} was dropped while it was read")
    there = {column.name for column in table.columns}
    columns = tuple(pair for pair in capture.table.columns if pair[0] in there)
    return replace(capture, table=replace(capture.table, columns=columns))
