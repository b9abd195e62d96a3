"""What an executor does: reads a slice and shapes its rows, also after a column was dropped."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from google.api_core.exceptions import GoogleAPICallError

from watcher.captures import Rows
from watcher.captures.change_stream import PartitionSlice
from watcher.captures.poll import PollCapture
from watcher.captures.ranges import RangeCapture, RangeSlice
from watcher.config import SchemaChange
from watcher.database import connect
from watcher.errors import TableNotFoundError
from watcher.failures import Kind, kind_of
from watcher.runners.spark.failing import explaining
from watcher.runners.spark.reading import Reading
from watcher.table import read_schema
from watcher.window import Slice

LOG = logging.getLogger("watcher.spark")


def read_slice(reading: Reading, part: Slice) -> Iterator[pa.RecordBatch]:
    """The rows of a slice, as the query shows them.

    Raises SchemaChangedError for a column that is gone, unless the options want NULLs instead.
    """
    with explaining(reading):
        if isinstance(part, PartitionSlice):
            assert reading.stream is not None
            for changes in reading.stream.read(part):
                yield reading.shaped(changes)
            return
        capture = reading.capture(part.table)
        begun = False
        try:
            for rows in rows_of(capture, part):
                begun = True
                yield reading.shaped(rows)
        except GoogleAPICallError as error:
            nulls = reading.options.on_schema_change is SchemaChange.NULLS
            if begun or not nulls or kind_of(error) is not Kind.SCHEMA:
                raise
            LOG.warning("table %s: %s; columns that are gone are NULL", part.table, error.message)
            for rows in rows_of(surviving(capture), part):
                yield reading.shaped(rows)


def rows_of(capture: PollCapture, part: Slice) -> Iterator[Rows]:
    """The rows of a slice of a window, or of a page of a backfill."""
    if isinstance(part, RangeSlice):
        for batch in RangeCapture(capture).read(part):
            yield Rows(capture.table, part.window, batch, backfill=True)
        return
    for batch in capture.read(part):
        yield Rows(capture.table, part.window, batch)


def surviving(capture: PollCapture) -> PollCapture:
    """A capture of the columns that are still there. Raises TableNotFoundError."""
    table = read_schema(connect(capture.queries.address)).table(capture.table.name)
    if table is None:
        raise TableNotFoundError(f"table {capture.table.name} was dropped while it was read")
    there = {column.name for column in table.columns}
    columns = tuple(pair for pair in capture.table.columns if pair[0] in there)
    return replace(capture, table=replace(capture.table, columns=columns))
