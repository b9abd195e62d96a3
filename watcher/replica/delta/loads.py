"""Loads a Delta copy, chunk by chunk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
from deltalake import Schema as DeltaSchema

from watcher.model.errors import ReplicaError
from watcher.replica.copies import COPY_ON_WRITE, CopyState, Merging, describe_key
from watcher.replica.cuts.modes import Mode
from watcher.replica.delta.commits import DeltaCommits
from watcher.replica.delta.features import list_demands
from watcher.replica.delta.log import LOAD, METADATA
from watcher.replica.delta.merge_on_read import VectorTable
from watcher.replica.delta.snapshot import Snapshot
from watcher.replica.loads import CHUNK, Chunk, FirstError, name_chunk
from watcher.replica.row_versions import complete_batch, extend_schema
from watcher.replica.stores.stored_files import explain_copy
from watcher.replica.writing.new_files import NewFiles


class DeltaLoads:
    """Of one table. ``merging``: how rows are to be merged into a table that is made here;
    ``mode``: what it is to keep; ``feed``: it is to have the change data feed."""

    def __init__(
        self,
        commits: DeltaCommits,
        vectors: VectorTable,
        merging: Merging | None,
        mode: Mode,
        feed: bool = False,
    ) -> None:
        self._feed = feed
        self._commits = commits
        self._vectors = vectors
        self._merging = merging
        self._mode = mode

    def load(self, schema: pa.Schema, chunk: Chunk, end: int) -> CopyState:
        """As ``TableCopy.load_chunk``. Rows are read once: what others commit meanwhile is replaced
        by a first chunk, too, and kept by the others."""
        schema, commits, name = extend_schema(schema, self._mode), self._commits, name_chunk()
        commits.fence.known = commits.check_snapshot(self._open(schema))
        batches = commits.load.record(chunk, name)
        rows = FirstError(complete_batch(each, self._mode, end) for each in batches)
        columns = schema if chunk.first else None
        try:
            with explain_copy(commits.path):
                new = self._vectors.write_files(rows, columns)
                key = describe_key(chunk.key)
                state = commits.retry(lambda: self._commit(new, columns, key, name, end))
        except ReplicaError:
            if rows.error is not None:
                raise rows.error from None
            raise
        commits.fence.known = end
        commits.load.settle(chunk.progress, name)
        return replace(state, progress=chunk.progress)

    def _commit(
        self, new: NewFiles, columns: pa.Schema | None, key: Mapping[str, str], name: str, end: int
    ) -> CopyState | None:
        """Commits files of a chunk: the copy's state; None where somebody else has committed
        meanwhile. ``key``: the properties that tell it."""
        commits, snapshot = self._commits, self._vectors.read()
        commits.check_snapshot(snapshot)
        kind, mark = (CHUNK, {}) if columns is None else (LOAD, {"replaced": snapshot.version})
        described = commits.describe_commit(kind, end) | {CHUNK: name, **mark}
        said, transactions = {METADATA: json.dumps(described)}, commits.list_transactions(kind, end)
        if not self._vectors.add_files(new, columns, said, transactions, key):
            return None
        return commits.describe_snapshot(snapshot)

    def _open(self, schema: pa.Schema) -> Snapshot:
        """The table, whose version the load then names; an empty one where there is none. Raises
        ReplicaError where it asks for what is not written here."""
        if self._commits.open() is None:
            on_read = self._merging != COPY_ON_WRITE
            self._vectors.create(DeltaSchema.from_arrow(schema).to_json(), self._feed, on_read)
        snapshot = self._vectors.read()
        if demands := list_demands(snapshot):
            raise ReplicaError(
                f"{self._commits.path} cannot be loaded: its table asks its writers for more:"
                f" {'; '.join(demands)}; remove that, or use another folder"
            )
        return snapshot
