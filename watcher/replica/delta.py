"""Copies as Delta tables, by delta-rs. What it commits is in docs/replica-protocol.md."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from deltalake import (
    CommitProperties,
    DeltaTable,
    Transaction,
    write_deltalake,
)
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from watcher.model.errors import CopyConflictError, ReplicaError
from watcher.model.log_events.copies import (
    DELETION_VECTORS_ENABLED,
    LOAD_PROGRESS_MISSING,
    MERGE_ON_READ_IMPOSSIBLE,
)
from watcher.replica.compaction import FILE_BYTES, CompactionPolicy
from watcher.replica.compactor import Compactor
from watcher.replica.copies import (
    COPY_ON_WRITE,
    MERGE_ON_READ,
    CompactionRun,
    CopyState,
    Merging,
    Needed,
    OpenTableCopy,
    OutsideCommit,
    Replacement,
    VersionRows,
)
from watcher.replica.cuts import FORMAT
from watcher.replica.delta_expiry import FileExpiry
from watcher.replica.delta_features import allows_vectors, list_obstacles
from watcher.replica.delta_log import LOAD, METADATA, USER_METADATA, DeltaLog
from watcher.replica.delta_merge import AFTER_COMMITS, SMALL_GROUPS, merge_files
from watcher.replica.delta_replacement import replace_rows
from watcher.replica.delta_snapshot import Snapshot, convert_schema
from watcher.replica.delta_versions import DeltaVersions
from watcher.replica.loads import CHUNK, Chunk, CopyLoad, FirstError, WholeTable, name_chunk
from watcher.replica.merge_on_read import VectorTable
from watcher.replica.stored_files import explain_store_error
from watcher.spanner.timestamps import format_timestamp

LOG = logging.getLogger("watcher.replica")
MERGES_MAX = 5
"""How often a merge is tried when somebody else has committed meanwhile."""


class DeltaCopy:
    """The ``TableCopy`` in a folder. Compactions by others are not conflicts."""

    def __init__(
        self,
        path: str,
        consumer: str,
        merging: Merging | None = None,
        policy: CompactionPolicy | None = None,
    ) -> None:
        """``merging``: how rows are merged; None: as the table allows it, and a new one is made for
        merge-on-read. ``policy``: how ``compact`` compacts; None: not at all, and VACUUM of data
        files is the owner's."""
        self._path = path
        self._consumer = consumer
        self._merging = merging
        self._vectors = VectorTable(path)
        self._versions = DeltaVersions(path)
        self._expiry = FileExpiry(self._vectors.files, self._vectors.reader)
        self._compactor = None if policy is None else Compactor(self._vectors, policy)
        self._warned: set[str] = set()
        self._application = f"spanner-watcher/{consumer}"
        self._log = DeltaLog(path, consumer)
        self._load = CopyLoad(path)
        self._known_end: int | None = None
        """The end of the newest commit that this writer has seen; None before it has looked."""

    def read_state(self) -> CopyState | None:
        """As ``TableCopy.read_state``; none where nothing says how far its load is."""
        table = self._open()
        self._known_end = 0 if table is None else self._read_end(table)
        if table is None:
            return None
        try:
            self._load.read(self._log.find_mark(table.version()))
        except FileNotFoundError:
            LOAD_PROGRESS_MISSING.log(LOG, path=self._path)
            return None
        return self._describe(table)

    def load(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], end: int) -> CopyState:
        """As ``TableCopy.load``."""
        return self.load_chunk(schema, WholeTable(batches), end)

    def load_chunk(self, schema: pa.Schema, chunk: Chunk, end: int) -> CopyState:
        """As ``TableCopy.load_chunk``."""
        table = self._open() or self._create(schema)
        self._check_known(table)
        name = name_chunk()
        source = FirstError(self._load.record(chunk, name))
        reader = pa.RecordBatchReader.from_batches(schema, iter(source))
        mark = {CHUNK: name} | ({"replaced": table.version()} if chunk.first else {})
        try:
            write_deltalake(
                table,
                reader,
                mode="overwrite" if chunk.first else "append",
                schema_mode="overwrite" if chunk.first else None,
                target_file_size=FILE_BYTES,
                writer_properties=SMALL_GROUPS,
                commit_properties=self._mark(LOAD if chunk.first else CHUNK, end, mark),
                post_commithook_properties=AFTER_COMMITS,
            )
        except (DeltaError, OSError) as error:
            if source.error is not None:
                raise source.error from error
            raise self._translate(error) from error
        self._known_end = end
        self._load.settle(chunk, name)
        table = self._require()
        self._check_known(table)
        return self._describe(table)

    def merge(self, rows: pa.Table, key: Sequence[str], end: int) -> CopyState:
        """As ``TableCopy.merge``."""
        for _ in range(MERGES_MAX):
            if self._uses_vectors():
                state = self._merge_rows(rows, key, end)
            else:
                state = self._merge_files(rows, key, end)
            if state is not None:
                self._known_end = state.end
                return state
        raise self._conflict(self._read_end(self._require()))

    def _uses_vectors(self) -> bool:
        """Whether rows are merged by deletion vectors. Raises ReplicaError where that is asked for,
        and the table cannot have it."""
        if self._merging == COPY_ON_WRITE:
            return False
        snapshot = self._vectors.read()
        allowed = allows_vectors(snapshot)
        reasons = list_obstacles(snapshot)
        if self._merging is None and not allowed:
            reasons = ["it was made for copy-on-write; --merge merge-on-read changes that"]
        if not reasons:
            return allowed or self._enable_vectors(snapshot)
        text = f"{self._path} cannot be merged on read: {'; '.join(reasons)}"
        if self._merging == MERGE_ON_READ:
            raise ReplicaError(f"{text}; remove that, or use --merge copy-on-write")
        self._warn(f"{text}; every merge rewrites the files that have a row of it")
        return False

    def _warn(self, text: str) -> None:
        """Says something once."""
        if text not in self._warned:
            MERGE_ON_READ_IMPOSSIBLE.log(LOG, detail=text)
            self._warned.add(text)

    def _enable_vectors(self, snapshot: Snapshot) -> bool:
        """Lets an existing table have vectors."""
        self._check_snapshot(snapshot)
        while not allows_vectors(self._vectors.read()):
            self._vectors.enable()
        DELETION_VECTORS_ENABLED.log(LOG, path=self._path)
        return True

    def _merge_rows(self, rows: pa.Table, key: Sequence[str], end: int) -> CopyState | None:
        """Merges on read: the copy's state; None where somebody else has committed meanwhile."""
        snapshot = self._vectors.read()
        self._check_snapshot(snapshot)
        mark = {METADATA: json.dumps(self._describe_commit("merge", end))}
        transaction = {"appId": self._application, "version": end}
        try:
            if not self._vectors.merge(rows, key, mark, transaction):
                return None
        except OSError as error:
            raise explain_store_error(self._path, error) from error
        stored = snapshot.transactions.get(self._application, 0)
        return CopyState(snapshot.version, stored, snapshot.schema, self._load.progress)

    def _merge_files(self, rows: pa.Table, key: Sequence[str], end: int) -> CopyState | None:
        """The same by writing all files anew that have a row of the window."""
        table = self._require()
        # Also on the newest version: an old row would come back that was deleted since.
        self._check_known(table)
        try:
            merge_files(table, rows, key, self._mark("merge", end, {}))
        except CommitFailedError:
            return None
        except (DeltaError, OSError) as error:
            raise self._translate(error) from error
        return self._describe(table)

    def list_outside(self, after: int | None, upto: int) -> Sequence[OutsideCommit]:
        """As ``StoredCopy.list_outside``."""
        return self._log.list_outside(after, upto)

    def find_end(self, version: int) -> int:
        """As ``StoredCopy.find_end``."""
        return self._log.find_end(version)

    def read_schema(self, version: int) -> pa.Schema:
        """As ``TableCopy.read_schema``."""
        return self._versions.read_schema(version)

    def scan(self, version: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """As ``TableCopy.scan``."""
        return self._versions.scan(version, columns)

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
        self._check_snapshot(snapshot)
        values = self._describe_commit(replacement.kind, end)
        # Spark reads what commits say of themselves from here, and so does this product.
        mark = {USER_METADATA: json.dumps({METADATA: values})}
        transaction = {"appId": self._application, "version": end}
        try:
            known = snapshot.version == replacement.version
            if not known or not replace_rows(
                self._vectors, snapshot, replacement, mark, transaction
            ):
                raise CopyConflictError(
                    f"somebody else has changed {self._path}, which was at version"
                    f" {replacement.version}: stop who writes there, and try again"
                )
        except OSError as error:
            raise explain_store_error(self._path, error) from error
        self._known_end = end
        return CopyState(snapshot.version, end, snapshot.schema, self._load.progress)

    def add_columns(self, schema: pa.Schema) -> CopyState | None:
        """As ``TableCopy.add_columns``."""
        for _ in range(MERGES_MAX):
            snapshot = self._vectors.read()
            end = self._check_snapshot(snapshot)
            if list_obstacles(snapshot):
                return None
            mark = {METADATA: json.dumps(self._describe_commit("columns", end))}
            if self._vectors.add_columns(DeltaSchema.from_arrow(schema).to_json(), mark):
                snapshot = self._vectors.read()
                return CopyState(snapshot.version, end, snapshot.schema, self._load.progress)
        raise self._conflict(self._read_end(self._require()))

    def takes_columns(self) -> bool:
        """As ``TableCopy.takes_columns``."""
        return not list_obstacles(self._vectors.read())

    def compact(self, key: Sequence[str], whole: bool = False) -> CompactionRun:
        """As ``TableCopy.compact``. Without a policy only the index of keys is made."""
        snapshot = self._vectors.read()
        self._check_snapshot(snapshot)
        reasons = list_obstacles(snapshot)
        on_read = not reasons and allows_vectors(snapshot) and self._merging != COPY_ON_WRITE
        try:
            if on_read and key:
                # So that the first merge after a load does not wait for it.
                self._vectors.live.follow(snapshot, key)
            run = CompactionRun()
            if self._compactor is not None and reasons:
                self._warn(f"{self._path} cannot be compacted: {'; '.join(reasons)}")
            elif self._compactor is not None:
                # A merge by copy-on-write writes files anew that are not finished.
                run = self._compactor.run(snapshot, key if on_read else (), whole or not on_read)
        except OSError as error:
            raise explain_store_error(self._path, error) from error
        vectors = [file.vector for file in snapshot.files.values()]
        deleted = sum(each.rows for each in vectors if each is not None)
        return replace(run, files=len(vectors), deleted=deleted)

    def remove_before(self, needed: Needed) -> None:
        """As ``StoredCopy.remove_before``. VACUUM of data files is the owner's where this product
        does not compact."""
        if self._open() is None:
            return
        try:
            self._expiry.remove(self._vectors.read(), needed, self._compactor is not None)
        except OSError as error:
            raise explain_store_error(self._path, error) from error

    def _mark(self, kind: str, end: int, more: Mapping[str, Any]) -> CommitProperties:
        """The window's end, for other writers and for people. Without the application transaction
        an overwrite would not conflict with a merge. ``replaced``: the version that a load has
        replaced; rows of another writer that it did not see are still there."""
        values = self._describe_commit(kind, end) | dict(more)
        return CommitProperties(
            custom_metadata={METADATA: json.dumps(values)},
            app_transactions=[Transaction(self._application, end)],
        )

    def _describe_commit(self, kind: str, end: int) -> dict[str, Any]:
        values = {"format": FORMAT, "consumer": self._consumer, "end": end, "kind": kind}
        return values | self._load.mark

    def _open(self) -> DeltaTable | None:
        try:
            return DeltaTable(self._path)
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            raise self._translate(error) from error

    def _create(self, schema: pa.Schema) -> DeltaTable:
        """An empty table, whose version the load then names: writing a table that should not exist
        looks for it before it writes, not when it commits."""
        if self._merging != COPY_ON_WRITE:
            self._vectors.create(DeltaSchema.from_arrow(schema).to_json())
            return self._require()
        try:
            return DeltaTable.create(self._path, schema, mode="error")
        except (DeltaError, OSError) as error:
            table = self._open()
            if table is None:
                raise self._translate(error) from error
            return table

    def _require(self) -> DeltaTable:
        table = self._open()
        if table is None:
            raise ReplicaError(f"{self._path} is not a Delta table any more: restart 'replicate'")
        return table

    def _read_end(self, table: DeltaTable) -> int:
        return table.transaction_version(self._application) or 0

    def _check_known(self, table: DeltaTable) -> None:
        """delta-rs does not refuse an application transaction that is older than the stored one."""
        self._check(self._read_end(table), table.version())

    def _check_snapshot(self, snapshot: Snapshot) -> int:
        """The same of a state that was read without delta-rs: its end."""
        end = snapshot.transactions.get(self._application, 0)
        self._check(end, snapshot.version)
        return end

    def _check(self, end: int, version: int) -> None:
        """Raises CopyConflictError where another instance has written since. Two chunks may have
        the same end."""
        known = self._known_end is None or end == self._known_end
        if known and self._load.progress is not None:
            known = self._load.is_newest(self._log.find_mark(version))
        if not known:
            raise self._conflict(end)

    def _describe(self, table: DeltaTable) -> CopyState:
        end = self._read_end(table)
        return CopyState(table.version(), end, convert_schema(table), self._load.progress)

    def _translate(self, error: Exception) -> Exception:
        """The error of a commit: a conflict is another writer's."""
        if isinstance(error, CommitFailedError):
            return self._conflict(self._read_end(self._require()))
        return explain_store_error(self._path, error)

    def _conflict(self, end: int) -> CopyConflictError:
        return CopyConflictError(
            f"another writer has changed {self._path}, which is at window end"
            f" {format_timestamp(end)} now: run one instance of consumer '{self._consumer}' at a"
            " time; the window is tried again"
        )


def open_delta_copies(
    folder: str,
    consumer: str,
    merging: Merging | None = None,
    policy: CompactionPolicy | None = None,
) -> OpenTableCopy:
    """The copies of a replica, each in the folder of its table's name."""
    base = folder.rstrip("/")
    return lambda table: DeltaCopy(f"{base}/{table}", consumer, merging, policy)
