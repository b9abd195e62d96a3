"""The streaming reader for Spark 4.0 and 4.1, which ask for the end of a batch without its start.

They ask in these orders, as a trace of their calls shows:

- a new query: ``latestOffset``, ``initialOffset``, ``partitions(initial, latest)``;
- a query that continues: ``partitions(seen, seen)`` with the newest offset of its checkpoint, the
  batch that was not committed, if there is one, then ``latestOffset``.

So a batch starts where the one that was planned last ends. ``Trigger.AvailableNow`` is one batch
there: the one that was not committed, or else a new one. Spark does not say which trigger a query
has, so the first batch of every start has everything, unless the options say that the trigger is
another one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pyspark
from pyspark.sql.datasource import InputPartition

from watcher.model.errors import ConfigurationError
from watcher.model.log_events.spark import FIRST_BATCH_UNLIMITED
from watcher.planning.limits import WindowLimit
from watcher.runners.spark.offsets import Offset
from watcher.runners.spark.scan import Scan
from watcher.runners.spark.spark_versions import ReadEverything
from watcher.runners.spark.streaming import StreamReader
from watcher.runners.spark.worker_errors import lead_with_sentence

LOG = logging.getLogger("watcher.spark")
WRAPPER = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"


class StartlessReader(StreamReader):
    """One query's reader, which keeps track of where the next batch starts."""

    def __init__(self, scan: Scan) -> None:
        super().__init__(scan)
        self._planned_to: Offset | None = None
        self._limits_hold = scan.options.limit_first_batch

    def __getstate__(self) -> dict[str, object]:
        return super().__getstate__() | {"_planned_to": None, "_limits_hold": self._limits_hold}

    @lead_with_sentence
    def latestOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802 (older Spark's)
        """The end of the next batch; the start itself when there is nothing to deliver."""
        limited = self._scan.options.window_limit != WindowLimit()
        if not self._limits_hold and limited:
            FIRST_BATCH_UNLIMITED.log(LOG, version=pyspark.__version__)
        limit = self._limit if self._limits_hold else ReadEverything()
        self._planned_to = self._plan_end(self._planned_to or self.initialOffset(), limit)
        self._limits_hold = True
        return self._planned_to

    @lead_with_sentence
    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The slices of a batch; none where Spark says from which offset the query continues.
        Raises ConfigurationError where Spark says so after it has asked for an end."""
        if start == end and self._planned_to not in (None, end):
            raise ConfigurationError(
                f"Spark's setting '{WRAPPER}' asks for the end of a batch before it says where the"
                " query continues: set it to 'false'"
            )
        self._planned_to = end
        return super().partitions(start, end)
