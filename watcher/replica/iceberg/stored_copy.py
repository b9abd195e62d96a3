"""Copies as Iceberg tables, read with pyiceberg. What is in them is in docs/replica-protocol.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyiceberg.exceptions import NotInstalledError, ValidationError
from pyiceberg.table import StaticTable, Table
from pyiceberg.table.snapshots import Snapshot

from watcher.model.errors import ReplicaError
from watcher.replica.copies import CopyState, Needed, OutsideCommit, VersionRows
from watcher.replica.cuts.cut import CONSUMER, END, KIND, PREFIX
from watcher.replica.cuts.modes import ENDS, LATEST, find_mode
from watcher.replica.iceberg.files import IcebergFiles
from watcher.replica.iceberg.lineage import (
    Ancestor,
    disown_stale,
    find_own,
    list_later,
    list_outside,
)
from watcher.replica.iceberg.names import LOADED
from watcher.replica.iceberg.schemas import convert_schema, plain_field, plain_type
from watcher.replica.iceberg.versions import VersionReader
from watcher.replica.loads import CHUNK, ON, CopyLoad
from watcher.replica.row_versions import keep_current, strip_schema
from watcher.replica.stores.stored_files import explain_damage
from watcher.replica.writing.live_files import compare_versions


class IcebergCopy:
    """The ``StoredCopy`` in a folder, read with Arrow."""

    def __init__(self, path: str, consumer: str, load: Callable[[], Table | None]) -> None:
        """``load``: the table as it is now; None where there is none."""
        self._path = path
        self._consumer = consumer
        self._load_table = load

    def read_state(self) -> CopyState | None:
        """As ``StoredCopy.read_state``; none where nothing says how far its load is."""
        table = self._open()
        newest = find_newest(table, self._consumer)
        if newest is None:
            return None
        load = CopyLoad(self._path)
        try:
            load.read(read_marks(table, newest.id))
        except FileNotFoundError:
            return None
        return CopyState(newest.end, newest.end, self.read_schema(newest.end), load.progress)

    def list_outside(self, after: int | None, upto: int) -> Sequence[OutsideCommit]:
        """As ``StoredCopy.list_outside``."""
        table = self._open()
        return list_outside(list_ancestors(table, self._consumer), after, upto)

    def list_later(self) -> Sequence[OutsideCommit]:
        """As ``HeadedCopy.list_later``."""
        table = self._open()
        head = table.metadata.current_snapshot_id
        snapshots = list_ancestors(table, self._consumer)
        own = find_own({each.id: each for each in snapshots}, head)
        later = list_later(snapshots, head)
        if own is not None and has_other_columns(table, own.id):
            later.insert(0, OutsideCommit(own.end, "a change of columns by somebody else"))
        return later

    def find_end(self, version: int) -> int:
        """As ``StoredCopy.find_end``: a version is the end of a window."""
        return version

    def read_schema(self, version: int) -> pa.Schema:
        """As ``StoredCopy.read_schema``."""
        return strip_schema(self.read_all_columns(version))

    def read_all_columns(self, version: int) -> pa.Schema:
        """As ``KeepingCopy.read_all_columns``."""
        table = self._open()
        snapshot = self._find(table, version)
        schema = table.scan(snapshot_id=snapshot.snapshot_id).projection().as_arrow()
        return pa.schema(map(plain_field, schema))

    def scan(self, version: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """As ``StoredCopy.scan``: the rows that the table has at the version."""
        schema = self.read_all_columns(version)
        names = list(columns) if columns is not None else strip_schema(schema).names
        mode = find_mode(schema.names)
        if mode == LATEST:
            yield from self._scan(version, schema, names)
            return
        for batch in self._scan(version, schema, [*names, ENDS[mode]]):
            yield keep_current(batch, mode).select(names)

    def scan_all(self, version: int) -> Iterator[pa.RecordBatch]:
        """As ``KeepingCopy.scan_all``."""
        schema = self.read_all_columns(version)
        return self._scan(version, schema, schema.names)

    def find_loaded(self, version: int) -> int:
        """As ``KeepingCopy.find_loaded``."""
        loaded = int(self._open().properties.get(LOADED, 0))
        return loaded if loaded <= version else 0

    def _scan(
        self, version: int, schema: pa.Schema, names: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        wanted = pa.schema([schema.field(name) for name in names])
        table = self._open()
        snapshot = self._find(table, version)
        scan = table.scan(snapshot_id=snapshot.snapshot_id, selected_fields=tuple(names))
        try:
            with explain_damage(f"a file of {self._path}"):
                for batch in scan.to_arrow_batch_reader():
                    yield batch.select(list(names)).cast(wanted)
        except OSError as error:
            raise self._unreadable(version, str(error)) from error

    def compare_versions(
        self, before: int, after: int, names: Sequence[str]
    ) -> Iterator[VersionRows]:
        """As ``ComparableCopy.compare_versions``."""
        table, files = self._open(), IcebergFiles()
        reader, snapshots = VersionReader(files), [self._find(table, v) for v in (before, after)]
        schema = convert_schema(table.scan(snapshot_id=snapshots[1].snapshot_id).projection())
        try:
            old, new = (reader.read(table, snapshot) for snapshot in snapshots)
            mode = find_mode(schema.names)
            read = list(names) if mode == LATEST else [*names, ENDS[mode]]
            for rows in compare_versions(files, old, new, schema, read):
                there = rows.batch if mode == LATEST else keep_current(rows.batch, mode)
                columns = (there.column(name) for name in names)
                arrays = [column.cast(plain_type(column.type)) for column in columns]
                yield VersionRows(pa.RecordBatch.from_arrays(arrays, list(names)), rows.came)
        except OSError as error:
            raise self._unreadable(before, str(error)) from error

    def remove_before(self, needed: Needed) -> None:
        """As ``StoredCopy.remove_before``: expire_snapshots is the owner's."""

    def _open(self) -> Table:
        table = self._load_table()
        if table is None:
            raise ReplicaError(f"{self._path} is not an Iceberg table any more")
        return table

    def _find(self, table: Table, version: int) -> Snapshot:
        own = {e.id for e in list_ancestors(table, self._consumer) if e.end == version}
        for snapshot in reversed(table.metadata.snapshots):
            if snapshot.snapshot_id in own:
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
        values.get(f"{PREFIX}{CHUNK}") if own else None,
        values.get(f"{PREFIX}{ON}") if own else None,
    )


def list_ancestors(table: Table, consumer: str) -> list[Ancestor]:
    """The snapshots of a table, as they are judged."""
    return disown_stale(make_ancestor(each, consumer) for each in table.metadata.snapshots)


def find_newest(table: Table, consumer: str) -> Ancestor | None:
    """The newest snapshot by a consumer among those that the current one goes on from."""
    by_id = {each.id: each for each in list_ancestors(table, consumer)}
    return find_own(by_id, table.metadata.current_snapshot_id)


def read_marks(table: Table, snapshot: int) -> dict[str, str]:
    """What a snapshot says of itself in our words, by their names without the prefix."""
    found = table.snapshot_by_id(snapshot)
    summary = found.summary if found is not None else None
    values = summary.additional_properties if summary is not None else {}
    return {name.removeprefix(PREFIX): value for name, value in values.items()}


def has_other_columns(table: Table, snapshot: int) -> bool:
    """Whether a table has other columns now than when a snapshot was made."""
    before = table.scan(snapshot_id=snapshot).projection()
    return before.as_struct() != table.schema().as_struct()


def open_folder(path: str) -> Table:
    """A table that Spark has written, without a catalog. Raises ReplicaError."""
    try:
        return StaticTable.from_metadata(path)
    except (OSError, ValidationError, NotInstalledError) as error:
        raise ReplicaError(f"cannot read the Iceberg table {path}: {error}") from error


def open_read(path: str, consumer: str) -> IcebergCopy:
    """A copy that Spark has written."""
    return IcebergCopy(path, consumer, partial(open_folder, path))
