"""Copies as Iceberg tables, read with pyiceberg. What is in them is in docs/replica-protocol.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyiceberg.exceptions import NotInstalledError, ValidationError
from pyiceberg.table import StaticTable
from pyiceberg.table.snapshots import Snapshot

from watcher.model.errors import ReplicaError
from watcher.replica.copies import CopyState, Needed, OpenCopy, OutsideCommit
from watcher.replica.cuts import CONSUMER, END, KIND
from watcher.replica.iceberg_names import name_copy
from watcher.replica.lineage import Ancestor, list_outside


class IcebergCopy:
    """The ``StoredCopy`` in a folder, read with Arrow."""

    def __init__(self, path: str, consumer: str) -> None:
        self._path = path
        self._consumer = consumer

    def read_state(self) -> CopyState | None:
        """As ``StoredCopy.read_state``."""
        table = self._open()
        snapshot = table.current_snapshot()
        while snapshot is not None:
            if end := self._read_end(snapshot):
                return CopyState(end, end, self.read_schema(end))
            parent = snapshot.parent_snapshot_id
            snapshot = table.snapshot_by_id(parent) if parent is not None else None
        return None

    def list_outside(self, after: int | None, upto: int) -> Sequence[OutsideCommit]:
        """As ``StoredCopy.list_outside``."""
        table = self._open()
        snapshots = [make_ancestor(each, self._consumer) for each in table.metadata.snapshots]
        return list_outside(snapshots, after, upto)

    def find_end(self, version: int) -> int:
        """As ``StoredCopy.find_end``: a version is the end of a window."""
        return version

    def read_schema(self, version: int) -> pa.Schema:
        """As ``StoredCopy.read_schema``."""
        table = self._open()
        snapshot = self._find(table, version)
        schema = table.scan(snapshot_id=snapshot.snapshot_id).projection().as_arrow()
        return pa.schema([pa.field(field.name, plain_type(field.type)) for field in schema])

    def scan(self, version: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """As ``StoredCopy.scan``."""
        schema = self.read_schema(version)
        names = list(columns) if columns is not None else schema.names
        wanted = pa.schema([schema.field(name) for name in names])
        table = self._open()
        snapshot = self._find(table, version)
        scan = table.scan(snapshot_id=snapshot.snapshot_id, selected_fields=tuple(names))
        try:
            for batch in scan.to_arrow_batch_reader():
                yield batch.select(names).cast(wanted)
        except OSError as error:
            raise self._unreadable(version, str(error)) from error

    def remove_before(self, needed: Needed) -> None:
        """As ``StoredCopy.remove_before``: expire_snapshots is the owner's."""

    def _open(self) -> StaticTable:
        try:
            return StaticTable.from_metadata(self._path)
        except (OSError, ValidationError, NotInstalledError) as error:
            raise ReplicaError(f"cannot read the Iceberg table {self._path}: {error}") from error

    def _read_end(self, snapshot: Snapshot) -> int:
        """The window's end of a snapshot; 0 for one that is not this consumer's."""
        values = snapshot.summary.additional_properties if snapshot.summary is not None else {}
        return int(values[END]) if values.get(CONSUMER) == self._consumer else 0

    def _find(self, table: StaticTable, version: int) -> Snapshot:
        for snapshot in reversed(table.metadata.snapshots):
            if self._read_end(snapshot) == version:
                return snapshot
        raise self._unreadable(version, "it has no such snapshot")

    def _unreadable(self, version: int, reason: str) -> ReplicaError:
        return ReplicaError(
            f"cannot read version {version} of {self._path}: {reason}; where expire_snapshots has"
            " removed it, use a later cut"
        )


def make_ancestor(snapshot: Snapshot, consumer: str) -> Ancestor:
    """A snapshot, as it is judged."""
    summary = snapshot.summary
    values = summary.additional_properties if summary is not None else {}
    own = values.get(CONSUMER) == consumer
    return Ancestor(
        snapshot.snapshot_id,
        snapshot.parent_snapshot_id,
        summary.operation.value if summary is not None else "",
        int(values.get(END, 0)) if own else 0,
        values.get(KIND) if own else None,
    )


def plain_type(type_: pa.DataType) -> pa.DataType:
    """A type as the rest of a replica knows it: those of pyiceberg are the large ones."""
    if pa.types.is_large_string(type_):
        return pa.string()
    if pa.types.is_large_binary(type_):
        return pa.binary()
    if pa.types.is_large_list(type_) or pa.types.is_list(type_):
        return pa.list_(plain_type(type_.value_type))
    return type_


def open_iceberg_copies(folder: str, consumer: str) -> OpenCopy:
    """The copies of a replica, each in a folder of its own: ``name_copy``."""
    base = folder.rstrip("/")
    return lambda table: IcebergCopy(f"{base}/{name_copy(table)}", consumer)
