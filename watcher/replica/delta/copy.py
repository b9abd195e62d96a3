"""Copies as Delta tables, by delta-rs. What it commits is in docs/replica-protocol.md."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from watcher.model.log_events.copies import (
    LOAD_PROGRESS_MISSING,
)
from watcher.replica.copies import (
    COPY_ON_WRITE,
    CompactionRun,
    CopyState,
    Merging,
    Needed,
    NewColumns,
    OpenTableCopy,
    OutsideCommit,
    Replacement,
    VersionRows,
)
from watcher.replica.cuts.modes import LATEST, Mode, check_mode, find_mode
from watcher.replica.delta.columns import change_columns, takes_columns
from watcher.replica.delta.commits import DeltaCommits
from watcher.replica.delta.expiry import FileExpiry
from watcher.replica.delta.features import allows_vectors, list_obstacles
from watcher.replica.delta.feed_columns import check_feed_columns
from watcher.replica.delta.loads import DeltaLoads
from watcher.replica.delta.log import METADATA, USER_METADATA
from watcher.replica.delta.merge_on_read import VectorTable
from watcher.replica.delta.merges import DeltaMerges
from watcher.replica.delta.replacement import replace_rows
from watcher.replica.delta.snapshot import Snapshot, convert_schema, describe_run
from watcher.replica.delta.versions import DeltaVersions
from watcher.replica.fences import TRIES_MAX
from watcher.replica.layout import PLAIN, Layout, Layouts, check_partitions, find_layout
from watcher.replica.loads import Chunk, WholeTable
from watcher.replica.stores.stored_files import explain_copy
from watcher.replica.writing.compaction import CompactionPolicy
from watcher.replica.writing.compactor import Compactor

LOG = logging.getLogger("watcher.replica")


class DeltaCopy:
    """The ``TableCopy`` in a folder. Compactions by others are not conflicts."""

    def __init__(
        self,
        path: str,
        consumer: str,
        merging: Merging | None = None,
        policy: CompactionPolicy | None = None,
        mode: Mode | None = None,
        feed: bool = False,
        layout: Layout | None = None,
    ) -> None:
        """``merging``: how rows are merged; None: as the table allows it, and a new one is made for
        merge-on-read. ``policy``: how ``compact`` compacts; None: not at all, and VACUUM of data
        files is the owner's. ``mode``: what the copy keeps that is made or written; None: as it
        was made. ``feed``: it is to have Delta's change data feed. ``layout``: how its rows lie in
        its files; None: as it was made."""
        self._path = path
        self._mode = mode
        self._feed = feed
        self._merging = merging
        self._layout = layout
        self._vectors = VectorTable(path, layout or PLAIN)
        self._versions = DeltaVersions(path)
        self._expiry = FileExpiry(self._vectors.files, self._vectors.reader)
        self._compactor = None if policy is None else Compactor(self._vectors, policy)
        self._commits = DeltaCommits(path, consumer)
        self._loads = DeltaLoads(self._commits, self._vectors, merging, mode or LATEST, feed)
        self._merges = DeltaMerges(self._commits, self._vectors, merging, feed)

    def read_state(self) -> CopyState | None:
        """As ``TableCopy.read_state``; none where nothing says how far its load is. Raises
        ConfigurationError where the copy is of another mode, or cannot have the feed."""
        table = self._commits.open()
        self._commits.fence.known = 0 if table is None else self._commits.read_end(table)
        if table is None:
            return None
        if self._mode is not None:
            check_mode(self._path, convert_schema(table).names, self._mode)
        if self._feed:
            check_feed_columns(self._path, convert_schema(table).names)
        if self._layout is not None:
            there = table.metadata().partition_columns
            check_partitions(self._path, there, self._layout.partition_by)
        try:
            self._commits.load.read(self._commits.log.find_mark(table.version()))
        except FileNotFoundError:
            LOAD_PROGRESS_MISSING.log(LOG, path=self._path)
            return None
        return self._commits.describe(table)

    def load(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], end: int) -> CopyState:
        """As ``TableCopy.load``."""
        return self.load_chunk(schema, WholeTable(batches), end)

    def load_chunk(self, schema: pa.Schema, chunk: Chunk, end: int) -> CopyState:
        """As ``TableCopy.load_chunk``."""
        return self._loads.load(schema, chunk, end)

    def merge(self, rows: pa.Table, key: Sequence[str], end: int) -> CopyState:
        """As ``TableCopy.merge``."""
        return self._merges.merge(rows, key, end)

    def list_outside(self, after: int | None, upto: int) -> Sequence[OutsideCommit]:
        """As ``StoredCopy.list_outside``."""
        return self._commits.log.list_outside(after, upto)

    def find_end(self, version: int) -> int:
        """As ``StoredCopy.find_end``."""
        return self._commits.log.find_end(version)

    def read_schema(self, version: int) -> pa.Schema:
        """As ``TableCopy.read_schema``."""
        return self._versions.read_schema(version)

    def scan(self, version: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """As ``TableCopy.scan``."""
        return self._versions.scan(version, columns)

    def read_all_columns(self, version: int) -> pa.Schema:
        """As ``KeepingCopy.read_all_columns``."""
        return self._versions.read_all_columns(version)

    def scan_all(self, version: int) -> Iterator[pa.RecordBatch]:
        """As ``KeepingCopy.scan_all``."""
        return self._versions.scan_all(version, self._versions.read_all_columns(version).names)

    def find_loaded(self, version: int) -> int:
        """As ``KeepingCopy.find_loaded``."""
        return self._commits.find_loaded(self._versions.open(version))

    def compare_versions(
        self, before: int, after: int, names: Sequence[str]
    ) -> Iterator[VersionRows]:
        """As ``ComparableCopy.compare_versions``."""
        return self._versions.compare(before, after, names)

    def explain_fixed(self) -> str:
        """As ``ReplacingCopy.explain_fixed``."""
        reasons = list_obstacles(self._vectors.read())
        return f"its table asks its writers for more: {'; '.join(reasons)}" if reasons else ""

    def replace_rows(self, replacement: Replacement, end: int) -> CopyState:
        """As ``ReplacingCopy.replace_rows``."""
        snapshot = self._vectors.read()
        self._commits.check_snapshot(snapshot)
        replaced = snapshot.version == replacement.version and self._replace(
            snapshot, replacement, end
        )
        if not replaced:
            raise self._commits.fence.refuse_version(replacement.version)
        self._commits.fence.known = end
        return self._commits.describe_snapshot(snapshot)

    def _replace(self, snapshot: Snapshot, replacement: Replacement, end: int) -> bool:
        """Returns whether nobody has committed meanwhile."""
        if find_mode(snapshot.schema.names) != LATEST:
            return self._merges.replace(replacement, end) is not None
        # Spark reads what commits say of themselves from here, and so does this product.
        values = self._commits.describe_commit(replacement.kind, end)
        mark = {USER_METADATA: json.dumps({METADATA: values})}
        transaction = self._commits.make_transaction(end)
        with explain_copy(self._path):
            return replace_rows(self._vectors, snapshot, replacement, mark, transaction)

    def takes_columns(
        self, added: Sequence[str], gone: Sequence[str], with_values: bool = False
    ) -> bool:
        """As ``EvolvingCopy.takes_columns``."""
        return takes_columns(self._vectors.read(), added, gone, with_values)

    def change_columns(self, columns: NewColumns) -> CopyState | None:
        """As ``EvolvingCopy.change_columns``."""
        for _ in range(TRIES_MAX):
            snapshot = self._vectors.read()
            end = self._commits.check_snapshot(snapshot)
            if list_obstacles(snapshot):
                return None
            mark = {METADATA: json.dumps(self._commits.describe_commit("columns", end))}
            with explain_copy(self._path):
                if change_columns(self._vectors, snapshot, columns, mark):
                    return self._commits.describe_snapshot(self._vectors.read())
        raise self._commits.make_conflict()

    def compact(self, key: Sequence[str], whole: bool = False) -> CompactionRun:
        """As ``TableCopy.compact``. Without a policy only the index of keys is made."""
        snapshot = self._vectors.read()
        self._commits.check_snapshot(snapshot)
        reasons = list_obstacles(snapshot)
        on_read = not reasons and allows_vectors(snapshot) and self._merging != COPY_ON_WRITE
        run = CompactionRun()
        with explain_copy(self._path):
            if on_read and key:
                # So that the first merge after a load does not wait for it.
                self._vectors.live.follow(snapshot, key)
            if self._compactor is not None and reasons:
                self._merges.warn(f"{self._path} cannot be compacted: {'; '.join(reasons)}")
            elif self._compactor is not None:
                # A merge by copy-on-write writes files anew that are not finished.
                run = self._compactor.run(snapshot, key if on_read else (), whole or not on_read)
        return describe_run(run, snapshot)

    def remove_before(self, needed: Needed) -> None:
        """As ``StoredCopy.remove_before``. VACUUM of data files is the owner's where this product
        does not compact."""
        if self._commits.open() is None:
            return
        with explain_copy(self._path):
            unfinished = None if self._compactor is None else self._compactor.unfinished
            self._expiry.remove(self._vectors.read(), needed, unfinished)


def open_delta_copies(
    folder: str,
    consumer: str,
    merging: Merging | None = None,
    policy: CompactionPolicy | None = None,
    mode: Mode | None = None,
    feed: bool = False,
    layouts: Layouts | None = None,
) -> OpenTableCopy:
    """The copies of a replica, each in the folder of its table's name."""
    base = folder.rstrip("/")
    return lambda table: DeltaCopy(
        f"{base}/{table}",
        consumer,
        merging,
        policy,
        mode,
        feed,
        None if layouts is None else find_layout(layouts, table),
    )
