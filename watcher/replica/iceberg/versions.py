"""An Iceberg table at its current snapshot, as a writer of position deletes goes on from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.manifest import DataFileContent, FileFormat, ManifestContent, ManifestEntry
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyroaring import BitMap

from watcher.model.errors import ReplicaError
from watcher.replica.iceberg.files import IcebergFile, IcebergFiles
from watcher.replica.iceberg.manifests import FORMAT_VERSION, Part, read_parts
from watcher.replica.iceberg.partitions import check_specs
from watcher.replica.iceberg.position_deletes import DeletedRows
from watcher.replica.iceberg.schemas import convert_schema


@dataclass(frozen=True, slots=True)
class IcebergVersion:
    """The table, its manifests, its data files by their paths, and the entries of its files of
    deletes."""

    table: Table
    parts: tuple[Part, ...] = ()
    files: Mapping[str, IcebergFile] = field(default_factory=dict)
    deletes: Mapping[str, ManifestEntry] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """As ``TableVersion.id``."""
        return str(self.table.metadata.table_uuid)

    @property
    def schema(self) -> pa.Schema:
        """The columns, with their IDs."""
        return convert_schema(self.table.schema())

    def list_deletes(self) -> Iterator[SmallFile]:
        """The files of deletes."""
        for path, entry in self.deletes.items():
            yield SmallFile(path, entry.data_file.file_size_in_bytes)

    def list_manifests(self, content: ManifestContent) -> Iterator[SmallFile]:
        """The manifests of one kind of files."""
        for part in self.parts:
            if part.manifest.content == content:
                yield SmallFile(part.manifest.manifest_path, part.manifest.manifest_length)


@dataclass(frozen=True, slots=True)
class SmallFile:
    """A file that may be put together with others."""

    path: str
    size: int


class VersionReader:
    """Reads versions of one table, each from the one before it."""

    def __init__(self, files: IcebergFiles) -> None:
        self._files = files
        self._parts: Mapping[str, Part] = {}

    def read(self, table: Table, snapshot: Snapshot | None = None) -> IcebergVersion:
        """The table at a snapshot; None: the current one. Raises ReplicaError where it has what
        this product does not write: other formats of files, or other deletes."""
        if table.format_version != FORMAT_VERSION:
            raise ReplicaError(
                f"{table.location()} has format {table.format_version}: this release writes format"
                f" {FORMAT_VERSION}; use engine = 'spark'"
            )
        check_specs(table)
        self._files.use(table.io, table.location_provider().new_data_location("").rstrip("/"))
        parts = tuple(read_parts(table.io, snapshot or table.current_snapshot(), self._parts))
        self._parts = {part.manifest.manifest_path: part for part in parts}
        deletes = index_entries(parts, ManifestContent.DELETES)
        check_entries(table, deletes.values(), DataFileContent.POSITION_DELETES)
        rows = index_entries(parts, ManifestContent.DATA)
        check_entries(table, rows.values(), DataFileContent.DATA)
        marks = self._mark(rows, deletes)
        files = {path: IcebergFile(entry, marks.get(path)) for path, entry in rows.items()}
        return IcebergVersion(table, parts, files, deletes)

    def _mark(
        self, rows: Mapping[str, ManifestEntry], deletes: Mapping[str, ManifestEntry]
    ) -> Mapping[str, DeletedRows]:
        """Which rows of each data file are gone. Deletes are of files that are not younger."""
        names: dict[str, list[str]] = {}
        gone: dict[str, BitMap] = {}
        for name in sorted(deletes):
            for path, numbers in self._files.read_deletes(name).items():
                if path in rows and is_of(deletes[name], rows[path]):
                    names.setdefault(path, []).append(name)
                    gone[path] = gone.get(path, BitMap()) | numbers
        self._files.keep_deletes(deletes)
        return {
            path: DeletedRows(path, tuple(each), len(gone[path])) for path, each in names.items()
        }


def index_entries(parts: Iterable[Part], content: ManifestContent) -> dict[str, ManifestEntry]:
    """The entries of one kind by the paths of their files."""
    chosen = (part for part in parts if part.manifest.content == content)
    return {entry.data_file.file_path: entry for part in chosen for entry in part.entries}


def is_of(deletes: ManifestEntry, rows: ManifestEntry) -> bool:
    """Whether deletes may be of a data file: not if that is younger."""
    return (rows.sequence_number or 0) <= (deletes.sequence_number or 0)


def check_entries(table: Table, entries: Iterable[ManifestEntry], content: DataFileContent) -> None:
    """Raises ReplicaError for files that this product does not write."""
    for entry in entries:
        file = entry.data_file
        if file.content != content or file.file_format != FileFormat.PARQUET:
            raise ReplicaError(
                f"{table.location()} has the file {file.file_path} of another kind, which somebody"
                " else has written: use engine = 'spark', or another folder"
            )
