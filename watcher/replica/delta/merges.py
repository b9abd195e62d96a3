"""Merges windows into a Delta copy, on read or on write, as the table allows it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from deltalake.exceptions import CommitFailedError, DeltaError

from watcher.model.errors import ReplicaError
from watcher.model.log_events.copies import (
    CHANGE_FEED_ENABLED,
    DELETION_VECTORS_ENABLED,
    MERGE_ON_READ_IMPOSSIBLE,
)
from watcher.replica.copies import COPY_ON_WRITE, MERGE_ON_READ, CopyState, Merging, Replacement
from watcher.replica.cuts.modes import ENDS, LATEST, find_mode
from watcher.replica.delta.change_feed import has_feed
from watcher.replica.delta.commits import DeltaCommits
from watcher.replica.delta.copy_on_write import merge_files
from watcher.replica.delta.features import allows_vectors, list_obstacles
from watcher.replica.delta.log import LOADED, METADATA, USER_METADATA
from watcher.replica.delta.merge_on_read import VectorTable
from watcher.replica.row_versions import keep_current, make_changes
from watcher.replica.stores.stored_files import explain_copy

LOG = logging.getLogger("watcher.replica")


class DeltaMerges:
    """Of one table. ``merging``: how rows are merged; None: as the table allows it. ``feed``: it
    is to have the change data feed."""

    def __init__(
        self,
        commits: DeltaCommits,
        vectors: VectorTable,
        merging: Merging | None,
        feed: bool = False,
    ) -> None:
        self._feed = feed
        self._commits = commits
        self._vectors = vectors
        self._merging = merging
        self._warned: set[str] = set()

    def merge(self, rows: pa.Table, key: Sequence[str], end: int) -> CopyState:
        """As ``TableCopy.merge``."""
        state = self._commits.retry(
            lambda: (self._merge_rows if self.use_vectors() else self._merge_files)(rows, key, end)
        )
        self._commits.fence.known = state.end
        return state

    def use_vectors(self) -> bool:
        """Whether rows are merged by deletion vectors; lets the table have them where that is asked
        for. Raises ReplicaError where the table cannot."""
        snapshot = self._vectors.read()
        mode = find_mode(snapshot.schema.names)
        if self._merging == COPY_ON_WRITE and mode == LATEST:
            return False
        allowed = allows_vectors(snapshot)
        reasons = list_obstacles(snapshot)
        if self._merging is None and not allowed:
            reasons = ["it was made for copy-on-write; --merge merge-on-read changes that"]
        if not reasons:
            if self._feed and not has_feed(snapshot):
                self._enable(lambda: has_feed(self._vectors.read()))
                CHANGE_FEED_ENABLED.log(LOG, path=self._vectors.path)
            return allowed or self._enable_vectors()
        text = f"{self._vectors.path} cannot be merged on read: {'; '.join(reasons)}"
        if mode != LATEST:
            raise ReplicaError(f"{text}; mode = '{mode}' needs that: remove the obstacle")
        if self._merging == MERGE_ON_READ:
            raise ReplicaError(f"{text}; remove that, or use --merge copy-on-write")
        self.warn(f"{text}; every merge rewrites the files that have a row of it")
        return False

    def warn(self, text: str) -> None:
        """Says something once."""
        if text not in self._warned:
            MERGE_ON_READ_IMPOSSIBLE.log(LOG, detail=text)
            self._warned.add(text)

    def _enable_vectors(self) -> bool:
        """Lets an existing table have vectors."""
        self._enable(lambda: allows_vectors(self._vectors.read()))
        DELETION_VECTORS_ENABLED.log(LOG, path=self._vectors.path)
        return True

    def _enable(self, is_enabled: Callable[[], bool]) -> None:
        """Gives an existing table what its rows are to be merged with."""
        self._commits.check_snapshot(self._vectors.read())
        while not is_enabled():
            self._vectors.enable(self._feed)

    def replace(self, replacement: Replacement, end: int) -> CopyState | None:
        """As ``ReplacingCopy.replace_rows``, in a copy that keeps more than the latest rows: what
        comes has changed at the window's end, and what only goes was deleted then. None where
        somebody else has committed meanwhile."""
        snapshot, key = self._vectors.read(), replacement.keys.columns
        mode = find_mode(snapshot.schema.names)
        there = [
            keep_current(batch, mode).select(list(key))
            for batch in self._vectors.files.scan(snapshot, [*key, ENDS[mode]])
        ]
        gone = [batch.filter(pa.array(replacement.keys.find(batch))) for batch in there]
        rows = make_changes(replacement.rows, gone, end)
        loaded = self._commits.find_loaded(self._commits.require())
        values = self._commits.describe_commit(replacement.kind, end) | {LOADED: loaded}
        return self._merge_rows(rows, key, end, {USER_METADATA: json.dumps({METADATA: values})})

    def _merge_rows(
        self, rows: pa.Table, key: Sequence[str], end: int, mark: Mapping[str, str] | None = None
    ) -> CopyState | None:
        """Merges on read: the copy's state; None where somebody else has committed meanwhile."""
        commits, snapshot = self._commits, self._vectors.read()
        commits.check_snapshot(snapshot)
        mark = mark or {METADATA: json.dumps(commits.describe_commit("merge", end))}
        with explain_copy(commits.path):
            if not self._vectors.merge(rows, key, mark, commits.make_transaction(end)):
                return None
        return commits.describe_snapshot(snapshot)

    def _merge_files(self, rows: pa.Table, key: Sequence[str], end: int) -> CopyState | None:
        """The same by writing all files anew that have a row of the window."""
        commits = self._commits
        table = commits.require()
        # Also on the newest version: an old row would come back that was deleted since.
        commits.check_table(table)
        self._vectors.read()
        self._vectors.arrangement.check_values(rows)
        try:
            merge_files(table, rows, key, commits.make_properties(end))
        except CommitFailedError:
            return None
        except (DeltaError, OSError) as error:
            raise commits.translate(error) from error
        return commits.describe(table)
