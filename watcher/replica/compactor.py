"""Compacts a Delta table between two windows: chooses files, writes them anew, and commits that.

A commit says of each file that it changes no rows. What merges have removed meanwhile is removed
from the new files by vectors of their own. Where others have changed the old files, what was
written is given up.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyroaring import BitMap

from watcher.model.log_events.copies import COMPACTION_LOST_RACE
from watcher.process.failpoints import failpoint
from watcher.replica.compaction import FILE_BYTES, CompactionPolicy, choose_files
from watcher.replica.copies import CompactionRun
from watcher.replica.deletion_vectors import VectorFile, VectorPlace
from watcher.replica.delta_actions import add_file, add_vector, keep_rows, remove_file
from watcher.replica.delta_features import allows_vectors
from watcher.replica.delta_snapshot import Action, LiveFile, Snapshot
from watcher.replica.file_rewrites import FileRewrite, Source
from watcher.replica.merge_on_read import VectorTable
from watcher.replica.new_files import NewFile

LOG = logging.getLogger("watcher.replica")
OPTIMIZE = "OPTIMIZE"
Rewrite = FileRewrite[LiveFile, VectorPlace]


class Compactor:
    """Compacts one table."""

    def __init__(self, table: VectorTable, policy: CompactionPolicy) -> None:
        self._table = table
        self._policy = policy
        self._rewrite: Rewrite | None = None
        self._steps: Iterator[tuple[NewFile, pa.Table]] = iter(())

    def run(self, snapshot: Snapshot, key: Sequence[str], whole: bool) -> CompactionRun:
        """Goes on, as far as the budget of a run allows, or with ``whole`` until the files that are
        chosen are written. ``snapshot`` is what ``VectorTable.read`` returned; ``key`` that of the
        index of keys, if there is one. Raises OSError, ReplicaError."""
        rewrite = self._rewrite or self._begin(snapshot)
        if rewrite is None:
            return CompactionRun()
        read, written = rewrite.read, rewrite.written
        try:
            done = self._write(rewrite, key, math.inf if whole else self._policy.bytes_a_run)
            run = CompactionRun(round(rewrite.read - read), rewrite.written - written, more=True)
            if not done:
                return run
            rewrite.check()
            failpoint("after-rewrite")
            committed = self._commit(snapshot, rewrite)
        except Exception:
            self.abandon()
            raise
        if not committed:
            COMPACTION_LOST_RACE.log(LOG, path=self._table.path)
            self.abandon()
            return replace(run, abandoned=True)
        self._end()
        more = bool(self._choose(snapshot))
        replaced = len(rewrite.sources)
        return replace(run, replaced=replaced, version=snapshot.version, more=more)

    def _write(self, rewrite: Rewrite, key: Sequence[str], budget: float) -> bool:
        """Writes for so many bytes of old files; returns whether all is written."""
        limit = rewrite.read + budget
        for new, rows in self._steps:
            if key:
                self._table.live.stage(new.path, new.rows - rows.num_rows, rows, key)
            if rewrite.read >= limit:
                return False
        return True

    def abandon(self) -> None:
        """Gives up what was written since the last commit."""
        rewrite = self._rewrite
        # First: a disk that is full lets nothing be closed, and what is not whole must not go on.
        self._end()
        if rewrite is not None:
            rewrite.abandon()

    def _choose(self, snapshot: Snapshot) -> Sequence[LiveFile]:
        return choose_files(snapshot.files.values(), self._policy, self._table.count)

    def _begin(self, snapshot: Snapshot) -> Rewrite | None:
        chosen = self._choose(snapshot)
        if not chosen:
            return None
        files, count = self._table.files, self._table.count
        sources = [Source(each, count(each), files.read_vector(each.vector)) for each in chosen]
        self._rewrite = FileRewrite(files, snapshot.schema, sources, FILE_BYTES)
        self._steps = self._rewrite.steps()
        return self._rewrite

    def _end(self) -> None:
        self._rewrite, self._steps = None, iter(())
        self._table.live.unstage()

    # The commit.

    def _commit(self, snapshot: Snapshot, rewrite: Rewrite) -> bool:
        """Puts the new files in the place of the old ones; returns whether it was done."""
        gone = self._find_gone(snapshot, rewrite)
        if gone is None:
            return False
        placed = rewrite.place(gone)
        if any(placed.values()) and not allows_vectors(snapshot):
            return False
        paths = [source.file.path for source in rewrite.sources]
        removed = [remove_file(snapshot.files[path]) for path in paths if path in snapshot.files]
        if not removed:
            return False
        added = self._add(rewrite, placed)
        failpoint("after-rewrite-files")
        actions = [keep_rows(action) for action in (*removed, *added)]
        if not self._table.commit(snapshot.version + 1, OPTIMIZE, actions, {}):
            return False
        failpoint("after-rewrite-commit")
        self._table.reader.advance(snapshot, snapshot.version + 1)
        self._table.live.settle_staged(snapshot)
        self._table.checkpoint(snapshot)
        return True

    def _find_gone(self, snapshot: Snapshot, rewrite: Rewrite) -> Mapping[str, BitMap] | None:
        """The rows of the old files that are gone now; None where some have come back."""
        gone = {}
        for source in rewrite.sources:
            path = source.file.path
            file = snapshot.files.get(path)
            if file is None:  # its rows are gone, or in other files
                gone[path] = BitMap(range(source.rows))
                continue
            gone[path] = self._table.files.read_vector(file.vector)
            if not source.gone <= gone[path]:
                return None
        return gone

    def _add(self, rewrite: Rewrite, gone: Mapping[str, BitMap]) -> Sequence[Action]:
        """Writes the vectors of the new files, as one file: the actions that add those that have
        rows."""
        vectors = VectorFile()
        actions: list[Action] = []
        for new in rewrite.new:
            action = add_file(new.path, new.size, new.statistics.to_json())
            if len(gone[new.path]) == new.rows:
                continue
            if gone[new.path]:
                place = vectors.add(gone[new.path])
                action = add_vector(LiveFile.from_action(action["add"]), place, new.rows)
            actions.append(action)
        if any("deletionVector" in action["add"] for action in actions):
            self._table.files.write(vectors.path, bytes(vectors.content))
        return actions
