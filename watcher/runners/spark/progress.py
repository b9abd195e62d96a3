"""How far streaming queries of the source are, from what Spark tells of each micro-batch.

Spark asks no Python source for metrics (up to 4.3), but its progress contains the offsets: the end
of the batch, and the newest timestamp that the source has seen. Both are times of Spanner, so the
difference is what is still to be read; no clock is asked, and no call is made.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from watcher.model.log_events.spark import QUERY_PROGRESS
from watcher.runners.spark.backlog import ROWS_BEHIND_MAX
from watcher.runners.spark.offsets import parse_micros

LOG = logging.getLogger("watcher.spark")


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """How far one source of a query is after a micro-batch.

    ``query`` is the query's name, or its id. ``position``: every change up to this commit timestamp
    (RFC 3339) was delivered; None before the first batch. ``seconds_behind``: from there to the
    newest timestamp that was seen, None where Spark does not tell it (before 4.2, or before the
    first batch). ``rows_behind``: how many rows there are between the two, ``ROWS_BEHIND_MAX`` for
    that many or more; None where Spark does not tell it, during a backfill, and where a batch of a
    change stream has not everything. ``rows`` is what the batch delivered, ``rows_per_second`` how
    fast.
    """

    query: str
    database: str
    source: str
    batch: int
    position: str | None
    seconds_behind: float | None
    rows_behind: int | None
    rows: int
    rows_per_second: float

    def describe(self) -> str:
        """One line for a log."""
        seconds = "?" if self.seconds_behind is None else f"{self.seconds_behind:.1f}"
        more = "+" if self.rows_behind == ROWS_BEHIND_MAX else ""
        rows = "?" if self.rows_behind is None else f"{self.rows_behind}{more}"
        return (
            f"{self.query}: {self.source} at {self.position or 'its start'}, {seconds} s and"
            f" {rows} rows behind, batch {self.batch}: {self.rows} rows,"
            f" {self.rows_per_second:.0f} rows/s"
        )


class SourceProgress(StreamingQueryListener):
    """The newest progress of every query of the source in a session. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: dict[str, tuple[QueryProgress, ...]] = {}

    def list_queries(self) -> tuple[QueryProgress, ...]:
        """The newest progress of each source of each query that runs."""
        with self._lock:
            return tuple(each for sources in self._newest.values() for each in sources)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 (Spark's name)
        """Nothing is known yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 (Spark's name)
        """Keeps the progress of a batch, and logs it."""
        told = json.loads(event.progress.json)
        progress = tuple(read_sources(told))
        with self._lock:
            self._newest[str(told["id"])] = progress
        for each in progress:
            QUERY_PROGRESS.log(LOG, progress=each.describe())

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 (Spark's name)
        """An idle query is where it was."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 (Spark's name)
        """Forgets the query."""
        with self._lock:
            self._newest.pop(str(event.id), None)


def follow_progress(spark: SparkSession) -> SourceProgress:
    """Installs a listener in a session; ``spark.streams.removeListener`` removes it."""
    progress = SourceProgress()
    spark.streams.addListener(progress)
    return progress


def read_sources(told: Mapping[str, Any]) -> list[QueryProgress]:
    """The sources of a progress of Spark (its JSON) that are ours."""
    return [
        read_source(told, source, end)
        for source in told.get("sources", ())
        if (end := parse_offset(source.get("endOffset"))) is not None
    ]


def read_source(
    told: Mapping[str, Any], source: Mapping[str, Any], end: Mapping[str, Any]
) -> QueryProgress:
    """One source of a progress, whose batch ends at ``end``."""
    newest = parse_offset(source.get("latestOffset")) or {}
    position, seen = end.get("position"), newest.get("position")
    behind = None
    if position is not None and seen is not None:
        behind = max(0, parse_micros(seen) - parse_micros(position)) / 1_000_000
    return QueryProgress(
        query=str(told.get("name") or told["id"]),
        database=str(end["database"]),
        source=str(end["source"]),
        batch=int(told["batchId"]),
        position=position,
        seconds_behind=behind,
        rows_behind=newest.get("rowsBehind"),
        rows=int(source.get("numInputRows") or 0),
        rows_per_second=float(source.get("processedRowsPerSecond") or 0.0),
    )


def parse_offset(offset: object) -> Mapping[str, Any] | None:
    """An offset as Spark's progress shows it; None for one of another source."""
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:
            return None
    if isinstance(offset, dict) and {"version", "database", "source"} <= offset.keys():
        return offset
    return None
