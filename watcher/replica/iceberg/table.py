"""Merges into an Iceberg table that cost the rows that change: their old rows are removed by
position deletes, their new ones are a new file, and the table gets one snapshot.

The order is that of Iceberg: files first, then the snapshot, if the table still has the one before.
A crash before that leaves files that no snapshot has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from io import BytesIO
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyiceberg.manifest import DataFile, ManifestContent
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyroaring import BitMap

from watcher.model.errors import StoreUnavailableError
from watcher.process.failpoints import failpoint
from watcher.replica.copies import NewValues, Replacement, same_columns
from watcher.replica.iceberg.catalog import TableCatalog
from watcher.replica.iceberg.files import IcebergFile, IcebergFiles
from watcher.replica.iceberg.manifests import (
    SnapshotChange,
    commit_snapshot,
    describe_data,
    describe_deletes,
)
from watcher.replica.iceberg.partitions import keep_sources, make_arrangement
from watcher.replica.iceberg.position_deletes import DeletedRows, Gone, encode_deletes
from watcher.replica.iceberg.schemas import build_schema, convert_schema
from watcher.replica.iceberg.versions import IcebergVersion, VersionReader, is_of
from watcher.replica.layout import PLAIN, Layout
from watcher.replica.writing.arranged_rows import Arrangement
from watcher.replica.writing.compaction import choose_small
from watcher.replica.writing.file_rewrites import FileRewrite, Source, group_sources
from watcher.replica.writing.kept_rows import plan_rows
from watcher.replica.writing.live_files import find_rows
from watcher.replica.writing.live_rows import LiveRows
from watcher.replica.writing.merge_plan import cast_rows, take_columns
from watcher.replica.writing.new_files import GROUP_ROWS, Partition

Summary = Mapping[str, str]


class PositionTable:
    """The Iceberg table of a copy, whose rows this process replaces. It goes on from the state that
    it knows."""

    def __init__(self, catalog: TableCatalog, name: str, layout: Layout | None = None) -> None:
        """``layout``: how its rows lie in its files; None: as it was made."""
        self._layout = layout
        self.path = catalog.locate(name)
        self._catalog = catalog
        self._name = name
        self.files = IcebergFiles()
        self._reader = VersionReader(self.files)
        self._version: IcebergVersion | None = None
        self.live = LiveRows[IcebergFile, DeletedRows](
            self.path, self.files, DeletedRows.from_stored
        )

    def open(self) -> Table | None:
        """The table as it is now, for readers."""
        return self._catalog.load(self._name)

    def read(self) -> IcebergVersion | None:
        """The table as it is now; None where there is none."""
        table = self.open()
        if table is None:
            self._version = None
        elif self._version is None or not is_same(self._version.table, table):
            self._version = self._reader.read(table)
        return self._version

    def _commit(
        self, version: IcebergVersion, change: SnapshotChange, point: str
    ) -> IcebergVersion | None:
        """Commits a change on top of a version, and passes a failpoint: the version after it; None
        where somebody else has committed meanwhile."""
        if not commit_snapshot(version.table, version.parts, change):
            return None
        failpoint(point)
        return self._read_after(version)

    def _read_after(self, version: IcebergVersion) -> IcebergVersion:
        """The table after a commit on top of a version. Raises StoreUnavailableError where the
        catalog does not show it: a cut would name what readers cannot see."""
        after = self.read()
        if after is None or is_same(after.table, version.table):
            raise StoreUnavailableError(
                f"{self.path} was changed, and its catalog still shows what was there before"
            )
        return after

    @property
    def arrangement(self) -> Arrangement:
        """As ``CompactTable.arrangement``, of the version that ``read`` has returned."""
        return make_arrangement(self._require().table, self._layout)

    def _require(self) -> IcebergVersion:
        assert self._version is not None, "read comes first"
        return self._version

    def create(self, schema: pa.Schema) -> IcebergVersion:
        """An empty table, unless there is one."""
        table = self._catalog.create(self._name, schema, self._layout or PLAIN)
        self._version = self._reader.read(table)
        return self._version

    def load(
        self, version: IcebergVersion, rows: Iterable[pa.RecordBatch], replaces: pa.Schema | None,
        summary: Summary, properties: Mapping[str, str] = MappingProxyType({}),
    ) -> bool:  # fmt: skip
        """Adds rows to a version; ``replaces``: in the place of all that it has, with these columns
        from then on. The table has the ``properties`` then. Returns whether nobody has committed
        meanwhile. What the rows raise is raised, and nothing is changed."""
        columns = None if replaces is None else choose_schema(version.table, replaces)
        schema = version.schema if columns is None else convert_schema(columns)
        new = self.arrangement.write(self.files, schema, cast_rows(rows, schema, self.path))
        removed = frozenset[str]()
        if replaces is not None:
            removed = frozenset([*version.files, *version.deletes])
        change = SnapshotChange(
            Operation.APPEND if replaces is None else Operation.OVERWRITE,
            summary,
            [
                describe_data(version.table, each.path, each.partition, columns)
                for each in new.listed
            ],
            removed=removed,
            schema=columns,
            properties=properties,
        )
        failpoint("after-replica-files")
        if self._commit(version, change, "after-replica-commit") is None:
            new.abandon()
            return False
        return True

    def merge(
        self,
        version: IcebergVersion,
        rows: pa.Table,
        key: Sequence[str],
        summary: Summary,
        columns: Schema | None = None,
        values: NewValues | None = None,
    ) -> bool:
        """Merges rows into a version, as ``TableCopy.merge``, in one snapshot, or in none if
        nothing changes. ``columns``: those that the table has from then on; ``values``: of new ones
        in the rows that are there, whose files are written anew. Returns whether it was done; not
        if somebody else has committed meanwhile."""
        self.live.follow(version, key)
        schema = version.schema if columns is None else convert_schema(columns)
        plan = plan_rows(self.live, self.files, version, schema, rows, key, self.path)
        if plan.is_empty and columns is None:
            return True
        written = self.write_rows(version, plan.rows, columns)
        failpoint("after-replica-rows")
        added = [file for file, _ in written]
        if columns is None or values is None:
            deletes = self.write_deletes(version, plan.gone)
            change = SnapshotChange(Operation.OVERWRITE, summary, added, deletes, schema=columns)
        else:
            change = fill_version(self, version, columns, values, summary, plan.gone, added)
        failpoint("after-replica-files")
        after = self._commit(version, change, "after-replica-commit")
        if after is None:
            return False
        for file, numbers in written:
            hashes = plan.hashes[0][numbers], plan.hashes[1][numbers]
            self.live.add(file.file_path, hashes, plan.stamps[numbers])
        self.live.settle(after)
        return True

    def change_columns(
        self, version: IcebergVersion, columns: Schema, summary: Summary,
        values: NewValues | None = None,
    ) -> bool:  # fmt: skip
        """Gives a version other columns, in a snapshot with the same rows, which may have
        ``values`` in new ones. Returns whether nobody has committed meanwhile."""
        change = SnapshotChange(Operation.APPEND, summary, schema=columns)
        if values is not None:
            change = fill_version(self, version, columns, values, summary)
        failpoint("after-replica-files")
        return self._commit(version, change, "after-replica-commit") is not None

    def replace_rows(
        self, version: IcebergVersion, replacement: Replacement, summary: Summary
    ) -> bool:
        """Replaces rows of a version in one snapshot. Returns whether nobody has committed
        meanwhile."""
        keys, schema = replacement.keys, version.schema
        found = find_rows(self.files, version, keys.columns, keys.find)
        gone = {
            path: rows - self.files.read_vector(version.files[path].vector)
            for path, rows in found.items()
        }
        rows = take_columns(replacement.rows, schema, schema.names, self.path)
        added = [file for file, _ in self.write_rows(version, rows)]
        deletes = self.write_deletes(version, gone)
        failpoint("after-repair-files")
        change = SnapshotChange(Operation.OVERWRITE, summary, added, deletes)
        return self._commit(version, change, "after-repair-commit") is not None

    def count(self, file: IcebergFile) -> int:
        """As ``CompactTable.count``."""
        return file.rows

    def replace_files(
        self, rewrite: FileRewrite[IcebergFile, DeletedRows], gone: Gone
    ) -> IcebergVersion | None:
        """As ``CompactTable.replace_files``, of the version that ``read`` has returned. Deletes
        that are of no other files go with the old ones."""
        version = self._require()
        removed = {source.file.path for source in rewrite.sources} & version.files.keys()
        if not removed:
            return None
        new = [each for each in rewrite.new if len(gone[each.path]) < each.rows]
        placed = {each.path: gone[each.path] for each in new if gone[each.path]}
        left = version.files.keys() - removed
        idle = {n for n in version.deletes if not left & self.files.read_deletes(n).keys()}
        change = SnapshotChange(
            Operation.REPLACE,
            {},
            [describe_data(version.table, each.path, each.partition) for each in new],
            self._write_deletes_of(version, placed, rewrite.partition),
            frozenset(removed | idle),
        )
        failpoint("after-rewrite-files")
        return self._commit(version, change, "after-rewrite-commit")

    def tidy(self, version: IcebergVersion, allowed: int) -> IcebergVersion | None:
        """Puts small files of deletes together, and manifests, if there are more than is allowed:
        the version after it; None where there is nothing to do, or somebody else has committed
        meanwhile."""
        chosen = {file.path for file in choose_small(list(version.list_deletes()), allowed)}
        listed = [list(version.list_manifests(content)) for content in ManifestContent]
        regrouped = {each.path for parts in listed for each in choose_small(parts, allowed)}
        if not chosen and not regrouped:
            return None
        merged = merge_deletes(self.files, version, chosen)
        change = SnapshotChange(
            Operation.REPLACE,
            {},
            deletes=self.write_deletes(version, merged),
            removed=frozenset(chosen),
            regroup=frozenset(regrouped),
        )
        failpoint("after-rewrite-files")
        if not commit_snapshot(version.table, version.parts, change):
            return None
        return self._read_after(version)

    def write_rows(
        self, version: IcebergVersion, rows: pa.Table, columns: Schema | None = None
    ) -> list[tuple[DataFile, NDArray[np.int64]]]:
        """Writes the rows that come, a file for each partition: with the numbers of its rows.
        ``columns``: if they are others than those of the version."""
        return [
            (self._write_part(version, part, partition, columns), numbers)
            for partition, part, numbers in self.arrangement.arrange(rows)
        ]

    def _write_part(
        self, version: IcebergVersion, rows: pa.Table, partition: Partition, columns: Schema | None
    ) -> DataFile:
        content = BytesIO()
        compression = self.files.compression
        pq.write_table(rows, content, compression=compression, row_group_size=GROUP_ROWS)
        path = self.files.write(".parquet", content.getvalue())
        return describe_data(version.table, path, partition, columns)

    def write_deletes(self, version: IcebergVersion, gone: Gone) -> list[DataFile]:
        """Writes the rows that go of files of a version, a file for each partition: readers apply
        deletes to data files of theirs alone."""
        parts: dict[Partition, dict[str, BitMap]] = {}
        for path, rows in gone.items():
            parts.setdefault(version.files[path].partition, {})[path] = rows
        return [
            file
            for partition, each in parts.items()
            for file in self._write_deletes_of(version, each, partition)
        ]

    def _write_deletes_of(
        self, version: IcebergVersion, gone: Gone, partition: Partition
    ) -> list[DataFile]:
        """Writes the rows that go of files of a partition as a file, if there are any."""
        if not gone:
            return []
        content = encode_deletes(gone)
        path = self.files.write("-deletes.parquet", content)
        return [describe_deletes(version.table, path, len(content), gone, partition)]


def fill_version(
    table: PositionTable,
    version: IcebergVersion,
    columns: Schema,
    values: NewValues,
    summary: Summary,
    gone: Gone = MappingProxyType({}),
    added: Sequence[DataFile] = (),
) -> SnapshotChange:
    """Writes all files of a version anew with values of new columns, without the rows that are
    ``gone``: the change that has them, and what is ``added``."""
    sources = (
        Source(file, file.rows, table.files.read_vector(file.vector) | gone.get(path, BitMap()))
        for path, file in version.files.items()
    )
    filled: list[DataFile] = []
    for part in group_sources(sources):
        rewrite = FileRewrite[IcebergFile, DeletedRows](
            table.files, convert_schema(columns), part, table.arrangement, values
        )
        rewrite.run()
        listed = ((new.path, new.partition) for new in rewrite.new)
        filled += [describe_data(version.table, *each, columns) for each in listed]
    removed = frozenset([*version.files, *version.deletes])
    both = [*filled, *added]
    return SnapshotChange(Operation.OVERWRITE, summary, both, removed=removed, schema=columns)


def merge_deletes(files: IcebergFiles, version: IcebergVersion, chosen: Collection[str]) -> Gone:
    """The rows that some files of deletes name, of data files that are there."""
    merged: dict[str, BitMap] = {}
    for name in chosen:
        for path, rows in files.read_deletes(name).items():
            file = version.files.get(path)
            if file is not None and is_of(version.deletes[name], file.entry):
                merged[path] = merged.get(path, BitMap()) | rows
    return merged


def is_same(table: Table, other: Table) -> bool:
    """Whether two states of a table have the same rows and columns."""
    return all(
        getattr(table.metadata, name) == getattr(other.metadata, name)
        for name in ("table_uuid", "current_snapshot_id", "current_schema_id")
    )


def choose_schema(table: Table, schema: pa.Schema) -> Schema | None:
    """The columns of a table that is loaded; None: those that it has. IDs are not given twice."""
    if same_columns(convert_schema(table.schema()), schema):
        return None
    fresh = build_schema(schema, table.metadata.last_column_id)
    fresh = keep_sources(table, fresh)
    number = 1 + max(each.schema_id for each in table.metadata.schemas)
    return fresh.model_copy(update={"schema_id": number})
