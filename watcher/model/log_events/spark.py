"""Events of Spark's queries."""

from __future__ import annotations

from logging import INFO, WARNING

from watcher.model.log_events.event import Event

BACKLOG_UNKNOWN = Event(
    "backlog_unknown",
    INFO,
    "the rows behind are not known: %(error)s",
    "The progress of the query lacks the number of rows behind. Nothing to do.",
)
CLEARED_ROWS_MISSING = Event(
    "cleared_rows_missing",
    WARNING,
    "%(detail)s; reading what is left",
    "Changes that the batch asks for were cleared, and onClearedRows is 'ignore'. Read the whole"
    " table with snapshotTimestamp if they matter.",
)
PRESTART_FAILED = Event(
    "prestart_failed",
    INFO,
    "no Python workers were started ahead: %(error)s",
    "The first batch starts its Python workers itself, and takes longer. Nothing to do.",
)
QUERY_PROGRESS = Event(
    "query_progress",
    INFO,
    "%(progress)s",
    "A micro-batch is done: how far the query is, and what is behind.",
)
WORKERS_RUN_PYTHON = Event(
    "workers_run_python",
    INFO,
    "workers run %(python)s",
    "Spark's Python workers use this interpreter.",
)
COLUMNS_READ_AS_NULL = Event(
    "columns_read_as_null",
    WARNING,
    "table %(table)s: %(error)s; columns that were dropped are NULL",
    "The batch is older than a change of the schema, so that columns that were dropped since are"
    " NULL. Nothing to do.",
)
FIRST_BATCH_UNLIMITED = Event(
    "first_batch_unlimited",
    WARNING,
    "the first batch has everything that is there, whatever its limits are: Spark %(version)s"
    " does not say whether it is the only one, as with Trigger.AvailableNow. With any other"
    " trigger, set the option 'limitFirstBatch' to 'true'",
    "This Spark does not say whether a batch is the only one. With a continuous trigger, set"
    " limitFirstBatch to true.",
)
PYTHON_STARTED_LATE = Event(
    "python_started_late",
    WARNING,
    "Spark's Python process took more than ten seconds to start: the machine is overloaded;"
    " starting the query again",
    "The machine is overloaded; the query is started again. When it repeats, give the driver"
    " more CPU.",
)
QUERY_ENDED_BY_OPERATOR = Event(
    "query_ended_by_operator",
    INFO,
    "an operator has ended the query",
    "Somebody has sent `ctl stop` or `ctl drain` to the query.",
)
BATCH_WITHOUT_WINDOW = Event(
    "batch_without_window",
    INFO,
    "micro-batch %(batch)d has no window",
    "The micro-batch has nothing to copy. Nothing to do.",
)
