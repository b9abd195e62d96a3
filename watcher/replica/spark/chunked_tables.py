"""Tables of Spark that are loaded in chunks, whatever their format: docs/replica-protocol.md."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from watcher.model.log_events.copies import LOAD_PROGRESS_MISSING
from watcher.replica.copies import CopyState, NewColumns, is_dropped, make_conflict
from watcher.replica.cuts.modes import LATEST, find_mode
from watcher.replica.layout import Layout, check_kept
from watcher.replica.loads import CHUNK, CopyLoad, name_chunk
from watcher.replica.spark.frame_values import FrameValues
from watcher.replica.spark.frames import WHOLE, FrameChunk, FramePlace, SparkTable
from watcher.replica.spark.kept_rows import complete_frame

LOG = logging.getLogger("watcher.replica")


@dataclass(frozen=True, slots=True)
class ChunkCommit:
    """What the commit of a chunk says. ``name`` is its ID, ``on`` that of the chunk which its
    writer knows as the newest; ``number``: how many chunks the load had before."""

    end: int
    first: bool
    name: str
    on: str
    number: int


class ChunkedTable(SparkTable):
    """What these tables have in common. ``folder``: that of the copy. A writer that was taken over
    may append a chunk all the same: each one names the chunk that its writer knew, and where these
    are no chain, the table is loaded from the beginning."""

    takes_chunks = True

    def __init__(
        self, spark: SparkSession, name: str, place: FramePlace, layout: Layout | None, folder: str
    ) -> None:
        super().__init__(spark, name, place, layout)
        self._folder = folder
        self._load = CopyLoad(folder)
        self._known: CopyState | None = None

    @abstractmethod
    def _read_stored(self) -> CopyState | None:
        """The copy as it is, apart from its load."""

    @abstractmethod
    def _find_mark(self, version: int) -> Mapping[str, Any] | None:
        """What the newest commit by this consumer up to a version says of itself."""

    @abstractmethod
    def _is_chained(self, version: int) -> bool:
        """Whether each commit of the load that is under way knew the one before it."""

    @abstractmethod
    def _write_chunk(
        self, rows: DataFrame, before: CopyState | None, commit: ChunkCommit
    ) -> tuple[CopyState, int]:
        """Commits the rows of a chunk: the copy's state, and how many rows."""

    @abstractmethod
    def _commit_columns(
        self, before: CopyState, columns: NewColumns, values: FrameValues | None
    ) -> CopyState:
        """Changes the columns of the copy, as ``change_columns``."""

    def read_state(self) -> CopyState | None:
        """As ``StoredCopy.read_state``; none where nothing says how far its load is."""
        self._known = None
        before = self._read_stored()
        if before is None:
            return None
        try:
            self._load.read(self._find_mark(before.version))
            is_known = self._load.progress is None or self._is_chained(before.version)
        except FileNotFoundError:
            is_known = False
        if not is_known:
            LOAD_PROGRESS_MISSING.log(LOG, path=self._folder)
            return None
        self._known = replace(before, progress=self._load.progress)
        return self._known

    def takes_columns(
        self,
        added: Sequence[str],  # noqa: ARG002 (no file has them)
        gone: Sequence[str],  # noqa: ARG002 (formats say which cannot go)
        with_values: bool = False,
    ) -> bool:
        """As ``EvolvingCopy.takes_columns``. What deleted rows and earlier versions would have is
        nowhere."""
        if self._load.progress is not None:
            return False
        return not with_values or find_mode(self._spark.table(self._name).columns) == LATEST

    def change_columns(
        self, columns: NewColumns, values: FrameValues | None = None
    ) -> CopyState | None:
        """As ``EvolvingFrameCopy.change_columns``."""
        known = self._known
        before = self.read_state()
        if before is None or known is None or before.end != known.end:
            self._known = None
            raise make_conflict(self._folder, self._consumer, columns.end)
        self._known = self._commit_columns(before, columns, values)
        return self._known

    def load_frame(
        self, rows: DataFrame, end: int, chunk: FrameChunk = WHOLE
    ) -> tuple[CopyState, int]:
        """As ``FrameCopy.load_frame``."""
        known, mark = self._known, self._load.mark
        before = self.read_state() or self._read_stored()
        if not chunk.first and not (
            known and before and (known.end, mark) == (before.end, self._load.mark)
        ):
            self._known = None
            raise make_conflict(self._folder, self._consumer, end)
        if chunk.first and before is not None and before.end >= end:
            return before, 0
        rows = complete_frame(rows, self._mode or LATEST, end)
        check_kept(self._layout, rows.columns, self._folder)
        # A window has one transaction for its merge, and one for each chunk.
        number = 0 if self._load.progress is None or chunk.first else self._load.progress.chunks
        commit = ChunkCommit(end, chunk.first, name_chunk(), self._load.mark.get(CHUNK, ""), number)
        self._load.note(chunk.progress, commit.name)
        state, count = self._write_chunk(rows, before, commit)
        self._load.settle(chunk.progress, commit.name)
        self._known = replace(state, progress=chunk.progress)
        return self._known, count


def list_lost(stored: pa.Schema, columns: NewColumns) -> list[str]:
    """The columns of a copy that its table has lost since."""
    wanted = columns.schema.names
    return [each.name for each in stored if each.name not in wanted and not is_dropped(each)]
