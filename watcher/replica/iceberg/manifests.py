"""Commits snapshots of Iceberg tables with position deletes, which pyiceberg itself does not write.

All that this product takes of pyiceberg's inside is here: ``ManifestWriterV2`` writes manifests of
data files only, and its subclass below says that these are files of deletes. The names beside it
are public, though not all are documented: ``pyproject.toml`` has the bound of the version, and
``test_iceberg_manifests.py`` notices what has changed.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    ManifestWriter,
    ManifestWriterV2,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
)
from pyiceberg.typedef import Record

from watcher.model.errors import StoreUnavailableError
from watcher.replica.iceberg.catalog_errors import explain_catalog
from watcher.replica.iceberg.partitions import hide_partitions
from watcher.replica.iceberg.position_deletes import PATH, Gone
from watcher.replica.stores.stored_files import explain_damage
from watcher.replica.writing.new_files import Partition

CODEC: Final = "deflate"
FORMAT_VERSION: Final = 2
PARTITION: Final = 3
"""The index of the partition in the record of a file."""


class DeleteManifestWriter(ManifestWriterV2):
    """Writes manifests of files of deletes."""

    def content(self) -> ManifestContent:
        """What the files are."""
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


@dataclass(frozen=True, slots=True)
class Part:
    """A manifest, with the entries of the files that are there."""

    manifest: ManifestFile
    entries: tuple[ManifestEntry, ...]


@dataclass(frozen=True, slots=True)
class SnapshotChange:
    """What a commit does: it adds files, of rows or of deletes, and removes some by their paths.
    ``summary``: what it says of itself. ``schema``: the columns that the table has from then on, if
    they are others; ``properties`` likewise. ``regroup``: manifests that are put together, by their
    paths."""

    operation: Operation
    summary: Mapping[str, str]
    added: Sequence[DataFile] = ()
    deletes: Sequence[DataFile] = ()
    removed: frozenset[str] = frozenset()
    schema: Schema | None = None
    regroup: frozenset[str] = frozenset()
    properties: Mapping[str, str] = field(default_factory=dict)


def read_parts(io: FileIO, snapshot: Snapshot | None, known: Mapping[str, Part]) -> Iterator[Part]:
    """The manifests of a snapshot; those that are known are not read again."""
    if snapshot is None:
        return
    with explain_damage(snapshot.manifest_list):
        manifests = snapshot.manifests(io)
    for manifest in manifests:
        part = known.get(manifest.manifest_path)
        if part is None:
            with explain_damage(manifest.manifest_path):
                part = Part(manifest, tuple(manifest.fetch_manifest_entry(io)))
        yield part


def describe_data(
    table: Table, path: str, partition: Partition = (), schema: Schema | None = None
) -> DataFile:
    """A data file of a partition that was written, with the statistics that its footer has."""
    metadata = hide_partitions(table.metadata)
    if schema is not None:
        fresh = {"schemas": [schema], "current_schema_id": schema.schema_id}
        metadata = metadata.model_copy(update=fresh)
    file = parquet_file_to_data_file(table.io, metadata, path)
    file[PARTITION] = Record(*partition)
    file.spec_id = table.metadata.default_spec_id
    return file


def describe_deletes(
    table: Table, path: str, size: int, gone: Gone, partition: Partition = ()
) -> DataFile:
    """A file of position deletes, of data files of one partition."""
    bounds = (min(gone), max(gone))
    file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(*partition),
        record_count=sum(map(len, gone.values())),
        file_size_in_bytes=size,
        lower_bounds={PATH: bounds[0].encode()},
        upper_bounds={PATH: bounds[1].encode()},
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
    )
    file.spec_id = table.metadata.default_spec_id
    return file


def commit_snapshot(table: Table, parts: Iterable[Part], change: SnapshotChange) -> bool:
    """Adds a snapshot to those of a table, whose current one has these manifests. Returns whether
    it was done; not if the table has another current snapshot by now."""
    return SnapshotCommit(table, change).run(list(parts))


class SnapshotCommit:
    """One try to commit a change."""

    def __init__(self, table: Table, change: SnapshotChange) -> None:
        self._table = table
        self._metadata: TableMetadata = table.metadata
        self._change = change
        self._id = table.metadata.new_snapshot_id()
        self._commit = uuid.uuid4()
        self._written: list[str] = []
        self._schema = change.schema or table.schema()

    def run(self, parts: Sequence[Part]) -> bool:
        """As ``commit_snapshot``."""
        manifests = [*self._write_added(), *self._write_kept(parts)]
        snapshot = self._make_snapshot(self._write_list(manifests), parts)
        name = self._table.name()
        try:
            with explain_catalog(".".join(name)):
                self._table.catalog.commit_table(
                    self._table, self._list_requirements(), tuple(self._list_updates(snapshot))
                )
        except (CommitFailedException, StoreUnavailableError) as error:
            # The answer of the request that has done it may be the one that was lost.
            if self._is_committed():
                return True
            if isinstance(error, StoreUnavailableError):
                raise  # it may still be done: what was written stays
            for path in self._written:
                self._table.io.delete(path)
            return False
        return True

    def _is_committed(self) -> bool:
        name = self._table.name()
        with explain_catalog(".".join(name)):
            newest = self._table.catalog.load_table(name)
        return newest.snapshot_by_id(self._id) is not None

    def _write_added(self) -> Iterator[ManifestFile]:
        groups = (
            (ManifestContent.DATA, self._change.added),
            (ManifestContent.DELETES, self._change.deletes),
        )
        for content, files in groups:
            if files:
                with self._open(content) as writer:
                    for file in files:
                        writer.add(ManifestEntry.from_args(data_file=file))
                yield writer.to_manifest_file()

    def _write_kept(self, parts: Sequence[Part]) -> Iterator[ManifestFile]:
        """The manifests before; those with a file that goes, or that are put together, anew."""
        changed: dict[ManifestContent, list[ManifestEntry]] = {}
        for part in parts:
            paths = {entry.data_file.file_path for entry in part.entries}
            if part.manifest.manifest_path in self._change.regroup or paths & self._change.removed:
                changed.setdefault(part.manifest.content, []).extend(part.entries)
            elif part.entries:
                yield part.manifest
        for content, entries in changed.items():
            with self._open(content) as writer:
                for entry in entries:
                    gone = entry.data_file.file_path in self._change.removed
                    writer.delete(entry) if gone else writer.existing(entry)
            yield writer.to_manifest_file()

    def _open(self, content: ManifestContent) -> ManifestWriter:
        output = self._table.io.new_output(self._name(f"{self._commit}-m{len(self._written)}.avro"))
        spec = self._table.spec()
        if content == ManifestContent.DELETES:
            return DeleteManifestWriter(spec, self._schema, output, self._id, CODEC)
        return write_manifest(FORMAT_VERSION, spec, self._schema, output, self._id, CODEC)

    def _write_list(self, manifests: list[ManifestFile]) -> str:
        path = self._name(f"snap-{self._id}-0-{self._commit}.avro")
        parent = self._metadata.current_snapshot_id
        sequence = self._metadata.next_sequence_number()
        output = self._table.io.new_output(path)
        with write_manifest_list(
            FORMAT_VERSION, output, self._id, parent, sequence, CODEC
        ) as writer:
            writer.add_manifests(manifests)
        return path

    def _name(self, name: str) -> str:
        path = self._table.location_provider().new_metadata_location(name)
        self._written.append(path)
        return path

    def _make_snapshot(self, path: str, parts: Sequence[Part]) -> Snapshot:
        current = self._metadata.current_schema_id
        return Snapshot(
            snapshot_id=self._id,
            parent_snapshot_id=self._metadata.current_snapshot_id,
            sequence_number=self._metadata.next_sequence_number(),
            manifest_list=path,
            summary=Summary(self._change.operation, **summarize(parts, self._change)),
            schema_id=current if self._change.schema is None else self._change.schema.schema_id,
        )

    def _list_requirements(self) -> tuple[AssertTableUUID, AssertRefSnapshotId]:
        current = self._metadata.current_snapshot_id
        return (
            AssertTableUUID(uuid=self._metadata.table_uuid),
            AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=current),
        )

    def _list_updates(self, snapshot: Snapshot) -> Iterator[TableUpdate]:
        if self._change.schema is not None:
            yield AddSchemaUpdate(schema_=self._change.schema)
            yield SetCurrentSchemaUpdate(schema_id=-1)
        if self._change.properties:
            yield SetPropertiesUpdate(updates=dict(self._change.properties))
        yield AddSnapshotUpdate(snapshot=snapshot)
        yield SetSnapshotRefUpdate(
            ref_name=MAIN_BRANCH,
            type=SnapshotRefType.BRANCH,
            snapshot_id=self._id,
            max_ref_age_ms=None,
            max_snapshot_age_ms=None,
            min_snapshots_to_keep=None,
        )


def summarize(parts: Iterable[Part], change: SnapshotChange) -> dict[str, str]:
    """What a snapshot says of itself, and the numbers that readers look at."""
    before = [entry.data_file for part in parts for entry in part.entries]
    kept = [file for file in before if file.file_path not in change.removed]
    after = [*kept, *change.added, *change.deletes]
    rows = [file for file in after if file.content == DataFileContent.DATA]
    deletes = [file for file in after if file.content == DataFileContent.POSITION_DELETES]
    numbers = {
        "added-data-files": len(change.added),
        "added-records": count_records(change.added),
        "added-delete-files": len(change.deletes),
        "added-position-deletes": count_records(change.deletes),
        "total-data-files": len(rows),
        "total-records": count_records(rows),
        "total-delete-files": len(deletes),
        "total-position-deletes": count_records(deletes),
    }
    return {name: str(value) for name, value in numbers.items()} | dict(change.summary)


def count_records(files: Iterable[DataFile]) -> int:
    """How many rows files have."""
    return sum(file.record_count for file in files)
