"""Merges into a Delta table that cost the rows that change: their old rows are removed by deletion
vectors, their new ones are a new file, and the log gets one entry.

The order is that of Delta: files first, then the entry, which is created only if there is none of
its number. A crash before that leaves files that no version has.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import DeltaError
from numpy.typing import NDArray
from pyroaring import BitMap

from watcher.model.log_events.copies import CHECKPOINT_NOT_WRITTEN
from watcher.process.failpoints import failpoint
from watcher.replica.delta.actions import (
    add_vector,
    keep_rows,
    now_millis,
    remove_file,
)
from watcher.replica.delta.change_feed import enable_feed, write_changes
from watcher.replica.delta.deletion_vectors import VectorDescriptor, VectorFile
from watcher.replica.delta.features import NEW, OLD, PROPERTY, allows_vectors, enable_vectors
from watcher.replica.delta.files import TableFiles
from watcher.replica.delta.log import GONE, name_entry
from watcher.replica.delta.log import LOG as LOG_FOLDER
from watcher.replica.delta.new_rows import add_new, write_rows
from watcher.replica.delta.partitions import make_arrangement
from watcher.replica.delta.snapshot import Action, LiveFile, Snapshot, SnapshotReader
from watcher.replica.layout import PLAIN, Layout, check_kept
from watcher.replica.stores.stored_files import create_new
from watcher.replica.writing.arranged_rows import Arrangement
from watcher.replica.writing.file_rewrites import FileRewrite
from watcher.replica.writing.kept_rows import plan_rows
from watcher.replica.writing.live_rows import LiveRows
from watcher.replica.writing.merge_plan import cast_rows
from watcher.replica.writing.new_files import NewFiles
from watcher.replica.writing.statistics import COMPACT

LOG = logging.getLogger("watcher.replica")
CHECKPOINT_INTERVAL, COMMITS_A_CHECKPOINT = "delta.checkpointInterval", 20
ENGINE = "spanner-watcher"
OPTIMIZE = "OPTIMIZE"
COMMIT = "txnId"
"""The name in ``commitInfo`` of what tells the commit of one writer from that of another."""


def render_entry(
    operation: str, actions: Sequence[Action], mark: Mapping[str, str], asked: Mapping[str, str]
) -> bytes:
    """An entry of the log, a line an action."""
    info = {
        "timestamp": now_millis(),
        "operation": operation,
        "operationParameters": dict(asked),
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "engineInfo": ENGINE,
        **mark,
    }
    lines = [json.dumps(each, separators=COMPACT) for each in ({"commitInfo": info}, *actions)]
    return ("\n".join(lines) + "\n").encode()


class VectorTable:
    """A Delta table whose rows this process replaces. It goes on from the state that it knows."""

    def __init__(self, path: str, layout: Layout = PLAIN) -> None:
        self.path = path
        self._layout = layout
        self.files = TableFiles(path)
        self.reader = SnapshotReader(path)
        self._snapshot: Snapshot | None = None
        self.live = LiveRows[LiveFile, VectorDescriptor](
            path, self.files, VectorDescriptor.from_stored
        )

    def read(self) -> Snapshot:
        """The table as it is now."""
        if self._snapshot is None or not self.reader.is_current(self._snapshot):
            self._snapshot = self.reader.read()
        self.reader.advance(self._snapshot)
        return self._snapshot

    @property
    def arrangement(self) -> Arrangement:
        """As ``CompactTable.arrangement``, of the version that ``read`` has returned."""
        return make_arrangement(self._require(), self._layout, self.path)

    def _require(self) -> Snapshot:
        assert self._snapshot is not None, "read comes first"
        return self._snapshot

    def create(self, schema: str, feed: bool = False, on_read: bool = True) -> bool:
        """Makes an empty table, unless there is one; ``schema`` is Delta's JSON of it; ``feed``:
        with the change data feed; ``on_read``: rows are merged by vectors. Returns whether it was
        made."""
        format_ = {"provider": "parquet", "options": {}}
        metadata = {
            "id": str(uuid.uuid4()),
            "format": format_,
            "schemaString": schema,
            "partitionColumns": list(self._layout.partition_by),
            "createdTime": now_millis(),
            "configuration": {PROPERTY: "true"} if on_read else {},
        }
        protocol = NEW if on_read else OLD
        actions: list[Action] = [{"protocol": protocol}, {"metaData": metadata}]
        return self.commit(0, "CREATE TABLE", enable_feed(actions) if feed else actions, {})

    def enable(self, feed: bool = False) -> bool:
        """Lets vectors be written, and the change data feed. Returns whether nobody has committed
        meanwhile."""
        snapshot = self.read()
        actions = enable_vectors(snapshot)
        chosen = enable_feed(actions) if feed else actions
        return self.commit(snapshot.version + 1, "SET TBLPROPERTIES", chosen, {})

    def merge(
        self,
        rows: pa.Table,
        key: Sequence[str],
        mark: Mapping[str, str],
        transaction: Mapping[str, Any],
    ) -> bool:
        """Merges rows into the version that ``read`` has returned, as ``TableCopy.merge``, in one
        commit, or in none if nothing changes. ``mark`` goes into ``commitInfo``. Returns whether
        it was done; not if somebody else has committed meanwhile."""
        snapshot = self._require()
        self.live.follow(snapshot, key)
        schema = snapshot.schema
        plan = plan_rows(self.live, self.files, snapshot, schema, rows, key, self.path)
        if plan.is_empty:
            return True
        written = self.write_rows(plan.rows)
        added = [action for action, _ in written]
        feed = write_changes(self.files, snapshot, plan.gone, plan.rows, key, self.arrangement)
        failpoint("after-replica-rows")
        gone = {path: self.live.find_gone(path) | rows for path, rows in plan.gone.items()}
        removed = self.write_vectors(snapshot, gone)
        for action in removed:
            self._note_vector(action, gone)
        actions = [{"txn": transaction}, *removed, *added, *feed]
        failpoint("after-replica-files")
        if not self.commit(snapshot.version + 1, "MERGE", actions, mark):
            return False
        failpoint("after-replica-commit")
        self.reader.advance(snapshot, snapshot.version + 1)
        for action, numbers in written:
            hashes = plan.hashes[0][numbers], plan.hashes[1][numbers]
            self.live.add(action["add"]["path"], hashes, plan.stamps[numbers])
        self.live.settle(snapshot)
        self.checkpoint(snapshot)
        return True

    # What is written.

    def write_files(self, rows: Iterable[pa.RecordBatch], columns: pa.Schema | None) -> NewFiles:
        """Writes rows as files that no version has; ``columns`` as in ``add_files``."""
        schema, arrangement = self._require().schema, self.arrangement
        if columns is not None:
            schema = pa.schema(DeltaSchema.from_arrow(columns).to_arrow())
            check_kept(arrangement.layout, columns.names, self.path)
        new = arrangement.write(self.files, schema, cast_rows(rows, schema, self.path))
        failpoint("after-replica-files")
        return new

    def add_files(
        self,
        new: NewFiles,
        columns: pa.Schema | None,
        mark: Mapping[str, str],
        transactions: Sequence[Action],
        properties: Mapping[str, str] = MappingProxyType({}),
    ) -> bool:
        """Adds files to the version that ``read`` has returned; with ``columns`` in the place of
        all that it has, with these columns, and properties, from then on. Returns whether nobody
        has committed meanwhile."""
        snapshot, actions = self._require(), list(transactions)
        if columns is not None:
            text = DeltaSchema.from_arrow(columns).to_json()
            kept = {name: value for name, value in snapshot.properties.items() if name != GONE}
            set_ = {"configuration": {**kept, **properties}}
            actions.append({"metaData": {**snapshot.metadata, "schemaString": text, **set_}})
            actions += map(remove_file, snapshot.files.values())
        actions += (add_new(snapshot, file) for file in new.listed)
        asked = {
            "mode": "Append" if columns is None else "Overwrite",
            "partitionBy": json.dumps(snapshot.metadata["partitionColumns"]),
        }
        if not self.commit(snapshot.version + 1, "WRITE", actions, mark, asked):
            return False
        failpoint("after-replica-commit")
        self.reader.advance(snapshot, snapshot.version + 1)
        self.checkpoint(snapshot)
        return True

    def write_rows(self, rows: pa.Table) -> list[tuple[Action, NDArray[np.int64]]]:
        """As the function of the name, for the version that ``read`` has returned."""
        return write_rows(self.files, self._require(), self.arrangement, rows)

    def write_vectors(self, snapshot: Snapshot, gone: Mapping[str, BitMap]) -> list[Action]:
        """Writes the vectors of all files that lose rows, as one file: the actions that say so. A
        file that has no rows left is removed. ``gone``: all rows of a file that are not there."""
        vectors = VectorFile()
        actions: list[Action] = []
        for path, rows in gone.items():
            file = snapshot.files[path]
            count = self.count(file)
            actions.append(remove_file(file))
            if len(rows) < count:
                actions.append(add_vector(file, vectors.add(rows), count))
        if any("add" in action for action in actions):
            self.files.write(vectors.path, bytes(vectors.content))
        return actions

    def _note_vector(self, action: Action, gone: Mapping[str, BitMap]) -> None:
        """Keeps a vector that was written: it need not be read again."""
        file = LiveFile.from_action(action["add"]) if "add" in action else None
        if file is not None and file.vector is not None:
            self.live.set_gone(file.path, file.vector, gone[file.path])

    def replace_files(
        self, rewrite: FileRewrite[LiveFile, VectorDescriptor], gone: Mapping[str, BitMap]
    ) -> Snapshot | None:
        """As ``CompactTable.replace_files``, of the version that ``read`` has returned."""
        snapshot = self._require()
        if any(gone.values()) and not allows_vectors(snapshot):
            return None
        paths = [source.file.path for source in rewrite.sources]
        removed = [remove_file(snapshot.files[path]) for path in paths if path in snapshot.files]
        if not removed:
            return None
        added = self._add_rewritten(rewrite, gone)
        failpoint("after-rewrite-files")
        actions = [keep_rows(action) for action in (*removed, *added)]
        if not self.commit(snapshot.version + 1, OPTIMIZE, actions, {}):
            return None
        failpoint("after-rewrite-commit")
        self.reader.advance(snapshot, snapshot.version + 1)
        self.checkpoint(snapshot)
        return snapshot

    def _add_rewritten(
        self, rewrite: FileRewrite[LiveFile, VectorDescriptor], gone: Mapping[str, BitMap]
    ) -> Sequence[Action]:
        """Writes the vectors of the new files, as one file: the actions that add those that have
        rows."""
        vectors = VectorFile()
        actions: list[Action] = []
        for new in rewrite.new:
            action = add_new(self._require(), new)
            if len(gone[new.path]) == new.rows:
                continue
            if gone[new.path]:
                vector = vectors.add(gone[new.path])
                action = add_vector(LiveFile.from_action(action["add"]), vector, new.rows)
            actions.append(action)
        if any("deletionVector" in action["add"] for action in actions):
            self.files.write(vectors.path, bytes(vectors.content))
        return actions

    def count(self, file: LiveFile) -> int:
        """The rows of a file, those that are gone included."""
        return self.files.count_rows(file) if file.rows is None else file.rows

    def commit(
        self,
        version: int,
        operation: str,
        actions: Sequence[Action],
        mark: Mapping[str, str],
        asked: Mapping[str, str] = MappingProxyType({}),
    ) -> bool:
        """Creates an entry of the log; returns whether it is this one. A store may say that there
        is one when its answer was lost, and the request came again. ``asked``: the parameters of
        the operation, as DESCRIBE HISTORY shows them."""
        commit = str(uuid.uuid4())
        content = render_entry(operation, actions, {COMMIT: commit, **mark}, asked)
        if create_new(self.path, f"{LOG_FOLDER}/{name_entry(version)}", content):
            return True
        there = self.reader.read_entry(version)
        return any(each.get("commitInfo", {}).get(COMMIT) == commit for each in there)

    def checkpoint(self, snapshot: Snapshot) -> None:
        """Has delta-rs write a checkpoint now and then, as it does after its own commits. Nothing
        depends on it."""
        interval = int(snapshot.properties.get(CHECKPOINT_INTERVAL, COMMITS_A_CHECKPOINT))
        if snapshot.version % interval:
            return
        try:
            DeltaTable(self.path).create_checkpoint()
        except (DeltaError, OSError) as error:
            CHECKPOINT_NOT_WRITTEN.log(LOG, path=self.path, version=snapshot.version, error=error)
