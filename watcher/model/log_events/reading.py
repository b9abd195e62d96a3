"""Events of tables, captures and clearing."""

from __future__ import annotations

from logging import INFO, WARNING

from watcher.model.log_events.event import Event

LISTENING_ENDED = Event(
    "listening_ended",
    INFO,
    "asks for changes instead of waiting for them: %(reason)s",
    "The change stream is asked at each interval again, since it cannot be listened to. Nothing"
    " to do: changes arrive as they do by polling.",
)
WHOLE_ROWS_UNREADABLE = Event(
    "whole_rows_unreadable",
    WARNING,
    "whole rows cannot be read as they were: %(error)s",
    "Values that the change stream does not have were to be read as they were, and those"
    " versions are gone. The rows are delivered with the columns that the records have: deliver"
    " sooner, or make version_retention_period longer.",
)
WINDOW_NOT_CUT = Event(
    "window_not_cut",
    INFO,
    "no window is cut at %(end)s: %(error)s",
    "A window could not be made smaller at this timestamp, whose versions are gone. Nothing to"
    " do: the window is delivered whole.",
)
READ_AT_CURRENT_TIME = Event(
    "read_at_current_time",
    WARNING,
    "%(error)s; reading the current rows instead: %(consequence)s",
    "A read of the past is older than version_retention_period, so that the current rows are"
    " read. Make version_retention_period longer than the consumer may be behind.",
)
CLEARING_WAITS_FOR_CONSUMER = Event(
    "clearing_waits_for_consumer",
    WARNING,
    "clearing of %(table)s waits for consumer '%(consumer)s', which is %(seconds).0f s behind;"
    " if it has ended for good, unregister it with 'spanner-watcher ctl forget %(consumer)s'",
    "A consumer that is far behind keeps rows in the index. Start it; if it has ended for good,"
    " unregister it with `ctl forget`.",
)
CLEARING_WAITS_FOR_START = Event(
    "clearing_waits_for_start",
    WARNING,
    "clearing of %(table)s waits for consumer '%(consumer)s', which selects it but has no"
    " position in it yet: start that consumer, or exclude the table there if it is not to read"
    " it; if it has ended for good, unregister it with 'spanner-watcher ctl forget %(consumer)s'",
    "A consumer selects the table and has not begun to read it. Start that consumer, exclude the"
    " table there, or unregister it with `ctl forget`.",
)
ROWS_CLEARED_BEFORE_START = Event(
    "rows_cleared_before_start",
    WARNING,
    "consumer '%(consumer)s' starts reading table %(table)s at %(start)s, but rows up to"
    " %(cleared_to)s may have been cleared from its index before: to get them, %(remedy)s",
    "Rows from before the consumer may be missing in its output, as others had them cleared. Do"
    " what the message says if they matter.",
)
CLEARING_POSTPONED = Event(
    "clearing_postponed",
    WARNING,
    "clearing of %(table)s is postponed: %(error)s",
    "Delivered rows stay in the index until clearing is tried again. When it lasts, look at the"
    " error.",
)
CLEARING_POSTPONED_BY_OUTAGE = Event(
    "clearing_postponed_by_outage",
    INFO,
    "clearing of %(table)s is postponed: %(error)s",
    "Spanner does not answer, which has an event of its own; clearing is tried again. Nothing to"
    " do.",
)
OPERATIONS_UNREADABLE = Event(
    "operations_unreadable",
    WARNING,
    "tables of %(database)s that were dropped and created again, or restored, cannot be told"
    " from those before: grant spanner.databaseOperations.list (%(error)s)",
    "Tables that were replaced or restored cannot be told from those before. Grant"
    " spanner.databaseOperations.list.",
)
TABLE_HISTORY_UNKNOWN = Event(
    "table_history_unknown",
    INFO,
    "what was done to table %(table)s is not known: %(error)s",
    "What was done to a table in the past is not known, and it is taken to have changed in any"
    " way. Nothing to do; a copy of it may be loaded again.",
)
STATEMENT_NOT_UNDERSTOOD = Event(
    "statement_not_understood",
    INFO,
    "what %(statement)r does to table %(table)s is not known: %(error)s",
    "A statement of the past cannot be read, and the table is taken to have changed in any way."
    " Nothing to do; a copy of it may be loaded again.",
)
COLUMNS_LEFT_OUT = Event(
    "columns_left_out",
    WARNING,
    "table %(table)s: columns %(columns)s have types %(types)s that cannot be read and are left"
    " out",
    "Columns whose type this release does not read are not in the changes. Update, or exclude"
    " them.",
)
DROP_NOT_UNDERSTOOD = Event(
    "drop_not_understood",
    INFO,
    "no table is known to be dropped by %(statement)r: %(error)s",
    "A statement of the past cannot be read; it is taken to drop nothing. Nothing to do.",
)
TABLE_SCANNED = Event(
    "table_scanned",
    WARNING,
    "table %(table)s has no index for polling: each poll scans the table",
    "Each poll reads the whole table. Make its index with `ddl apply`.",
)
TABLE_LEFT_OUT = Event(
    "table_left_out",
    INFO,
    "table %(table)s is left out: %(error)s",
    "The table was selected by a pattern and cannot be watched. Do what the error says if it"
    " should be.",
)
