"""The versions of a Delta table, read: their columns, their rows, and in which rows two differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from watcher.model.errors import ReplicaError
from watcher.replica.copies import VersionRows
from watcher.replica.cuts.modes import ENDS, LATEST, find_mode
from watcher.replica.delta.files import TableFiles
from watcher.replica.delta.snapshot import (
    VECTORS,
    SnapshotReader,
    convert_schema,
)
from watcher.replica.row_versions import keep_current, strip_schema
from watcher.replica.stores.stored_files import READ_OPTIONS, scan_dataset
from watcher.replica.writing.live_files import compare_versions


class DeltaVersions:
    """Of one table."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._files = TableFiles(path)

    def read_schema(self, version: int) -> pa.Schema:
        """As ``StoredCopy.read_schema``."""
        return strip_schema(self.read_all_columns(version))

    def read_all_columns(self, version: int) -> pa.Schema:
        """The columns of a version, with those of its mode."""
        return convert_schema(self.open(version))

    def scan(self, version: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """As ``StoredCopy.scan``: the rows that the table has at the version."""
        schema = self.read_all_columns(version)
        names = columns if columns is not None else strip_schema(schema).names
        mode = find_mode(schema.names)
        if mode == LATEST:
            yield from self.scan_all(version, names)
            return
        for batch in self.scan_all(version, [*names, ENDS[mode]]):
            yield keep_current(batch, mode).select(list(names))

    def scan_all(self, version: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows of a version, deleted ones and earlier versions of rows, too."""
        table = self.open(version)
        try:
            if VECTORS in (table.protocol().reader_features or ()):
                snapshot = SnapshotReader(self._path).read(version)
                yield from self._files.scan(snapshot, names)
            else:
                dataset = table.to_pyarrow_dataset(parquet_read_options=READ_OPTIONS)
                yield from scan_dataset(dataset, names)
        except (DeltaError, OSError) as error:
            raise self._unreadable(version, error) from error

    def compare(self, before: int, after: int, names: Sequence[str]) -> Iterator[VersionRows]:
        """As ``ComparableCopy.compare_versions``."""
        reader = SnapshotReader(self._path)
        try:
            old, new = reader.read(before), reader.read(after)
            mode = find_mode(new.schema.names)
            read = names if mode == LATEST else [*names, ENDS[mode]]
            for rows in compare_versions(self._files, old, new, new.schema, read):
                there = rows.batch if mode == LATEST else keep_current(rows.batch, mode)
                yield VersionRows(there.select(list(names)), rows.came)
        except (DeltaError, OSError) as error:
            raise self._unreadable(before, error) from error

    def open(self, version: int) -> DeltaTable:
        """The table at a version. Raises ReplicaError where it cannot be read."""
        try:
            return DeltaTable(self._path, version=version)
        except (DeltaError, OSError) as error:
            raise self._unreadable(version, error) from error

    def _unreadable(self, version: int, error: Exception) -> ReplicaError:
        return ReplicaError(
            f"cannot read version {version} of {self._path}: {error}; where VACUUM or the clean-up"
            " of its log has removed it, use a later cut"
        )
