"""The backfill capture: a table as it was at one timestamp, page by page in the order of its key.

A page is a read of a key range, so that a backfill goes on where it was after a crash, on another
machine, and without holding anything.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import ListValue, Value

from watcher.captures import Rows, statements
from watcher.captures.poll import PollCapture
from watcher.captures.progress import BackfillProgress, Key
from watcher.errors import VersionExpiredError
from watcher.spanner.results.columns import record_batch
from watcher.spanner.results.wire import ResultPart, whole_rows
from watcher.window import BEGINNING, Window

LOG = logging.getLogger("watcher.backfill")
PAGE_ROWS = 10_000


@dataclass(frozen=True)
class BackfillCapture:
    """Reads a whole table, or a range of its keys, through the capture that polls it later."""

    poll: PollCapture
    first_key: Key | None = None
    end_key: Key | None = None
    """``first_key`` is inside of the range, ``end_key`` outside."""

    @cached_property
    def _columns(self) -> list[str]:
        return [name for name, _ in statements.selected(self.poll.table)]

    def page(
        self, progress: BackfillProgress, rows: int = PAGE_ROWS
    ) -> tuple[list[Rows], BackfillProgress | None]:
        """The next rows, and where the backfill stands after them; None when it is done.

        Past version garbage collection the table is read strongly: a row that changed since the
        snapshot comes as it is now, and again with its window.
        """
        try:
            return self._page(progress, progress.at, rows)
        except VersionExpiredError as error:
            LOG.warning("%s; reading strongly: rows that changed since come twice", error)
            return self._page(progress, None, rows)

    def _page(
        self, progress: BackfillProgress, read_timestamp: int | None, limit: int
    ) -> tuple[list[Rows], BackfillProgress | None]:
        table = self.poll.table
        window = Window(BEGINNING, progress.at)
        results = self.poll.queries.stream.read_range(
            table.name,
            self._columns,
            (progress.after, False) if progress.after is not None else (self.first_key, True),
            (self.end_key, False),
            limit,
            read_timestamp,
        )
        found: list[Rows] = []
        last: Key | None = None
        for batch, key in self._batches(results):
            found.append(Rows(table, window, batch, backfill=True))
            last = key
        count = sum(rows.batch.num_rows for rows in found)
        return found, BackfillProgress(progress.at, last) if count == limit else None

    def _batches(self, results: Iterator[ResultPart]) -> Iterator[tuple[pa.RecordBatch, Key]]:
        """Batches in the schema of the poll capture, and the key of the last row of each."""
        decoders, schema = self.poll.decoders(), self.poll.selected_schema
        width = len(decoders)
        places = self.poll.places(self._columns)
        keys = [self._columns.index(name) for name in self.poll.table.primary_key]
        for values in whole_rows(results, width):
            batch = record_batch(values, schema, decoders)
            yield self.poll.arranged(batch, places), raw_key(values[-width:], keys)


def raw_key(row: Sequence[bytes], places: Sequence[int]) -> Key:
    """The key of a row as the API wrote it: nothing is lost by decoding it and writing it again."""
    listed = ListValue(values=[Value.FromString(row[place]) for place in places])
    return tuple(MessageToDict(listed))
