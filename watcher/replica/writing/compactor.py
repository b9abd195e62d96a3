"""Compacts a table between two windows: chooses files, writes them anew, and commits that.

A commit says that it changes no rows. What merges have removed meanwhile is marked as gone in the
new files, too. Where others have changed the old files, what was
written is given up.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Generic, Protocol

import pyarrow as pa
from pyroaring import BitMap

from watcher.model.log_events.copies import COMPACTION_LOST_RACE
from watcher.process.failpoints import failpoint
from watcher.replica.copies import CompactionRun
from watcher.replica.writing.arranged_rows import Arrangement
from watcher.replica.writing.compaction import SMALL_SHARE, CompactionPolicy, choose_files
from watcher.replica.writing.file_rewrites import FileRewrite, RewrittenFiles, Source
from watcher.replica.writing.live_files import F, M, TableVersion
from watcher.replica.writing.live_rows import LiveRows
from watcher.replica.writing.new_files import NewFile

LOG = logging.getLogger("watcher.replica")


class CompactTable(Protocol[F, M]):
    """A table that can be compacted, as its writer knows it."""

    @property
    def path(self) -> str:
        """Where it is."""
        ...

    @property
    def files(self) -> RewrittenFiles[F, M]:
        """Its files."""
        ...

    @property
    def live(self) -> LiveRows[F, M]:
        """Its rows, and the index of keys."""
        ...

    @property
    def arrangement(self) -> Arrangement:
        """How its rows become files."""
        ...

    def count(self, file: F) -> int:
        """The rows of a file, those that are gone included."""
        ...

    def replace_files(
        self, rewrite: FileRewrite[F, M], gone: Mapping[str, BitMap]
    ) -> TableVersion[F] | None:
        """Puts new files in the place of those of a rewrite that the version still has, in a commit
        that changes no rows; ``gone`` are rows of the new files that are gone. The version after
        it; None where it cannot have that, or somebody else has committed meanwhile."""
        ...


class Compactor(Generic[F, M]):
    """Compacts one table."""

    def __init__(self, table: CompactTable[F, M], policy: CompactionPolicy) -> None:
        self._table = table
        self._policy = policy
        self._rewrite: FileRewrite[F, M] | None = None
        self._steps: Iterator[tuple[NewFile, pa.Table]] = iter(())
        self._full: set[str] = set()
        """Files that were followed by another one: to write them anew would make no fewer."""

    def run(self, version: TableVersion[F], key: Sequence[str], whole: bool) -> CompactionRun:
        """Goes on, as far as the budget of a run allows, or with ``whole`` until the files that are
        chosen are written. ``version`` is the newest one that the table has read; ``key`` that of
        the index of keys, if there is one. Raises OSError, ReplicaError."""
        rewrite = self._rewrite or self._begin(version)
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
            after = self._commit(version, rewrite)
        except Exception:
            self.abandon()
            raise
        if after is None:
            COMPACTION_LOST_RACE.log(LOG, path=self._table.path)
            self.abandon()
            return replace(run, abandoned=True)
        self._end()
        self._full = {each.path for each in rewrite.new[:-1]} | self._full & after.files.keys()
        more = bool(self._choose(after))
        replaced = len(rewrite.sources)
        return replace(run, replaced=replaced, more=more)

    def _write(self, rewrite: FileRewrite[F, M], key: Sequence[str], budget: float) -> bool:
        """Writes for so many bytes of old files; returns whether all is written."""
        limit = rewrite.read + budget
        for new, rows in self._steps:
            if key:
                self._table.live.stage(new.path, new.rows - rows.num_rows, rows, key)
            if rewrite.read >= limit:
                return False
        return True

    @property
    def unfinished(self) -> Sequence[str]:
        """The files of a rewrite that is under way, which no version has yet."""
        return [] if self._rewrite is None else [new.path for new in self._rewrite.new]

    def abandon(self) -> None:
        """Gives up what was written since the last commit."""
        rewrite = self._rewrite
        # First: a disk that is full lets nothing be closed, and what is not whole must not go on.
        self._end()
        if rewrite is not None:
            rewrite.abandon()

    def _choose(self, version: TableVersion[F]) -> Sequence[F]:
        small = self._table.arrangement.layout.file_bytes // SMALL_SHARE
        files = version.files.values()
        return choose_files(files, self._policy, self._table.count, small, self._full)

    def _begin(self, version: TableVersion[F]) -> FileRewrite[F, M] | None:
        chosen = self._choose(version)
        if not chosen:
            return None
        files, count = self._table.files, self._table.count
        sources = [Source(each, count(each), files.read_vector(each.vector)) for each in chosen]
        self._rewrite = FileRewrite[F, M](files, version.schema, sources, self._table.arrangement)
        self._steps = self._rewrite.steps()
        return self._rewrite

    def _end(self) -> None:
        self._rewrite, self._steps = None, iter(())
        self._table.live.unstage()

    # The commit.

    def _commit(
        self, version: TableVersion[F], rewrite: FileRewrite[F, M]
    ) -> TableVersion[F] | None:
        """Puts the new files in the place of the old ones: the version after it; None where it
        cannot be done."""
        gone = self._find_gone(version, rewrite)
        if gone is None:
            return None
        after = self._table.replace_files(rewrite, rewrite.map_rows(gone))
        if after is not None:
            self._table.live.settle_staged(after)
        return after

    def _find_gone(
        self, version: TableVersion[F], rewrite: FileRewrite[F, M]
    ) -> Mapping[str, BitMap] | None:
        """The rows of the old files that are gone now; None where some have come back."""
        gone = {}
        for source in rewrite.sources:
            path = source.file.path
            file = version.files.get(path)
            if file is None:  # its rows are gone, or in other files
                gone[path] = BitMap(range(source.rows))
                continue
            gone[path] = self._table.files.read_vector(file.vector)
            if not source.gone <= gone[path]:
                return None
        return gone
