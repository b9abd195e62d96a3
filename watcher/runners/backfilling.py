"""Delivers whole tables before their first change, page by page, and goes on after a crash."""

from __future__ import annotations

import json
import logging
from collections.abc import Container, Iterable, Mapping

from watcher.captures.backfill import PAGE_ROWS, BackfillCapture, Progress
from watcher.failpoints import failpoint
from watcher.positions.backfills import Backfills
from watcher.runners.sinks import Sink
from watcher.stream import timestamp_text

LOG = logging.getLogger("watcher.backfill")


class Backfilling:
    """The backfills of one consumer. A page is delivered, then the progress is saved.

    At least once, with the same rows and the same ids.
    """

    def __init__(
        self,
        captures: Mapping[str, BackfillCapture],
        backfills: Backfills,
        consumer: str,
        sink: Sink,
        page_rows: int = PAGE_ROWS,
    ) -> None:
        self._captures = captures
        self._backfills = backfills
        self._consumer = consumer
        self._sink = sink
        self._page_rows = page_rows
        self._waiting: dict[str, Progress] = {}

    def replace_captures(self, captures: Mapping[str, BackfillCapture]) -> None:
        """Goes on with the tables as the schema is now; what is gone is done."""
        self._captures = captures
        for table in [name for name in self._waiting if name not in captures]:
            self._save(table, None)

    def begin_new(self, tables: Iterable[str], known: Container[str], at: int) -> dict[str, int]:
        """Starts the backfills of tables that are not known yet, as of a timestamp (microseconds
        since 1970); where each ends.

        Before the consumer is registered at that timestamp: after a crash between the two it begins
        again, at a later one.
        """
        new = [table for table in tables if table not in known]
        for table in new:
            self._save(table, Progress(at, None))
        return dict.fromkeys(new, at)

    def resume(self) -> None:
        """Takes up what is under way."""
        self._waiting = {
            table: Progress(kept["at"], tuple(kept["after"]) if kept["after"] is not None else None)
            for table, text in self._backfills.all(self._consumer).items()
            if table in self._captures
            for kept in (json.loads(text),)
        }

    @property
    def under_way(self) -> bool:
        """True while there are pages to be delivered."""
        return bool(self._waiting)

    def step(self) -> dict[str, int]:
        """Delivers a page; how many rows, by table."""
        table, progress = next(iter(self._waiting.items()))
        found, after = self._captures[table].page(progress, self._page_rows)
        for rows in found:
            self._sink.write(rows)
        self._sink.flush()
        failpoint("after-backfill-page-before-progress")
        self._save(table, after)
        if after is None:
            at = timestamp_text(progress.at)
            LOG.info("table %s is backfilled as of %s", table, at)
        return {table: sum(rows.batch.num_rows for rows in found)}

    def _save(self, table: str, progress: Progress | None) -> None:
        if progress is None:
            self._backfills.save(self._consumer, table, None)
            self._waiting.pop(table, None)
            return
        text = json.dumps({"at": progress.at, "after": progress.after})
        self._backfills.save(self._consumer, table, text)
        self._waiting[table] = progress
