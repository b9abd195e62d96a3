"""Events of runs: from start to stop, leases, commands, outages, the page."""

from __future__ import annotations

from logging import ERROR, INFO, WARNING

from watcher.model.log_events.event import Event

PAGE_TOKEN_UNKNOWN = Event(
    "page_token_unknown",
    WARNING,
    "%(advice)s",
    "The page has a token of its own that nobody is shown, as the standard error is no terminal."
    " Set a token in the settings of the page.",
)
LEASE_NOT_RELEASED = Event(
    "lease_not_released",
    WARNING,
    "the lease of consumer '%(consumer)s' could not be released, it runs out in %(seconds)s s:"
    " %(error)s",
    "The consumer has ended and could not say so. Another instance waits until the lease runs"
    " out; nothing to do.",
)
LEASE_NOT_RENEWED = Event(
    "lease_not_renewed",
    WARNING,
    "the lease of consumer '%(consumer)s' could not be renewed, trying again: %(error)s",
    "The lease is not renewed yet and is tried again. When it lasts longer than the lease,"
    " another instance may take over: look at the connection to Spanner.",
)
ERROR_NOT_STORED = Event(
    "error_not_stored",
    WARNING,
    "the error could not be stored: %(error)s",
    "What went wrong could not be written for `status` and the page. The log has it; look at the"
    " connection to Spanner.",
)
OWN_TABLE_NOT_MADE = Event(
    "own_table_not_made",
    INFO,
    "consumers work without it: %(error)s",
    "A table that only operators use could not be made. Run `ddl grants --apply`, or `ctl`, once"
    " with an account that may change the schema.",
)
AUDIT_NOT_WRITTEN = Event(
    "audit_not_written",
    WARNING,
    "what was done is not in table %(table)s: %(error)s",
    "A command took its course, and `ctl audit` does not have it. Give the role the privileges of"
    " `ddl grants --for control`.",
)
OWN_TABLES_NARROW = Event(
    "own_tables_narrow",
    INFO,
    "the own tables have no room for names of tables of %(characters)d characters, and this"
    " account may not change the schema",
    "Tables with very long names cannot be watched until the product's own tables are widened."
    " Start a consumer once with an account that may change the schema.",
)
BACKFILL_NOT_COUNTED = Event(
    "backfill_not_counted",
    INFO,
    "the backfill of %(table)s was not counted: %(error)s",
    "The page cannot say how many rows of a backfill are left. Nothing to do: it is asked again.",
)
COMMAND_SENT_BY_PAGE = Event(
    "command_sent_by_page",
    WARNING,
    "command %(command)s sent to consumer '%(consumer)s' through the page",
    "An operator has pressed a button of the page. `ctl resume` takes a pause back.",
)
OVERVIEW_UNREADABLE = Event(
    "overview_unreadable",
    WARNING,
    "the database could not be read, trying again: %(error)s",
    "The page shows what it knew last, as Spanner does not answer it. When it lasts, look at the"
    " connection and the permissions.",
)
PAGE_STARTED = Event(
    "page_started",
    INFO,
    "the page listens on port %(port)d of %(host)s",
    "The live page is served at this address.",
)
WATCHER_FAILED_AT_END = Event(
    "watcher_failed_at_end",
    ERROR,
    "the watcher has failed as it ended: %(error)s",
    "Somebody has stopped reading `Watcher.changes()`, and the watcher then failed. What was not"
    " acknowledged comes again; look at the error.",
)
CLOCK_JUMPED = Event(
    "clock_jumped",
    WARNING,
    "the clock of this machine was set %(direction)s by %(seconds).0f s; only the times in this"
    " log depend on it: work goes on at the same intervals, and leases last as long as before",
    "Somebody has set the clock of this machine. Nothing to do for the product; look at the time"
    " service.",
)
RUN_STOPPED_BY_FAILURE = Event(
    "run_stopped_by_failure",
    ERROR,
    "stopping, as '%(job)s' failed: %(error)s%(advice)s",
    "The watcher ends with an error that trying again cannot fix. Do what the message says, and"
    " start it again.",
)
PART_TAKEN = Event(
    "part_taken",
    INFO,
    "delivering as '%(consumer)s'",
    "This instance delivers a part of a shared consumer.",
)
PART_HELD_BY_OTHERS = Event(
    "part_held_by_others",
    INFO,
    "another instance has '%(consumer)s': %(error)s",
    "Another instance delivers this part. Nothing to do.",
)
PART_GIVEN_BACK = Event(
    "part_given_back",
    INFO,
    "'%(consumer)s' is given back: %(error)s",
    "The part is not started here, so that another instance can have it. Nothing to do.",
)
MEMBERS_UNKNOWN = Event(
    "members_unknown",
    WARNING,
    "cannot see who shares consumer '%(consumer)s': %(error)s",
    "Who shares the consumer cannot be read, so that parts stay where they are. When it lasts,"
    " look at the connection to Spanner.",
)
MEMBER_NOT_REMOVED = Event(
    "member_not_removed",
    INFO,
    "the others see that this instance has ended when its time is up: %(error)s",
    "This instance has ended and could not say so. The others take its parts when its time is"
    " up; nothing to do.",
)
STOPPING = Event(
    "stopping",
    WARNING,
    "stopping: waiting up to %(seconds).0f s for the window in progress; press Ctrl-C again to"
    " exit at once",
    "A signal has asked the process to end, and it finishes its window.",
)
STOP_TIMED_OUT = Event(
    "stop_timed_out",
    ERROR,
    "what was in progress did not end in %(seconds).0f s; exiting without it",
    "The window did not end in time, and the process ends without it. It is delivered again;"
    " raise the time to stop, or make windows smaller.",
)
STOPPED_AT_ONCE = Event(
    "stopped_at_once",
    WARNING,
    "exiting at once; what was in progress is delivered again at the next start",
    "A second signal ended the process. What was in progress is delivered again at the next start.",
)
NOT_STARTED = Event(
    "not_started",
    WARNING,
    "%(reason)s",
    "The watcher was asked to end before it had started. Nothing to do; the message says what it"
    " waited for.",
)
COMMAND_RECEIVED = Event(
    "command_received",
    WARNING,
    "an operator asked consumer '%(consumer)s' to %(command)s",
    "The consumer obeys a command of `ctl` or of the page. `ctl resume` takes a pause back.",
)
COMMAND_UNKNOWN = Event(
    "command_unknown",
    WARNING,
    "consumer '%(consumer)s' ignores the command '%(command)s', which this release does not know:"
    " update this instance, or take the command back with 'ctl resume %(consumer)s'",
    "A newer release of `ctl` or of the page has sent a command that this release does not know."
    " Update this instance, which then obeys it, or take it back with `ctl resume`.",
)
RUN_RETRIED = Event(
    "run_retried",
    WARNING,
    "trying again in %(seconds).1f s (failure %(failures)d): %(error)s",
    "A window has failed and is delivered again. When it lasts, delivery stands still: look at"
    " the error.",
)
RUN_RETRIED_QUIETLY = Event(
    "run_retried_quietly",
    INFO,
    "trying again in %(seconds).1f s (failure %(failures)d): %(error)s",
    "A window has failed for a cause that has an event of its own, and is delivered again."
    " Nothing to do.",
)
SCHEMA_CHANGED = Event(
    "schema_changed",
    WARNING,
    "the schema has changed (%(error)s); reading it again",
    "A watched table was changed, and the watcher goes on with its new schema. Nothing to do.",
)
SESSION_LOST = Event(
    "session_lost",
    WARNING,
    "the session is lost; connecting again: %(error)s",
    "The watcher connects again. When it repeats, look at who deletes sessions.",
)
INDEX_MISSING = Event(
    "index_missing",
    INFO,
    "no other index replaces it: %(error)s",
    "The index that polling reads was dropped. Make it again with `ddl apply`; delivery waits"
    " for it.",
)
START_IN_FUTURE = Event(
    "start_in_future",
    WARNING,
    "%(detail)s: changes before it are not delivered",
    "The setting start is ahead of Spanner's clock. Changes before it are not delivered: set an"
    " earlier one if they matter.",
)
POSITION_LEFT_BEHIND = Event(
    "position_left_behind",
    WARNING,
    "consumer '%(consumer)s' has a position in table %(table)s, which it does not watch any"
    " more: clearing of %(table)s waits for it; to end that, run: spanner-watcher ctl forget"
    " %(consumer)s --table %(table)s",
    "Clearing of a table waits for a consumer that does not watch it any more. Run the command"
    " in the message.",
)
POSITION_VOID = Event(
    "position_void",
    WARNING,
    "table %(table)s was dropped and created again, or renamed, since the position of consumer"
    " '%(consumer)s': it is read from the beginning",
    "The table is another one than at the consumer's position, so that all its rows are"
    " delivered. Nothing to do.",
)
WATCHED_TABLES_CHANGED = Event(
    "watched_tables_changed",
    WARNING,
    "table %(table)s is %(change)s",
    "A table has come, or has gone, by a change of the schema or of grants. Check that this was"
    " meant.",
)
START_RETRIED = Event(
    "start_retried",
    WARNING,
    "starting again in %(seconds).1f s: %(error)s",
    "The watcher cannot start yet and tries again. When it lasts, look at the error.",
)
DATABASE_UNAVAILABLE = Event(
    "database_unavailable",
    WARNING,
    "%(database)s does not answer; retrying until it does: %(error)s",
    "Spanner does not answer. Nothing is lost: delivery goes on when it does; look at the"
    " network and at Spanner's status.",
)
DATABASE_AVAILABLE = Event(
    "database_available",
    WARNING,
    "%(database)s answers again after %(seconds).1f s",
    "Spanner answers again; delivery catches up.",
)
CALL_REFUSED = Event(
    "call_refused",
    WARNING,
    "%(database)s refuses a call, retrying it: %(error)s",
    "Spanner refuses one call while it answers others. When it lasts, look at quotas and limits:"
    " docs/troubleshooting.md.",
)
CALL_ACCEPTED = Event(
    "call_accepted",
    WARNING,
    "%(database)s takes the call after %(seconds).1f s",
    "A call that was refused is answered; delivery goes on.",
)
