"""Merges into a Delta table that cost the rows that change: their old rows are removed by deletion
vectors, their new ones are a new file, and the log gets one entry.

The order is that of Delta: files first, then the entry, which is created only if there is none of
its number. A crash before that leaves files that no version has.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from numpy.typing import NDArray
from pyroaring import BitMap

from watcher.model.errors import ReplicaError
from watcher.process.failpoints import failpoint
from watcher.replica.copies import DELETED_COLUMN, find_stamp
from watcher.replica.deletion_vectors import RELATIVE, VectorFile, VectorPlace
from watcher.replica.delta_features import NEW, PROPERTY, enable_vectors
from watcher.replica.delta_files import TableFiles
from watcher.replica.delta_log import LOG as LOG_FOLDER
from watcher.replica.delta_log import name_entry, read_mark
from watcher.replica.delta_snapshot import Action, LiveFile, Snapshot, SnapshotReader
from watcher.replica.delta_stats import describe_rows, loosen, read_rows
from watcher.replica.key_hashes import Words
from watcher.replica.key_index import NEVER
from watcher.replica.live_rows import LiveRows, to_micros
from watcher.replica.stored_files import create_new

LOG = logging.getLogger("watcher.replica")
GROUP_ROWS = 131_072
CHECKPOINT_INTERVAL, COMMITS_A_CHECKPOINT = "delta.checkpointInterval", 100
MARGIN = 86_400_000_000
"""A day: clocks of machines, and how late a cut may name the version of a table that is idle."""
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
        self._live = LiveRows(path, self._files)
        self._removed: dict[PurePosixPath, int] = {}
        """Files of vectors that earlier versions have, and until when they were used."""
        self._walked = -1
        """Up to which version the log was read for them."""

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
        self._live.follow(snapshot, key)
        plan = self._plan(snapshot, rows, key)
        if not plan.rows.num_rows and not plan.gone:
            return True
        added = self._write_rows(plan.rows)
        failpoint("after-replica-rows")
        actions = [{"txn": transaction}, *self._remove(snapshot, plan), *added]
        failpoint("after-replica-files")
        if not self._commit(snapshot.version + 1, "MERGE", actions, mark):
            return False
        failpoint("after-replica-commit")
        self._reader.advance(snapshot, snapshot.version + 1)
        for action in added:
            self._live.add(action["add"]["path"], plan.hashes, plan.stamps)
        self._live.settle(snapshot)
        self._checkpoint(snapshot)
        return True

    def remove_before(self, at: int) -> None:
        """Removes files of vectors that no version has which was in effect at a timestamp or after
        it; VACUUM leaves them alone. A young file may be one that is about to be committed."""
        snapshot, limit = self.read(), at - MARGIN
        version = snapshot.version
        while version > self._walked and (actions := self._reader.read_entry(version)):
            when = read_time(actions)
            if when < limit:
                break
            for place in list_removed(actions):
                self._removed[place.path] = max(when, self._removed.get(place.path, 0))
            version -= 1
        self._walked = snapshot.version
        self._removed = {path: when for path, when in self._removed.items() if when >= limit}
        places = (file.vector for file in snapshot.files.values())
        live = {place.path for place in places if place is not None and place.kind == RELATIVE}
        self._files.remove_vectors(live | self._removed.keys(), limit)

    # Which rows go, and which come.

    def _plan(self, snapshot: Snapshot, rows: pa.Table, key: Sequence[str]) -> Plan:
        """A row is newer than those of its key, of which others may have added several: docs, rule
        4. Of a key that the copy does not have, every row is."""
        schema = snapshot.schema
        stamp = find_stamp(rows.column_names)
        hashes = self._live.hash(take_columns(rows, schema, key, self._path))
        keys, there = self._live.find(hashes)
        stamps = to_micros(rows.column(stamp).combine_chunks())
        newest = np.full(rows.num_rows, NEVER)
        np.maximum.at(newest, keys, there.stamps)
        newer = (newest == NEVER) | (stamps > newest)
        kept = newer & ~rows.column(DELETED_COLUMN).to_numpy()
        chosen = take_columns(rows, schema, schema.names, self._path).filter(pa.array(kept))
        gone = self._live.group(there.take(newer[keys]))
        return Plan(chosen, (hashes[0][kept], hashes[1][kept]), stamps[kept], gone)

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
            gone = self._live.find_gone(path) | rows
            count = self._count(file)
            actions.append(remove_file(file))
            if len(gone) < count:
                place = vectors.add(gone)
                self._live.set_gone(path, place, gone)
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


def take_columns(rows: pa.Table, schema: pa.Schema, names: Sequence[str], path: str) -> pa.Table:
    """Columns of rows with the types of the table. Raises ReplicaError where it has others."""
    try:
        return rows.select(list(names)).cast(pa.schema([schema.field(name) for name in names]))
    except (KeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ReplicaError(f"{path} has other columns than the rows for it: {error}") from error


def remove_file(file: LiveFile) -> Action:
    """The action that removes a file as it is."""
    kept = {name: file.add[name] for name in REMOVED if name in file.add}
    more = {"deletionTimestamp": now_millis(), "dataChange": True, "extendedFileMetadata": True}
    return {"remove": kept | more}


REMOVED = ("path", "partitionValues", "size", "tags", "deletionVector")
"""What a ``remove`` has of an ``add``."""


def list_removed(actions: Sequence[Action]) -> Iterator[VectorPlace]:
    """The vectors that the files of a commit had before it."""
    for action in actions:
        stored = action.get("remove", {}).get("deletionVector")
        if stored is not None and stored["storageType"] == RELATIVE:
            yield VectorPlace.from_action(stored)


def read_time(actions: Sequence[Action]) -> int:
    """When a commit was made, in microseconds: by its writer's clock, or, if later, its window's
    end."""
    mark = read_mark(actions) or {}
    info: Action = next((each["commitInfo"] for each in actions if "commitInfo" in each), {})
    return max(int(info.get("timestamp", 0)) * 1_000, int(mark.get("end", 0)))


def add_vector(file: LiveFile, place: VectorPlace, rows: int) -> Action:
    """The action that adds a file with another vector."""
    more = {
        "dataChange": True,
        "stats": loosen(file.add.get("stats"), rows),
        "deletionVector": place.to_action(),
    }
    return {"add": {**file.add, **more}}


def now_millis() -> int:
    """The time, as Delta's log has it."""
    return time.time_ns() // 1_000_000
