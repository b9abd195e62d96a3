"""Events of copies of tables, and of their verification."""

from __future__ import annotations

from logging import INFO, WARNING

from watcher.model.log_events.event import Event

PROOF_UNREADABLE = Event(
    "proof_unreadable",
    WARNING,
    "what is proved of %(folder)s cannot be read: %(error)s",
    "What `verify --incremental` has proved of a copy cannot be shown. Check that the folder is"
    " there and may be read.",
)
COPY_WRITTEN_BY_OTHERS = Event(
    "copy_written_by_others",
    WARNING,
    "somebody else has written the copy of %(table)s: %(detail)s",
    "Cuts of the copy are not exact until it is verified or loaded again. Find who writes it,"
    " then run `verify --repair`.",
)
WINDOW_TOO_OLD = Event(
    "window_too_old",
    WARNING,
    "the window to %(end)s is older than version_retention_period: cuts before %(exact_from)s"
    " are not exact",
    "The replica is so far behind that the versions of its window are gone. Make"
    " version_retention_period longer, or the replica faster; cuts are exact again from the"
    " second timestamp on.",
)
VIEW_CHANGED = Event(
    "view_changed",
    INFO,
    "where or the masks of table %(table)s have changed: it is loaded again",
    "A copy is loaded again, because other rows or values are to be in it than before. Nothing to"
    " do.",
)
TABLE_LOADED = Event(
    "table_loaded",
    INFO,
    "table %(table)s is loaded as of %(at)s: %(rows)d rows%(rest)s",
    "A table, or a chunk of it, was copied whole.",
)
LOAD_PROGRESS_LOST = Event(
    "load_progress_lost",
    WARNING,
    "how far the load of %(table)s is cannot be read: it begins again",
    "A load begins again, as what it had done is not known. Nothing to do: the copy is complete"
    " when the load has ended.",
)
COPY_AHEAD = Event(
    "copy_ahead",
    INFO,
    "table %(table)s is at %(end)d already",
    "The copy has the rows of this window already, from a run that died after its commit."
    " Nothing to do.",
)
CUT_SKIPPED = Event(
    "cut_skipped",
    INFO,
    "no cut at %(end)s: there is a later one",
    "A window that was replayed is older than the newest cut. Nothing to do.",
)
CUT_NOT_EXACT = Event(
    "cut_not_exact",
    WARNING,
    "the cut at %(end)s is not exact: %(reasons)s",
    "The copies together do not equal Spanner at this timestamp, for the reasons given. Wait"
    " where a load goes on; otherwise run `verify --repair`.",
)
COPY_VERIFIED = Event(
    "copy_verified",
    INFO,
    "the copy of %(table)s is verified",
    "`verify` has found the copy equal: its cuts are exact again.",
)
COLUMNS_NOT_READ = Event(
    "columns_not_read",
    INFO,
    "the new columns of %(table)s cannot be read by themselves: %(error)s; it is loaded again",
    "The values of new columns are too many to be held, or Spanner keeps no versions of the"
    " window's end any more. Nothing to do: the table is loaded in chunks.",
)
LOAD_POSTPONED = Event(
    "load_postponed",
    INFO,
    "the load of %(table)s goes on with the next window: %(error)s",
    "The versions that a load reads are gone; it goes on at a later timestamp. Nothing to do.",
)
COMPACTION_LOST_RACE = Event(
    "compaction_lost_race",
    INFO,
    "%(path)s was changed by others while it was compacted",
    "Somebody has written the copy meanwhile, so that its compaction is tried again later."
    " Nothing to do.",
)
DELETION_VECTORS_ENABLED = Event(
    "deletion_vectors_enabled",
    INFO,
    "%(path)s has deletion vectors now: its readers need to know them",
    "Readers of the copy need support for deletion vectors. Update readers that fail from now"
    " on, or use `--merge copy-on-write`.",
)
CHANGE_FEED_ENABLED = Event(
    "change_feed_enabled",
    INFO,
    "%(path)s has the change data feed now: its other writers need to write it, too",
    "Writers of the copy need support for Delta's change data feed. Nothing to do, if nobody else"
    " writes there.",
)
MERGE_ON_READ_IMPOSSIBLE = Event(
    "merge_on_read_impossible",
    WARNING,
    "%(detail)s",
    "Merges rewrite whole files of this copy, which is slower. Remove what the message names, if"
    " that matters.",
)
LOAD_PROGRESS_MISSING = Event(
    "load_progress_missing",
    WARNING,
    "%(path)s does not say how far its load is: it begins again",
    "The log of the copy lacks its own note of the load, so that the load begins again. Nothing"
    " to do.",
)
KEY_INDEX_REREAD = Event(
    "key_index_reread",
    WARNING,
    "the index of the keys of %(path)s is read again: %(error)s",
    "The index of keys beside the copy was not usable and is made again. Nothing to do.",
)
KEY_INDEX_BEHIND = Event(
    "key_index_behind",
    WARNING,
    "the rows of %(path)s are not in the index of keys yet: %(error)s",
    "New rows are not in the index of keys yet, so that merges are slower. When it lasts, look"
    " at the permissions and the space of that folder.",
)
CHECKPOINT_NOT_WRITTEN = Event(
    "checkpoint_not_written",
    WARNING,
    "%(path)s has no checkpoint at version %(version)d: %(error)s",
    "The copy is right, and its log grows. When it lasts, look at the permissions and the space"
    " of that folder.",
)
DATABASE_RESTORED = Event(
    "database_restored",
    WARNING,
    "the database was restored from a backup: every table is loaded again",
    "The database has another history than the copies, so that each is loaded again. Nothing to"
    " do; expect the load.",
)
TABLE_REPLACED = Event(
    "table_replaced",
    WARNING,
    "another table is called %(table)s since %(since)s",
    "The table was dropped and made again, or renamed, so that its copy is loaded again. Nothing"
    " to do.",
)
REPLACED_TABLES_UNKNOWN = Event(
    "replaced_tables_unknown",
    WARNING,
    "whether tables were replaced cannot be read now: %(error)s",
    "Whether tables were replaced is asked again with the next window. When it lasts, look at"
    " the permissions.",
)
COPY_RELOADED = Event(
    "copy_reloaded",
    INFO,
    "table %(table)s: its schema has changed in the window: it is loaded again",
    "The schema has changed within a window in a way that needs the whole table. Nothing to do;"
    " expect the load.",
)
COPY_RENAMED = Event(
    "copy_renamed",
    WARNING,
    "the Iceberg copy of %(table)s is called %(copy)s: Iceberg has metadata tables of that name",
    "Iceberg keeps the table's name for itself. Read the copy by the name in the message.",
)
CHUNK_ENDED_EARLY = Event(
    "chunk_ended_early",
    INFO,
    "a chunk of %(table)s ends early: %(error)s",
    "The versions that a chunk reads are gone; the next chunk goes on at a later timestamp."
    " Nothing to do.",
)
COPY_NOT_COMPACTED = Event(
    "copy_not_compacted",
    WARNING,
    "the copy of %(table)s is not compacted: %(error)s",
    "The copy is right, and has many small files. It is tried again; when it lasts, look at the"
    " error.",
)
CHANGED_KEYS_UNKNOWN = Event(
    "changed_keys_unknown",
    INFO,
    "what has changed in the copy of %(table)s is not known: %(error)s",
    "The verification compares the whole copy instead of what has changed. Nothing to do.",
)
DELETED_ROWS_REMOVED = Event(
    "deleted_rows_removed",
    INFO,
    "table %(table)s: %(rows)d rows were deleted",
    "Rows that Spanner has deleted were removed from the copy.",
)
COPY_LACKS_ROWS = Event(
    "copy_lacks_rows",
    WARNING,
    "the copy of %(table)s lacks %(rows)d rows: run verify",
    "Rows of Spanner are missing in the copy, which must not be. Run `verify --repair`, and"
    " report it.",
)
COPY_HAS_ROWS_TWICE = Event(
    "copy_has_rows_twice",
    WARNING,
    "the copy of %(table)s has %(rows)d keys in more than one row: run verify",
    "Somebody else has written the copy: keys are there more than once. A copy by Spark keeps such"
    " rows. Run `verify --repair`.",
)
KEYS_NOT_COMPARED = Event(
    "keys_not_compared",
    WARNING,
    "the keys of %(table)s cannot be compared: %(error)s",
    "Rows that were deleted stay in the copy until its keys can be compared. Look at the error.",
)
KEYS_COMPARED_LATER = Event(
    "keys_compared_later",
    INFO,
    "the keys of %(table)s are compared with a later window: %(error)s",
    "The keys are compared with a later window, as the versions of this one are gone. Nothing to"
    " do.",
)
COMPARISON_STARTED = Event(
    "comparison_started",
    INFO,
    "comparing table %(table)s",
    "`verify` begins with this table.",
)
COPY_REPAIRED = Event(
    "copy_repaired",
    INFO,
    "table %(table)s: version %(version)d is repaired",
    "`verify --repair` has replaced rows of the copy in this version.",
)
