"""Merges into a Delta table that write each file anew that has a row of the window, by delta-rs."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from deltalake import (
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    WriterProperties,
)

from watcher.replica.copies import find_stamp
from watcher.replica.merge_sql import DATAFUSION, SOURCE, TARGET

SMALL_GROUPS = WriterProperties(compression="SNAPPY", max_row_group_size=131_072)
"""A reader holds a group of rows at a time. Named properties would not be compressed otherwise."""
AFTER_COMMITS = PostCommitHookProperties(cleanup_expired_logs=False)
"""delta-rs knows no cuts: entries of the log go by ``FileExpiry``."""


def merge_files(
    table: DeltaTable, rows: pa.Table, key: Sequence[str], properties: CommitProperties
) -> None:
    """Merges rows as ``TableCopy.merge``, in one commit with these properties. Raises
    CommitFailedError where somebody else has committed meanwhile, DeltaError, OSError."""
    values, stamp = dict(DATAFUSION.assign(rows.column_names)), find_stamp(rows.column_names)
    (
        table.merge(
            rows,
            DATAFUSION.match_keys(key),
            source_alias=SOURCE,
            target_alias=TARGET,
            writer_properties=SMALL_GROUPS,
            commit_properties=properties,
            post_commithook_properties=AFTER_COMMITS,
        )
        .when_matched_delete(DATAFUSION.deletes(stamp))
        .when_matched_update(values, DATAFUSION.updates(stamp))
        .when_not_matched_insert(values, DATAFUSION.inserts)
        .execute()
    )
