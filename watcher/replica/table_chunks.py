"""Reads a chunk of a table at one timestamp, in the order of its key."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from watcher.captures import TableRows
from watcher.captures.key_ranges import KeyRangeCapture
from watcher.captures.parallel_reads import read_in_parallel
from watcher.captures.poll import PollCapture
from watcher.model.errors import VersionExpiredError
from watcher.model.log_events.copies import CHUNK_ENDED_EARLY
from watcher.replica.load_share import KeyBounds
from watcher.replica.loads import LoadBudget, LoadProgress
from watcher.replica.rows import arrange_rows
from watcher.spanner.keys import Key

LOG = logging.getLogger("watcher.replica")
WatchLoad = Callable[[str, LoadProgress | None], object]
"""Is told how far the load of a table is; None: at its end."""


class TableChunk:
    """The ``Chunk`` of a table above the last key that is loaded: as a copy has the rows, without
    softly deleted ones. ``check`` raises when this instance must not write any more."""

    def __init__(
        self,
        capture: PollCapture,
        at: int,
        before: LoadProgress | None,
        budget: LoadBudget,
        check: Callable[[], None],
        watch: WatchLoad | None = None,
    ) -> None:
        """``before``: where the load is; None: at its beginning. ``watch`` is called after each
        page, and, with None, at the end of the table."""
        self._watch = watch
        self._capture = capture
        self._at = at
        self._before = before
        self._budget = budget
        self._check = check
        self.rows = 0
        self.progress: LoadProgress | None = before

    @property
    def first(self) -> bool:
        """As ``Chunk.first``."""
        return self._before is None

    @property
    def key(self) -> Sequence[str]:
        """As ``Chunk.key``."""
        return self._capture.table.primary_key

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """As ``Chunk.__iter__``. Raises VersionExpiredError where no row can be read."""
        after = self._before.upto if self._before is not None else None
        budget, table = self._budget, KeyRangeCapture(self._capture)
        where = (self._at, after, budget.rows)
        pages = (
            table.read_after(*where)
            if budget.parallelism == 1 and not budget.data_boost
            else read_in_parallel(table, *where, budget.parallelism, budget.data_boost)
        )
        budget.start()
        read = 0
        try:
            with closing(pages):
                for rows, count, key in pages:
                    self._check()
                    read += count
                    yield from self._take(rows, key)
                    self._tell()
                    if budget.used_up:
                        self._estimate()
                        return
        except VersionExpiredError as error:
            if not read:
                raise
            CHUNK_ENDED_EARLY.log(LOG, table=self._capture.table.name, error=error)
            return
        if not budget.rows or read < budget.rows:
            self.progress = None
            self._tell()
        self._estimate()

    @cached_property
    def _bounds(self) -> KeyBounds | None:
        return KeyBounds.read(self._capture, self._at)

    def _estimate(self) -> None:
        """Says of the progress how much of the table it is. Nothing depends on it."""
        if self.progress is None:
            return
        try:
            bounds = self._bounds
        except VersionExpiredError:
            bounds = None
        share = None if bounds is None else bounds.measure(self.progress.upto)
        self.progress = replace(self.progress, share=share)

    def _tell(self) -> None:
        if self._watch is not None:
            self._estimate()
            self._watch(self._capture.table.name, self.progress)

    def _take(self, rows: TableRows, key: Key) -> Iterator[pa.RecordBatch]:
        kept = drop_deleted(rows)
        self.rows += kept.num_rows
        before = self._before
        self.progress = LoadProgress(
            key,
            self.rows + (before.rows if before is not None else 0),
            kept.nbytes + (self.progress.bytes if self.progress is not None else 0),
            1 + (before.chunks if before is not None else 0),
            before.began if before is not None else self._at,
        )
        yield from kept.to_batches()


def drop_deleted(rows: TableRows) -> pa.Table:
    """Rows as a copy has them, without those that are softly deleted."""
    table = arrange_rows(rows)
    kept = table.filter(pc.invert(table.column(table.num_columns - 1)))
    return kept.drop_columns([table.column_names[-1]])
