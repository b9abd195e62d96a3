"""Replaces rows of a Delta table in one entry of its log, whoever has written the table.

Where it has deletion vectors, these remove the rows; else files that have one are written anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyroaring import BitMap

from watcher.process.failpoints import failpoint
from watcher.replica.copies import NewValues, Replacement
from watcher.replica.delta.actions import remove_file
from watcher.replica.delta.change_feed import write_changes
from watcher.replica.delta.deletion_vectors import VectorDescriptor
from watcher.replica.delta.features import allows_vectors
from watcher.replica.delta.merge_on_read import VectorTable
from watcher.replica.delta.new_rows import add_new
from watcher.replica.delta.snapshot import Action, LiveFile, Snapshot
from watcher.replica.writing.file_rewrites import FileRewrite, Source, group_sources
from watcher.replica.writing.live_files import find_rows
from watcher.replica.writing.merge_plan import take_columns

OPERATION = "REPLACE ROWS"


def replace_rows(
    table: VectorTable,
    snapshot: Snapshot,
    replacement: Replacement,
    mark: Mapping[str, str],
    transaction: Mapping[str, Any],
) -> bool:
    """Replaces rows of the version that ``VectorTable.read`` has returned; returns whether nobody
    has committed meanwhile. What was written for nothing belongs to no version. Raises OSError,
    ReplicaError."""
    schema = snapshot.schema
    gone = find_rows(table.files, snapshot, replacement.keys.columns, replacement.keys.find)
    rows = take_columns(replacement.rows, schema, schema.names, table.path)
    if allows_vectors(snapshot):
        removed = list(table.write_vectors(snapshot, gone))
    else:
        removed = list(rewrite_files(table, snapshot, gone))
    went = {n: all_ - table.files.read_vector(snapshot.files[n].vector) for n, all_ in gone.items()}
    feed = write_changes(
        table.files, snapshot, went, rows, replacement.keys.columns, table.arrangement
    )
    added = (action for action, _ in table.write_rows(rows))
    actions = [{"txn": transaction}, *removed, *added, *feed]
    failpoint("after-repair-files")
    if not table.commit(snapshot.version + 1, OPERATION, actions, mark):
        return False
    failpoint("after-repair-commit")
    table.reader.advance(snapshot, snapshot.version + 1)
    return True


def rewrite_files(
    table: VectorTable,
    snapshot: Snapshot,
    gone: Mapping[str, BitMap],
    schema: pa.Schema | None = None,
    values: NewValues | None = None,
) -> Iterator[Action]:
    """Writes files anew without some rows: the actions that say so. ``schema``: with these columns,
    and these ``values`` in those that the files do not have."""
    sources = (
        Source(snapshot.files[path], table.count(snapshot.files[path]), rows)
        for path, rows in gone.items()
    )
    columns = schema or snapshot.schema
    for part in group_sources(sources):
        rewrite = FileRewrite[LiveFile, VectorDescriptor](
            table.files, columns, part, table.arrangement, values
        )
        rewrite.run()
        yield from (remove_file(source.file) for source in part)
        yield from (add_new(snapshot, new) for new in rewrite.new)
