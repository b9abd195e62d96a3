"""Loads a Delta copy, chunk by chunk, by delta-rs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import DeltaError

from watcher.model.errors import ReplicaError
from watcher.replica.copies import COPY_ON_WRITE, CopyState, Merging
from watcher.replica.cuts.modes import Mode
from watcher.replica.delta.commits import DeltaCommits
from watcher.replica.delta.copy_on_write import AFTER_COMMITS, SMALL_GROUPS
from watcher.replica.delta.log import LOAD, METADATA
from watcher.replica.delta.merge_on_read import VectorTable
from watcher.replica.layout import PLAIN, Layout
from watcher.replica.loads import CHUNK, Chunk, FirstError, name_chunk
from watcher.replica.row_versions import complete_batch, extend_schema
from watcher.replica.stores.stored_files import explain_copy


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
        layout: Layout = PLAIN,
    ) -> None:
        self._feed = feed
        self._layout = layout
        self._commits = commits
        self._vectors = vectors
        self._merging = merging
        self._mode = mode

    def load(self, schema: pa.Schema, chunk: Chunk, end: int) -> CopyState:
        """As ``TableCopy.load_chunk``."""
        schema = extend_schema(schema, self._mode)
        table = self._commits.open() or self._create(schema)
        self._commits.check_table(table)
        name = name_chunk()
        batches = self._commits.load.record(chunk, name)
        source = FirstError(complete_batch(each, self._mode, end) for each in batches)
        reader = pa.RecordBatchReader.from_batches(schema, iter(source))
        mark = {CHUNK: name} | ({"replaced": table.version()} if chunk.first else {})
        kind = LOAD if chunk.first else CHUNK
        if self._layout.is_arranged:
            return self._load_arranged(schema, chunk, source, end, kind, mark)
        try:
            write_deltalake(
                table,
                reader,
                mode="overwrite" if chunk.first else "append",
                schema_mode="overwrite" if chunk.first else None,
                target_file_size=self._layout.file_bytes,
                writer_properties=SMALL_GROUPS,
                commit_properties=self._commits.make_properties(kind, end, mark),
                post_commithook_properties=AFTER_COMMITS,
            )
        except (DeltaError, OSError) as error:
            if source.error is not None:
                raise source.error from error
            raise self._commits.translate(error) from error
        self._commits.fence.known = end
        self._commits.load.settle(chunk.progress, name)
        table = self._commits.require()
        self._commits.check_table(table)
        return self._commits.describe(table)

    def _load_arranged(
        self, schema: pa.Schema, chunk: Chunk, rows: FirstError, end: int, kind: str,
        mark: Mapping[str, Any],
    ) -> CopyState:  # fmt: skip
        """Loads rows in their layout, which delta-rs does not write."""
        commits, snapshot = self._commits, self._vectors.read()
        commits.check_snapshot(snapshot)
        said = {METADATA: json.dumps(commits.describe_commit(kind, end) | dict(mark))}
        columns = schema if chunk.first else None
        try:
            with explain_copy(commits.path):
                done = self._vectors.load(rows, columns, said, commits.list_transactions(kind, end))
        except ReplicaError:
            if rows.error is not None:
                raise rows.error from None
            raise
        if not done:
            raise commits.make_conflict()
        commits.fence.known = end
        commits.load.settle(chunk.progress, mark[CHUNK])
        return commits.describe_snapshot(snapshot)

    def _create(self, schema: pa.Schema) -> DeltaTable:
        """An empty table, whose version the load then names: writing a table that should not exist
        looks for it before it writes, not when it commits."""
        if self._merging != COPY_ON_WRITE:
            self._vectors.create(DeltaSchema.from_arrow(schema).to_json(), self._feed)
            return self._commits.require()
        try:
            return DeltaTable.create(self._commits.path, schema, mode="error")
        except (DeltaError, OSError) as error:
            table = self._commits.open()
            if table is None:
                raise self._commits.translate(error) from error
            return table
