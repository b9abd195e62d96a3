"""Merges into a Delta table that cost the rows that change: their old rows are removed by deletion
vectors, their new ones are a new file, and the log gets one entry.

The order is that of Delta: files first, then the entry, which is created only if there is none of
its number. A crash before that leaves files that no version has.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from numpy.typing import NDArray
from pyroaring import BitMap

from watcher.model.errors import FileWriteError, ReplicaError
from watcher.process.failpoints import failpoint
from watcher.replica.copies import DELETED_COLUMN, find_stamp
from watcher.replica.deletion_vectors import VectorFile, VectorPlace
from watcher.replica.delta_features import NEW, PROPERTY, enable_vectors
from watcher.replica.delta_files import TableFiles
from watcher.replica.delta_log import LOG as LOG_FOLDER
from watcher.replica.delta_snapshot import Action, LiveFile, Snapshot, SnapshotReader, name_entry
from watcher.replica.delta_stats import describe_rows, loosen, read_rows
from watcher.replica.key_hashes import Words, hash_keys
from watcher.replica.key_index import NEVER, RUN_ROWS_MAX, Entries, KeyIndex, contains
from watcher.replica.stored_files import create_new

LOG = logging.getLogger("watcher.replica")
GROUP_ROWS = 131_072
INDEX = "_keys"
CHECKPOINT_INTERVAL, COMMITS_A_CHECKPOINT = "delta.checkpointInterval", 100
LOG_CLEANUP = "delta.enableExpiredLogCleanup"
ENGINE = "spanner-watcher"
COMMIT = "txnId"
"""The name in ``commitInfo`` of what tells the commit of one writer from that of another."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a merge does: the rows that it adds, with their hashes and timestamps, and the rows of
    each file that go."""

    rows: pa.Table
    hashes: tuple[Words, Words]
    stamps: NDArray[np.int64]
    gone: Mapping[str, BitMap]


class VectorTable:
    """A Delta table whose rows this process replaces. It goes on from the state that it knows."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._files = TableFiles(path)
        self._reader = SnapshotReader(path)
        self._snapshot: Snapshot | None = None
        self._index: KeyIndex | None = None
        self._vectors: dict[str, tuple[VectorPlace | None, BitMap]] = {}
        """The vectors that were read or written, by the path of their data file."""

    def read(self) -> Snapshot:
        """The table as it is now."""
        if self._snapshot is None or not self._reader.is_current(self._snapshot):
            self._snapshot = self._reader.read()
        self._reader.advance(self._snapshot)
        return self._snapshot

    def create(self, schema: str) -> bool:
        """Makes an empty table, unless there is one; ``schema`` is Delta's JSON of it. Returns
        whether it was made."""
        format_ = {"provider": "parquet", "options": {}}
        metadata = {
            "id": str(uuid.uuid4()),
            "format": format_,
            "schemaString": schema,
            "partitionColumns": [],
            "createdTime": now_millis(),
            "configuration": {PROPERTY: "true"},
        }
        return self._commit(0, "CREATE TABLE", [{"protocol": NEW}, {"metaData": metadata}], {})

    def enable(self) -> bool:
        """Lets vectors be written. Returns whether nobody has committed meanwhile."""
        snapshot = self.read()
        return self._commit(snapshot.version + 1, "SET TBLPROPERTIES", enable_vectors(snapshot), {})

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
        snapshot = self._snapshot
        assert snapshot is not None, "read comes first"
        index = self._open_index(snapshot, key)
        self._follow(snapshot, index, key)
        plan = self._plan(snapshot, index, rows, key)
        if not plan.rows.num_rows and not plan.gone:
            return True
        number = index.take_number()
        added = self._write_rows(plan.rows)
        failpoint("after-replica-rows")
        actions = [{"txn": transaction}, *self._remove(snapshot, plan), *added]
        failpoint("after-replica-files")
        if not self._commit(snapshot.version + 1, "MERGE", actions, mark):
            return False
        failpoint("after-replica-commit")
        self._reader.advance(snapshot, snapshot.version + 1)
        try:
            for action in added:
                entries = Entries.of_rows(number, 0, plan.hashes, plan.stamps)
                index.add(action["add"]["path"], None, number, [entries])
            self._follow(snapshot, index, key, trusted=True)
        except (OSError, ReplicaError, FileWriteError) as error:
            LOG.warning("the index of the keys of %s is read again: %s", self._path, error)
            self._index = None
        self._checkpoint(snapshot)
        return True

    # Which rows go, and which come.

    def _plan(
        self, snapshot: Snapshot, index: KeyIndex, rows: pa.Table, key: Sequence[str]
    ) -> Plan:
        """A row is newer than those of its key, of which others may have added several: docs, rule
        4. Of a key that the copy does not have, every row is."""
        schema = snapshot.schema
        stamp = find_stamp(rows.column_names)
        hashes = hash_keys(take_columns(rows, schema, key, self._path), index.points)
        keys, there = self._find(index, hashes)
        stamps = to_micros(rows.column(stamp).combine_chunks())
        newest = np.full(rows.num_rows, NEVER)
        np.maximum.at(newest, keys, there.stamps)
        newer = (newest == NEVER) | (stamps > newest)
        kept = newer & ~rows.column(DELETED_COLUMN).to_numpy()
        chosen = take_columns(rows, schema, schema.names, self._path).filter(pa.array(kept))
        gone = self._group(index, there.take(newer[keys]))
        return Plan(chosen, (hashes[0][kept], hashes[1][kept]), stamps[kept], gone)

    def _find(
        self, index: KeyIndex, hashes: tuple[Words, Words]
    ) -> tuple[NDArray[np.int64], Entries]:
        """The rows of keys that are there, and for each the place of its key."""
        keys, found = index.find(hashes)
        files, live = found.files, np.ones(len(found), np.bool_)
        for number in np.unique(files):
            of_file = np.flatnonzero(files == number)
            gone = self._vectors[index.find_path(int(number))][1]
            live[of_file] = ~contains(gone, found.rows[of_file])
        return keys[live], found.take(live)

    def _group(self, index: KeyIndex, entries: Entries) -> Mapping[str, BitMap]:
        files = entries.files
        return {
            index.find_path(int(number)): BitMap(entries.rows[files == number])
            for number in np.unique(files)
        }

    # What is written.

    def _write_rows(self, rows: pa.Table) -> list[Action]:
        """Writes the rows that come as a file: the action that adds it, if there are any."""
        if not rows.num_rows:
            return []
        content = BytesIO()
        pq.write_table(rows, content, compression="snappy", row_group_size=GROUP_ROWS)
        path = f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
        self._files.write(PurePosixPath(path), content.getvalue())
        size = content.getbuffer().nbytes
        base = {"path": path, "partitionValues": {}, "size": size, "dataChange": True}
        return [{"add": base | {"modificationTime": now_millis(), "stats": describe_rows(rows)}}]

    def _remove(self, snapshot: Snapshot, plan: Plan) -> Iterator[Action]:
        """Writes the vectors of all files that lose rows, as one file: the actions that say so. A
        file that has no rows left is removed."""
        vectors = VectorFile()
        actions: list[Action] = []
        for path, rows in plan.gone.items():
            file = snapshot.files[path]
            gone = self._vectors[path][1] | rows
            count = self._count(file)
            actions.append(remove_file(file))
            if len(gone) < count:
                place = vectors.add(gone)
                self._vectors[path] = (place, gone)
                actions.append(add_vector(file, place, count))
        if any("add" in action for action in actions):
            self._files.write(vectors.path, bytes(vectors.content))
        return iter(actions)

    def _count(self, file: LiveFile) -> int:
        rows = read_rows(file.add.get("stats"))
        return self._files.count_rows(file) if rows is None else rows

    def _commit(
        self, version: int, operation: str, actions: Sequence[Action], mark: Mapping[str, str]
    ) -> bool:
        """Creates an entry of the log; returns whether it is this one. A store may say that there
        is one when its answer was lost, and the request came again."""
        commit = str(uuid.uuid4())
        info = {
            "timestamp": now_millis(),
            "operation": operation,
            "operationParameters": {},
            "isolationLevel": "Serializable",
            "isBlindAppend": False,
            "engineInfo": ENGINE,
            COMMIT: commit,
            **mark,
        }
        lines = [json.dumps(each) for each in [{"commitInfo": info}, *actions]]
        content = ("\n".join(lines) + "\n").encode()
        if create_new(self._path, f"{LOG_FOLDER}/{name_entry(version)}", content):
            return True
        there = self._reader.read_entry(version)
        return any(each.get("commitInfo", {}).get(COMMIT) == commit for each in there)

    def _checkpoint(self, snapshot: Snapshot) -> None:
        """Has delta-rs write a checkpoint now and then, and remove what is older than the log is
        kept for, as it does after commits of its own. Nothing depends on it."""
        interval = int(snapshot.properties.get(CHECKPOINT_INTERVAL, COMMITS_A_CHECKPOINT))
        if snapshot.version % interval:
            return
        try:
            table = DeltaTable(self._path)
            table.create_checkpoint()
            if snapshot.properties.get(LOG_CLEANUP) != "false":
                table.cleanup_metadata()
        except (DeltaError, OSError) as error:
            LOG.warning(
                "%s has no checkpoint at version %d: %s", self._path, snapshot.version, error
            )

    # The index follows the table.

    def _open_index(self, snapshot: Snapshot, key: Sequence[str]) -> KeyIndex:
        """The index, which is read or begun when it is first used, or for another key."""
        types = [(name, str(snapshot.schema.field(name).type)) for name in key]
        described = json.dumps([snapshot.metadata["id"], types])
        if self._index is None or self._index.key != described:
            self._index = KeyIndex(index_folder(self._path), described)
        return self._index

    def _follow(
        self, snapshot: Snapshot, index: KeyIndex, key: Sequence[str], trusted: bool = False
    ) -> None:
        """Makes the index that of a version. Files that it does not know are read, and those in
        which rows may have come back, unless the version is ``trusted``: written by this writer."""
        stale = index.files.keys() - snapshot.files.keys()
        index.forget(stale)
        changed = bool(stale)
        for path, file in snapshot.files.items():
            self._read_vector(file)
            known = index.files.get(path)
            if known is not None and known.vector == file.vector:
                continue
            changed = True
            if known is not None and (trusted or self._has_less(file, known.vector)):
                index.set_vector(path, file.vector)
            else:
                number = index.take_number()
                index.add(path, file.vector, number, self._read_keys(snapshot, file, number, key))
        self._vectors = {path: self._vectors[path] for path in snapshot.files}
        if changed:
            index.save({path: gone for path, (_, gone) in self._vectors.items()})

    def _read_vector(self, file: LiveFile) -> None:
        known = self._vectors.get(file.path)
        if known is None or known[0] != file.vector:
            self._vectors[file.path] = (file.vector, self._files.read_vector(file.vector))

    def _has_less(self, file: LiveFile, before: VectorPlace | None) -> bool:
        """Whether no row of a file has come back since a vector; what VACUUM has removed may have
        had any."""
        try:
            return self._files.read_vector(before) <= self._vectors[file.path][1]
        except (OSError, ReplicaError):
            return False

    def _read_keys(
        self, snapshot: Snapshot, file: LiveFile, number: int, key: Sequence[str]
    ) -> Iterator[Entries]:
        """The entries of all rows of a file, as many at a time as a run may have."""
        assert self._index is not None, "it was opened"
        schema = snapshot.schema
        stamp = find_stamp(schema.names)
        parts: list[Entries] = []
        for start, batch in self._files.iterate_rows(file, schema, [*key, stamp]):
            hashes = hash_keys(batch.select(list(range(len(key)))), self._index.points)
            parts.append(Entries.of_rows(number, start, hashes, to_micros(batch.column(len(key)))))
            if sum(map(len, parts)) > RUN_ROWS_MAX // 2:
                yield Entries.join(parts)
                parts = []
        if parts:
            yield Entries.join(parts)


def take_columns(rows: pa.Table, schema: pa.Schema, names: Sequence[str], path: str) -> pa.Table:
    """Columns of rows with the types of the table. Raises ReplicaError where it has others."""
    try:
        return rows.select(list(names)).cast(pa.schema([schema.field(name) for name in names]))
    except (KeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ReplicaError(f"{path} has other columns than the rows for it: {error}") from error


def to_micros(stamps: pa.Array) -> NDArray[np.int64]:
    """Commit timestamps as numbers; ``NEVER`` for NULL."""
    micros = stamps.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    return np.asarray(micros.fill_null(NEVER))


def remove_file(file: LiveFile) -> Action:
    """The action that removes a file as it is."""
    kept = {name: file.add[name] for name in REMOVED if name in file.add}
    more = {"deletionTimestamp": now_millis(), "dataChange": True, "extendedFileMetadata": True}
    return {"remove": kept | more}


REMOVED = ("path", "partitionValues", "size", "tags", "deletionVector")
"""What a ``remove`` has of an ``add``."""


def add_vector(file: LiveFile, place: VectorPlace, rows: int) -> Action:
    """The action that adds a file with another vector."""
    more = {
        "dataChange": True,
        "stats": loosen(file.add.get("stats"), rows),
        "deletionVector": place.to_action(),
    }
    return {"add": {**file.add, **more}}


def index_folder(path: str) -> Path:
    """Where the index of a copy is: in its folder, or, if that is in an object store, in the cache
    of this user."""
    if "://" not in path:
        return Path(path) / INDEX
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    name = hashlib.blake2b(path.encode(), digest_size=16).hexdigest()
    return Path(cache) / "spanner-watcher" / "keys" / name


def now_millis() -> int:
    """The time, as Delta's log has it."""
    return time.time_ns() // 1_000_000
