"""Events of delivery: windows, callbacks, files, queues."""

from __future__ import annotations

from logging import ERROR, INFO, WARNING

from watcher.model.log_events.event import Event

LINE_REMOVED = Event(
    "line_removed",
    WARNING,
    "%(path)s ends in a part of a line (%(bytes)d bytes), which is removed",
    "An earlier run died within a line of its output file. Nothing to do: the changes of that"
    " line are delivered again.",
)
LINE_NOT_REMOVED = Event(
    "line_not_removed",
    WARNING,
    "cannot cut %(path)s back to its last whole line yet: %(error)s",
    "The output file ends in a part of a line that cannot be removed now. Free space or make the"
    " file writable: nothing is delivered before that.",
)
TABLE_BACKFILLED = Event(
    "table_backfilled",
    INFO,
    "table %(table)s is backfilled as of %(at)s",
    "The rows that were there before the consumer are all delivered.",
)
WINDOW_DISCARDED = Event(
    "window_discarded",
    INFO,
    "%(destination)s, discarding a window: %(error)s",
    "A producer that is given up reports its last error. Nothing to do: the window is delivered"
    " again.",
)
WATERMARK_REACHED = Event(
    "watermark_reached",
    INFO,
    "watermark %(at)s",
    "All changes up to this timestamp are delivered.",
)
CALLBACK_RETRIED = Event(
    "callback_retried",
    WARNING,
    "the callback failed for change %(change)s (%(error)s); trying again in %(seconds).1f s",
    "The callback, or what receives the changes, refuses one. When it lasts, fix the cause the"
    " message names; delivery stands still meanwhile.",
)
CHANGE_SKIPPED = Event(
    "change_skipped",
    ERROR,
    "skipped change %(change)s, which is in %(dead_letters)s now: %(error)s",
    "A change was given up and is in the file of dead letters. Fix the cause, then deliver it"
    " with `ctl replay`, or with `spanner-watcher replay`.",
)
DEAD_LETTERS_REPLAYED = Event(
    "dead_letters_replayed",
    WARNING,
    "consumer '%(consumer)s' has delivered its dead letters again: %(letters)d were in the file,"
    " %(left)d are left",
    "An operator asked for it, by `ctl replay` or on the page. What is left was refused again, with"
    " its new error, or is of release 1.0: for those, use `spanner-watcher replay`.",
)
DEAD_LETTERS_NOT_REPLAYED = Event(
    "dead_letters_not_replayed",
    ERROR,
    "consumer '%(consumer)s' cannot deliver its dead letters again: %(error)s",
    "An operator asked for it. Nothing was removed from the file: do what the message says, then"
    " ask again.",
)
WINDOW_DELIVERED = Event(
    "window_delivered",
    INFO,
    "window to %(end)s: %(rows)d rows",
    "All changes up to this timestamp are delivered.",
)
PLANNED_END_NOT_STORED = Event(
    "planned_end_not_stored",
    INFO,
    "the first window of the next run may be a longer one: %(error)s",
    "A crash now would make the next window longer than this one. Nothing to do.",
)
OLDER_SCHEMA_READ = Event(
    "older_schema_read",
    INFO,
    "looking for changes in an older schema: %(error)s",
    "Changes before a change of the schema are looked for in the schema before it. Nothing to do.",
)
SCHEMA_READ_NOW = Event(
    "schema_read_now",
    INFO,
    "the window is read as of now: %(error)s",
    "The schema at the end of the window is gone; the current one is used. Make"
    " version_retention_period longer than the consumer may be behind.",
)
