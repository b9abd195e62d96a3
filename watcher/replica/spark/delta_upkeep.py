"""Compaction and retention of Delta tables that Spark writes, by the driver, as without Spark.

OPTIMIZE leaves a file alone that is the only one of its bin, however many of its rows are deleted;
REORG has no budget, and VACUUM knows no cuts.
"""

from __future__ import annotations

import logging

from watcher.model.log_events.copies import COPY_NOT_COMPACTED
from watcher.replica.copies import CompactionRun, Needed
from watcher.replica.delta.expiry import FileExpiry
from watcher.replica.delta.features import list_obstacles
from watcher.replica.delta.merge_on_read import VectorTable
from watcher.replica.delta.snapshot import describe_run
from watcher.replica.stores.stored_files import explain_copy
from watcher.replica.writing.compaction import CompactionPolicy
from watcher.replica.writing.compactor import Compactor

LOG = logging.getLogger("watcher.replica")


class DeltaUpkeep:
    """The ``CopyUpkeep`` of the table in a folder."""

    def __init__(self, path: str, policy: CompactionPolicy) -> None:
        self._path = path
        self._table = VectorTable(path)
        self._compactor = Compactor(self._table, policy)
        self._expiry = FileExpiry(self._table.files, self._table.reader)
        self._is_refused = False

    def compact(self, whole: bool) -> CompactionRun:
        """As ``CompactedCopy.compact``."""
        with explain_copy(self._path):
            snapshot = self._table.read()
            if reasons := list_obstacles(snapshot):
                self._refuse("; ".join(reasons))
                return CompactionRun()
            run = self._compactor.run(snapshot, (), whole)
            return describe_run(run, self._table.read())

    def remove_before(self, needed: Needed) -> None:
        """As ``StoredCopy.remove_before``."""
        with explain_copy(self._path):
            self._expiry.remove(self._table.read(), needed, self._compactor.unfinished)

    def _refuse(self, reasons: str) -> None:
        """Says once what the table asks of its writers."""
        if not self._is_refused:
            COPY_NOT_COMPACTED.log(LOG, table=self._path, error=reasons)
            self._is_refused = True
