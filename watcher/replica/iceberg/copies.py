"""Copies as Iceberg tables that this process writes. What it commits is in
docs/replica-protocol.md."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from watcher.model.errors import ReplicaError
from watcher.model.log_events.copies import COPY_RENAMED, LOAD_PROGRESS_MISSING
from watcher.replica.copies import (
    COPY_ON_WRITE,
    MERGE_ON_READ,
    CompactionRun,
    CopyState,
    Merging,
    Needed,
    NewColumns,
    OpenCopy,
    OpenTableCopy,
    Replacement,
    describe_key,
)
from watcher.replica.cuts.cut import CONSUMER, END, KIND, PREFIX
from watcher.replica.cuts.modes import LATEST, Mode, check_mode, find_mode
from watcher.replica.fences import Fence
from watcher.replica.iceberg.catalog import TableCatalog, has_catalog, open_catalog
from watcher.replica.iceberg.expiry import (
    SNAPSHOTS_MAX,
    SNAPSHOTS_SLACK,
    expire_snapshots,
    remove_files,
)
from watcher.replica.iceberg.folder_tables import FolderTables
from watcher.replica.iceberg.lineage import LOAD
from watcher.replica.iceberg.names import LOADED, MERGE_MODE, name_copy
from watcher.replica.iceberg.partitions import list_partitions, list_sources
from watcher.replica.iceberg.schemas import evolve_schema, list_columns
from watcher.replica.iceberg.stored_copy import (
    IcebergCopy,
    find_newest,
    open_folder,
    open_read,
    read_marks,
)
from watcher.replica.iceberg.table import PositionTable
from watcher.replica.iceberg.versions import IcebergVersion
from watcher.replica.layout import Layout, Layouts, check_partitions, find_layout
from watcher.replica.loads import CHUNK, Chunk, CopyLoad, FirstError, WholeTable, name_chunk
from watcher.replica.row_versions import (
    complete_batch,
    extend_schema,
    make_changes,
)
from watcher.replica.stores.places import is_namespace
from watcher.replica.stores.stored_files import explain_copy
from watcher.replica.writing.compaction import CompactionPolicy
from watcher.replica.writing.compactor import Compactor

LOG = logging.getLogger("watcher.replica")


class IcebergTableCopy(IcebergCopy):
    """The ``TableCopy`` in a catalog. Compactions by others are not conflicts. It is merged on
    read. A version is the end of a window: other columns come with the merge of one."""

    def __init__(
        self,
        catalog: TableCatalog,
        table: str,
        consumer: str,
        policy: CompactionPolicy | None = None,
        layout: Layout | None = None,
        mode: Mode | None = None,
    ) -> None:
        """``policy``: how ``compact`` compacts; None: not at all, and the removal of snapshots and
        files is the owner's. ``layout``: how its rows lie in its files; None: as it was made.
        ``mode``: what the copy keeps that is made or written; None: as it was made."""
        self._mode = mode
        self._layout = layout
        self._table = PositionTable(catalog, table, layout)
        self._policy = policy
        self._compactor = None if policy is None else Compactor(self._table, policy)
        super().__init__(self._table.path, consumer, self._table.open)
        self._name = table
        self._columns: NewColumns | None = None
        """Those that the next merge gives the table."""
        self._load = CopyLoad(self._path)
        self._fence = Fence(self._path, consumer, self._load)

    def read_state(self) -> CopyState | None:
        """As ``TableCopy.read_state``; none where nothing says how far its load is. Raises
        ConfigurationError where the copy is of another mode."""
        self._columns = None
        version = self._table.read()
        if version is not None and self._mode is not None:
            check_mode(self._path, version.schema.names, self._mode)
        if version is not None and self._layout is not None:
            check_partitions(self._path, list_partitions(version.table), self._layout.partition_by)
        end = 0 if version is None else self._read_end(version)
        self._fence.known = end
        if version is None or not end:
            return None
        try:
            self._load.read(self._find_mark(version))
        except FileNotFoundError:
            LOAD_PROGRESS_MISSING.log(LOG, path=self._path)
            return None
        return self._describe(version)

    def load(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], end: int) -> CopyState:
        """As ``TableCopy.load``."""
        return self.load_chunk(schema, WholeTable(batches), end)

    def load_chunk(self, schema: pa.Schema, chunk: Chunk, end: int) -> CopyState:
        """As ``TableCopy.load_chunk``."""
        self._columns = None
        mode = self._mode or LATEST
        schema = extend_schema(schema, mode)
        version = self._table.read() or self._create(schema)
        self._check(version)
        name = name_chunk()
        mark = self._describe_commit(LOAD if chunk.first else CHUNK, end) | {PREFIX + CHUNK: name}
        batches = self._load.record(chunk, name)
        source = FirstError(complete_batch(each, mode, end) for each in batches)
        try:
            with explain_copy(self._path):
                columns = schema if chunk.first else None
                properties = {LOADED: str(end)} | (describe_key(chunk.key) if chunk.first else {})
                done = self._table.load(version, source, columns, mark, properties)
        except ReplicaError:
            if source.error is not None:
                raise source.error from None
            raise
        if not done:
            raise self._fence.refuse(self._read_newest_end())
        self._fence.known = end
        self._load.settle(chunk.progress, name)
        return self._describe(self._check(self._require()))

    def merge(self, rows: pa.Table, key: Sequence[str], end: int) -> CopyState:
        """As ``TableCopy.merge``."""
        state = self._fence.retry(lambda: self._try_merge(rows, key, end), self._read_newest_end)
        self._columns = None
        self._fence.known = state.end
        return state

    def takes_columns(
        self,
        added: Sequence[str],  # noqa: ARG002 (its ID is new)
        gone: Sequence[str],
        with_values: bool = False,
    ) -> bool:
        """As ``EvolvingCopy.takes_columns``."""
        version = self._table.read()
        if version is None or self._load.progress is not None:
            return False
        if with_values and find_mode(version.schema.names) != LATEST:
            return False
        return not list_sources(version.table) & set(gone)

    def change_columns(self, columns: NewColumns) -> CopyState | None:
        """As ``EvolvingCopy.change_columns``."""
        version = self._check(self._require())
        fresh = evolve_schema(version.table, columns)
        if columns.merged:
            self._columns = columns
            return replace(self._describe(version), schema=list_columns(fresh))
        mark = self._describe_commit("columns", columns.end)
        with explain_copy(self._path):
            if not self._table.change_columns(version, fresh, mark, columns.values):
                raise self._fence.refuse(self._read_newest_end())
        self._fence.known = columns.end
        return self._describe(self._require())

    def _try_merge(self, rows: pa.Table, key: Sequence[str], end: int) -> CopyState | None:
        """Returns None where somebody else has committed meanwhile."""
        version, mark = self._check(self._require()), self._describe_commit("merge", end)
        columns = self._columns
        fresh = None if columns is None else evolve_schema(version.table, columns)
        values = None if columns is None else columns.values
        with explain_copy(self._path):
            if not self._table.merge(version, rows, key, mark, fresh, values):
                return None
        return self._describe(self._require())

    def explain_fixed(self) -> str:
        """As ``ReplacingCopy.explain_fixed``: ``read_state`` has refused what is not known."""
        return ""

    def replace_rows(self, replacement: Replacement, end: int) -> CopyState:
        """As ``ReplacingCopy.replace_rows``."""
        version = self._check(self._require())
        mark = self._describe_commit(replacement.kind, end)
        keeps = find_mode(version.schema.names) != LATEST
        known = self._read_end(version) == replacement.version
        with explain_copy(self._path):
            replace_rows = self._replace_kept if keeps else self._table.replace_rows
            if not known or not replace_rows(version, replacement, mark):
                raise self._fence.refuse_version(replacement.version)
        self._fence.known = end
        return self._describe(self._require())

    def _replace_kept(
        self, version: IcebergVersion, replacement: Replacement, mark: Mapping[str, str]
    ) -> bool:
        """The same in a copy that keeps more than the latest rows: what comes has changed at the
        window's end, and what only goes was deleted then."""
        keys = replacement.keys
        there = self.scan(self._read_end(version), [*keys.columns])
        gone = [batch.filter(pa.array(keys.find(batch))) for batch in there]
        rows = make_changes(replacement.rows, gone, int(mark[END]))
        return self._table.merge(version, rows, keys.columns, mark)

    def compact(self, key: Sequence[str], whole: bool = False) -> CompactionRun:
        """As ``TableCopy.compact``. Without a policy only the index of keys is made."""
        version = self._check(self._require())
        run = CompactionRun()
        with explain_copy(self._path):
            if key:
                # So that the first merge after a load does not wait for it.
                self._table.live.follow(version, key)
            if self._compactor is not None and self._policy is not None:
                run = self._compactor.run(version, key, whole)
                self._tidy(self._policy, key)
        files = self._require().files.values()
        gone = (each.vector.rows for each in files if each.vector is not None)
        return replace(run, files=len(files), deleted=sum(gone))

    def _tidy(self, policy: CompactionPolicy, key: Sequence[str]) -> None:
        """Puts small files of deletes and manifests together, and removes snapshots where there
        are too many."""
        after = self._table.tidy(self._check(self._require()), policy.small_files)
        if after is not None and key:
            self._table.live.settle(after)
        table = self._require().table
        if len(table.metadata.snapshots) > SNAPSHOTS_MAX + SNAPSHOTS_SLACK:
            expire_snapshots(table, self._consumer, Needed(0))

    def remove_before(self, needed: Needed) -> None:
        """As ``StoredCopy.remove_before``. Snapshots and files are the owner's where this product
        does not compact."""
        version = self._table.read()
        if version is None or self._compactor is None:
            return
        with explain_copy(self._path):
            expire_snapshots(version.table, self._consumer, needed)
            remove_files(self._check(self._require()).table, self._compactor.unfinished)

    def _create(self, schema: pa.Schema) -> IcebergVersion:
        if name_copy(self._name) != self._name:
            COPY_RENAMED.log(LOG, table=self._name, copy=name_copy(self._name))
        return self._table.create(schema)

    def _require(self) -> IcebergVersion:
        version = self._table.read()
        if version is None:
            raise ReplicaError(
                f"{self._path} is not an Iceberg table any more: restart 'replicate'"
            )
        return version

    def _check(self, version: IcebergVersion) -> IcebergVersion:
        """Raises CopyConflictError where another instance has written since."""
        self._fence.check(self._read_end(version), lambda: self._find_mark(version))
        return version

    def _read_newest_end(self) -> int:
        return self._read_end(self._require())

    def _read_end(self, version: IcebergVersion) -> int:
        newest = find_newest(version.table, self._consumer)
        return 0 if newest is None else newest.end

    def _find_mark(self, version: IcebergVersion) -> Mapping[str, str] | None:
        newest = find_newest(version.table, self._consumer)
        return None if newest is None else read_marks(version.table, newest.id)

    def _describe(self, version: IcebergVersion) -> CopyState:
        end = self._read_end(version)
        return CopyState(end, end, list_columns(version.table.schema()), self._load.progress)

    def _describe_commit(self, kind: str, end: int) -> dict[str, str]:
        values = {CONSUMER: self._consumer, END: str(end), KIND: kind}
        return values | {PREFIX + name: value for name, value in self._load.mark.items()}


class SparkWrittenCopy(IcebergCopy):
    """A copy that Spark has written in a folder of this machine: this process can replace rows of
    it."""

    def __init__(self, folder: str, table: str, consumer: str) -> None:
        tables = FolderTables(folder)
        self._written = IcebergTableCopy(tables, table, consumer)
        self._load_written = partial(tables.load, table)
        path = f"{folder}/{name_copy(table)}"
        super().__init__(path, consumer, partial(open_folder, path))

    def read_state(self) -> CopyState | None:
        """As ``StoredCopy.read_state``."""
        return None if self._load_written() is None else super().read_state()

    def explain_fixed(self) -> str:
        """As ``ReplacingCopy.explain_fixed``."""
        try:
            state = self._written.read_state()
        except ReplicaError as error:
            return str(error)
        if state is None or state.progress is not None:
            return "its load is not finished: let 'replicate' finish it"
        if self._open().properties.get(MERGE_MODE) != MERGE_ON_READ:
            return (
                f"its table is merged by {COPY_ON_WRITE}, and a repair would write position deletes"
            )
        return ""

    def replace_rows(self, replacement: Replacement, end: int) -> CopyState:
        """As ``ReplacingCopy.replace_rows``."""
        return self._written.replace_rows(replacement, end)


def open_iceberg_copies(folder: str, consumer: str) -> OpenCopy:
    """The copies of a replica, to read them: of this process, also in a namespace, or of Spark,
    each in a folder of its own: ``name_copy``."""
    base = folder.rstrip("/")
    if is_namespace(folder) or has_catalog(base):
        return open_written_copies(base, consumer)
    if "://" in base:
        return lambda table: open_read(f"{base}/{name_copy(table)}", consumer)
    return lambda table: SparkWrittenCopy(base, table, consumer)


def open_written_copies(
    folder: str,
    consumer: str,
    merging: Merging | None = None,  # noqa: ARG001 (there is no other)
    policy: CompactionPolicy | None = None,
    mode: Mode | None = None,
    layouts: Layouts | None = None,
) -> OpenTableCopy:
    """The copies of a replica, to write them."""
    catalog = open_catalog(folder.rstrip("/"))
    return lambda table: IcebergTableCopy(
        catalog,
        table,
        consumer,
        policy,
        None if layouts is None else find_layout(layouts, table),
        mode,
    )
