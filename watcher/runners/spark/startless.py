"""The streaming reader for Spark 4.0 and 4.1, which ask for the end of a batch without its start.

They ask in these orders, as a trace of their calls shows:

- a new query: ``latestOffset``, ``initialOffset``, ``partitions(initial, latest)``;
- a query that continues: ``partitions(seen, seen)`` with the newest offset of the checkpoint, then
  ``latestOffset``;
- ``Trigger.AvailableNow``: ``latestOffset`` once and before everything else, also of a query that
  continues. Its answer is the end of the query, in one batch.

So the start is the end of what was planned last, and known at every call but the first, which may be
that of ``Trigger.AvailableNow``: it is answered by all that is there.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pyspark
from pyspark.sql.datasource import InputPartition

from watcher.errors import ConfigurationError
from watcher.runners.spark.offsets import Offset
from watcher.runners.spark.refusals import call_with_retries
from watcher.runners.spark.scan import Scan
from watcher.runners.spark.streaming import StreamReader

LOG = logging.getLogger("watcher.spark")
UNLIMITED = (
    "the first batch has everything that is there, whatever its limits are: Spark %s does not say"
    " where it starts, nor whether it is the only one, as with Trigger.AvailableNow. Where it is"
    " not, set 'limitFirstBatch' to 'true'"
)
NOT_LIMITED = (
    "'limitFirstBatch' does not work with Trigger.AvailableNow before Spark 4.2: leave it out, then"
    " everything that is there is one batch"
)
PAUSED = (
    "consumer '{0}' is paused, and Trigger.AvailableNow cannot end without a batch before Spark 4.2:"
    " run 'spanner-watcher ctl resume {0}' and start the query again"
)


class StartlessReader(StreamReader):
    """One query's reader, which keeps track of where the next batch starts."""

    def __init__(self, scan: Scan) -> None:
        super().__init__(scan)
        self._next_start: Offset | None = None
        self._not_continued: str | None = None

    def __getstate__(self) -> dict[str, object]:
        return super().__getstate__() | {"_next_start": None, "_not_continued": None}

    def latestOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802 (older Spark's)
        """The end of the next batch; the start itself when there is nothing to deliver."""
        start = self._next_start
        end = self._plan_end(start, self._limit) if start is not None else self._plan_first_end()
        self._next_start = end
        return end

    def _plan_first_end(self) -> Offset:
        """The end of the first batch, as that of a new query where all that is there is not it."""
        options = self._scan.options
        if options.limit_first_batch:
            self._not_continued = NOT_LIMITED
            return self._plan_end(self.initialOffset(), self._limit)
        if options.max_rows_per_batch or options.max_span_per_batch:
            LOG.warning(UNLIMITED, pyspark.__version__)
        end = call_with_retries(self._scan, self._planner.plan_everything)
        if end is None:
            self._not_continued = PAUSED.format(options.consumer)
        return end or self.initialOffset()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The slices of a batch; none of the newest offset of a checkpoint, from which the query
        continues. Raises ConfigurationError where its end was planned as that of a new query."""
        if start == end and self._next_start not in (None, end):
            if self._not_continued is not None:
                raise ConfigurationError(self._not_continued)
            call_with_retries(self._scan, lambda: self._planner.continue_from(start))
        self._next_start = end
        return super().partitions(start, end)
