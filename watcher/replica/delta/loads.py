"""Loads a Delta copy, chunk by chunk, by delta-rs."""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import DeltaError

from watcher.replica.copies import COPY_ON_WRITE, CopyState, Merging
from watcher.replica.cuts.modes import Mode
from watcher.replica.delta.commits import DeltaCommits
from watcher.replica.delta.copy_on_write import AFTER_COMMITS, SMALL_GROUPS
from watcher.replica.delta.log import LOAD
from watcher.replica.delta.merge_on_read import VectorTable
from watcher.replica.loads import CHUNK, Chunk, FirstError, name_chunk
from watcher.replica.row_versions import complete_batch, extend_schema
from watcher.replica.writing.compaction import FILE_BYTES


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
        """As ``TableCopy.load_chunk``."""
        schema = extend_schema(schema, self._mode)
        table = self._commits.open() or self._create(schema)
        self._commits.check_table(table)
        name = name_chunk()
        batches = self._commits.load.record(chunk, name)
        source = FirstError(complete_batch(each, self._mode, end) for each in batches)
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
                commit_properties=self._commits.make_properties(
                    LOAD if chunk.first else CHUNK, end, mark
                ),
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
