"""Delivers whole tables before their first change, page by page; resumes after a crash."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from watcher.captures.key_ranges import PAGE_ROWS, KeyRangeCapture
from watcher.captures.progress import BackfillProgress
from watcher.consumers.positions import BackfillMove, Positions
from watcher.model.log_events.delivery import TABLE_BACKFILLED
from watcher.process.failpoints import failpoint
from watcher.process.tracing import OWN, span
from watcher.runners.delivery.instance import Instance
from watcher.sinks.contract import Sink
from watcher.spanner.timestamps import format_timestamp

LOG = logging.getLogger("watcher.backfill")


class BackfillDelivery:
    """The backfills of one consumer. A page is delivered, then the progress is saved.

    At least once, with the same rows and the same ids. Nothing is delivered, and no progress saved,
    by an instance that has lost its lease: else old values would follow newer ones.
    """

    def __init__(
        self,
        captures: Mapping[str, KeyRangeCapture],
        positions: Positions,
        instance: Instance,
        sink: Sink,
        page_rows: int = PAGE_ROWS,
    ) -> None:
        self._captures = captures
        self._positions = positions
        self._instance = instance
        self._sink = sink
        self._page_rows = page_rows
        self._waiting: dict[str, BackfillProgress] = {}

    def replace_positions(self, positions: Positions) -> None:
        """Continues over a new connection."""
        self._positions = positions

    def replace_captures(self, captures: Mapping[str, KeyRangeCapture]) -> None:
        """Continues with the tables of another schema; one that was dropped is done."""
        self._captures = captures
        for table in [name for name in self._waiting if name not in captures]:
            self._save(table, self._waiting[table], None)

    def resume(self) -> None:
        """Reads which backfills are in progress."""
        if not self._captures:
            return
        stored = self._positions.load_backfills(self._instance.consumer)
        self._waiting = {table: p for table, p in stored.items() if table in self._captures}

    @property
    def in_progress(self) -> bool:
        """True while there are pages to deliver."""
        return bool(self._waiting)

    def deliver_page(self) -> dict[str, int]:
        """Delivers the next page; how many rows, by table."""
        table, progress = next(iter(self._waiting.items()))
        attributes = {f"{OWN}consumer": self._instance.consumer, f"{OWN}table": table}
        with span("backfill page", attributes) as current:
            rows = self._deliver_page(table, progress)
            current.set(f"{OWN}rows", rows)
        return {table: rows}

    def _deliver_page(self, table: str, progress: BackfillProgress) -> int:
        batches, after = self._captures[table].read_page(progress, self._page_rows)
        try:
            for rows in batches:
                self._instance.check()
                self._sink.write(rows)
            self._sink.flush()
        except BaseException:
            self._sink.discard()
            raise
        failpoint("after-backfill-page-before-progress")
        self._save(table, progress, after)
        if after is None:
            TABLE_BACKFILLED.log(LOG, table=table, at=format_timestamp(progress.at))
        return sum(rows.batch.num_rows for rows in batches)

    def _save(self, table: str, before: BackfillProgress, after: BackfillProgress | None) -> None:
        consumer, owner = self._instance.consumer, self._instance.owner
        move = BackfillMove(table, after, before)
        self._positions.save_all([], owner, [move], consumer)
        self._waiting.pop(table)
        if after is not None:
            self._waiting = {table: after, **self._waiting}
