"""``_change_type`` and ``_commit_version``: what happened, in the words of Spark's ``CHANGES``.

Spark (4.2) knows ``insert``, ``delete``, ``update_preimage`` and ``update_postimage``. A poll does
not know an insert from an update, and says ``upsert`` instead of a guess.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from watcher.captures import COMMIT_TIMESTAMP_COLUMN, TableRows
from watcher.model.change import Operation

CHANGE_TYPE_COLUMN = "_change_type"
COMMIT_VERSION_COLUMN = "_commit_version"
CHANGE_FIELDS = (
    pa.field(CHANGE_TYPE_COLUMN, pa.string()),
    pa.field(COMMIT_VERSION_COLUMN, pa.int64()),
)
CHANGE_TYPES = {
    Operation.INSERT: "insert",
    Operation.UPDATE: "update_postimage",
    Operation.DELETE: "delete",
    Operation.UPSERT: "upsert",
    Operation.READ: "insert",
}
"""A row of a backfill or of a snapshot is new to its reader, as in the first version of a table of
Delta's."""


def name_change_types(operations: pa.Array) -> pa.Array:
    """Operations, as texts, in Spark's words."""
    # Made here: pyarrow imports pandas for its first array of Python's values.
    known = pa.array([str(operation) for operation in CHANGE_TYPES])
    words = pa.array(list(CHANGE_TYPES.values()))
    return words.take(pc.index_in(operations.cast(pa.string()), known))


def describe_rows(rows: TableRows) -> pa.Array:
    """The change type of every row of a poll, a backfill or a snapshot."""
    operation = Operation.READ if rows.backfill else Operation.UPSERT
    return pa.repeat(CHANGE_TYPES[operation], rows.batch.num_rows)


def number_commits(commits: pa.Array) -> pa.Array:
    """Commit timestamps as numbers in the order of commits: microseconds since 1970."""
    return commits.cast(pa.int64())


def number_commits_of_rows(rows: TableRows) -> pa.Array:
    """The same of rows; of one that was never stamped, its snapshot's timestamp, before which it
    was committed and after which every change of it comes."""
    commits = rows.batch.column(COMMIT_TIMESTAMP_COLUMN)
    return pc.fill_null(number_commits(commits), rows.window.end)
