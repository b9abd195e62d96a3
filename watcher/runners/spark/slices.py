"""What an executor does: reads a slice and shapes its rows, also after a column was dropped."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from google.api_core.exceptions import GoogleAPICallError

from watcher.captures import Capture
from watcher.captures.change_stream import PartitionSlice
from watcher.captures.key_ranges import KeyRangeCapture, KeyRangeSlice
from watcher.captures.poll import PollCapture
from watcher.errors import TableNotFoundError
from watcher.runners.spark.failing import explaining
from watcher.runners.spark.reading import Reading
from watcher.settings.spark import SchemaChange
from watcher.spanner.database import connect
from watcher.spanner.failures import FailureKind, classify_error
from watcher.tables.discovery import read_schema
from watcher.window import Slice, TableSlice

LOG = logging.getLogger("watcher.spark")


@dataclass(frozen=True)
class PlannedSlice:
    """A slice, and the capture that reads it: by the schema that is valid at the window's end.
    Picklable: it goes to an executor."""

    part: Slice
    capture: Capture[Any]


def planned(reading: Reading, parts: Iterable[Slice]) -> list[PlannedSlice]:
    """Slices with the captures of a query in one schema."""
    return [PlannedSlice(part, capture_of(reading, part)) for part in parts]


def capture_of(reading: Reading, part: Slice) -> Capture[Any]:
    """The capture that reads a slice."""
    if isinstance(part, PartitionSlice):
        assert reading.stream is not None
        return reading.stream
    assert isinstance(part, TableSlice)
    capture = reading.capture(part.table)
    return KeyRangeCapture(capture) if isinstance(part, KeyRangeSlice) else capture


def read_slice(reading: Reading, slice_: PlannedSlice) -> Iterator[pa.RecordBatch]:
    """The rows of a slice, as the query shows them.

    Raises SchemaChangedError for a column that is gone, unless the options want NULLs instead.
    """
    part, capture = slice_.part, slice_.capture
    with explaining(reading):
        begun = False
        try:
            for rows in capture.read(part):
                begun = True
                yield reading.shaped(rows)
        except GoogleAPICallError as error:
            nulls = reading.options.on_schema_change is SchemaChange.NULLS
            fewer = not begun and nulls and classify_error(error) is FailureKind.SCHEMA
            if not fewer or not isinstance(capture, PollCapture | KeyRangeCapture):
                raise
            name = capture.table.name
            LOG.warning("table %s: %s; columns that are gone are NULL", name, error.message)
            for rows in surviving(capture).read(part):
                yield reading.shaped(rows)


def surviving(capture: PollCapture | KeyRangeCapture) -> Capture[Any]:
    """A capture of the columns that are still there. Raises TableNotFoundError."""
    if isinstance(capture, KeyRangeCapture):
        return replace(capture, poll=surviving_poll(capture.poll))
    return surviving_poll(capture)


def surviving_poll(capture: PollCapture) -> PollCapture:
    """As ``surviving``."""
    table = read_schema(connect(capture.queries.address)).table(capture.table.name)
    if table is None:
        raise TableNotFoundError(f"table {capture.table.name} was dropped while it was read")
    there = {column.name for column in table.columns}
    columns = tuple(pair for pair in capture.table.columns if pair[0] in there)
    return replace(capture, table=replace(capture.table, columns=columns))
