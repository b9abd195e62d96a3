"""Copies as plain Parquet: files and versions that never change (docs/replica-protocol.md)."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.fs import FileSelector, FileType

from watcher.model.errors import ReplicaError
from watcher.process.failpoints import failpoint
from watcher.replica.copies import (
    CopyState,
    Needed,
    OpenCopy,
    OutsideCommit,
    Replacement,
    VersionRows,
    make_conflict,
)
from watcher.replica.cuts.stored import FORMAT, read_stored
from watcher.replica.stores.stored_files import (
    LOAD_ADVICE,
    PARQUET_FORMAT,
    explain_damage,
    explain_store,
    list_names,
    open_file_system,
    scan_dataset,
    write_whole,
)
from watcher.spanner.timestamps import format_timestamp

VERSIONS, FILES = "_versions", "_files"
DIGITS = 20
SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of rows, which never changes. ``path`` is relative to the copy."""

    path: str
    rows: int
    size: int | None = None
    """In bytes; None where an earlier release has written the version."""


@dataclass(frozen=True, slots=True)
class ParquetVersion:
    """A table at a window's ``end``, in microseconds since 1970. ``kind``: load or merge."""

    consumer: str
    end: int
    kind: str
    schema: pa.Schema
    files: tuple[DataFile, ...]

    def to_text(self) -> str:
        """As it is stored."""
        return json.dumps(
            {
                "format": FORMAT,
                "consumer": self.consumer,
                "end": self.end,
                "timestamp": format_timestamp(self.end),
                "kind": self.kind,
                "schema": base64.b64encode(self.schema.serialize().to_pybytes()).decode(),
                "files": [asdict(each) for each in self.files],
            },
            indent=1,
        )

    @classmethod
    def from_stored(cls, stored: dict[str, Any]) -> ParquetVersion:
        """As it was stored."""
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored["schema"])))
        files = tuple(
            DataFile(each["path"], each["rows"], each.get("size")) for each in stored["files"]
        )
        return cls(stored["consumer"], stored["end"], stored["kind"], schema, files)


class VersionStore:
    """The versions of one copy."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._files, base = open_file_system(path)
        self._base = PurePosixPath(base)

    def list_ends(self) -> list[int]:
        """The ends of the versions that are there, in order."""
        names = list_names(self._files, self._base / VERSIONS, SUFFIX)
        return [int(name.removesuffix(SUFFIX)) for name in names]

    def read(self, end: int) -> ParquetVersion:
        """A version. Raises ReplicaError where there is none."""
        path = str(self._base / VERSIONS / name_version(end))
        try:
            return read_stored(self._files, path, ParquetVersion.from_stored, f", or {LOAD_ADVICE}")
        except FileNotFoundError as error:
            raise self.unreadable(end, "it was removed") from error

    def write(self, version: ParquetVersion) -> None:
        """Writes a version, whose files are there."""
        content = version.to_text().encode()
        write_whole(self._files, self._base / VERSIONS, name_version(version.end), content)

    def open_dataset(self, version: ParquetVersion) -> ds.Dataset:
        """The rows of a version, which has files. Raises ReplicaError where one is gone."""
        paths = [str(self._base / each.path) for each in version.files]
        try:
            return ds.dataset(paths, filesystem=self._files, format=PARQUET_FORMAT)
        except (OSError, pa.ArrowInvalid) as error:
            raise self.unreadable(version.end, str(error)) from error

    def read_file(self, file: DataFile, schema: pa.Schema) -> pa.Table:
        """The rows of a file. Raises ReplicaError."""
        with explain_store(file.path), explain_damage(file.path):
            rows = ds.dataset([str(self._base / file.path)], schema, PARQUET_FORMAT, self._files)
            return rows.to_table()

    def write_files(self, folder: str, tables: Sequence[pa.Table]) -> tuple[DataFile, ...]:
        """Writes a file for each table that has rows, into a new folder of the copy."""
        for number, rows in enumerate(tables):
            if rows.num_rows:
                content = BytesIO()
                pq.write_table(rows, content, compression="snappy")
                name = f"part-{number:05d}.snappy.parquet"
                write_whole(self._files, self._base / folder, name, content.getvalue())
        return self.describe_files(folder)

    def unreadable(self, end: int, reason: str) -> ReplicaError:
        """The error of a version that cannot be read."""
        return ReplicaError(f"cannot read version {end} of {self.path}: {reason}; use a later cut")

    def describe_files(self, folder: str) -> tuple[DataFile, ...]:
        """The files that were written to a folder of the copy, without those that are empty."""
        names = list_names(self._files, self._base / folder, ".parquet")
        sizes = self._read_sizes([f"{folder}/{name}" for name in names])
        files = [
            DataFile(path, self._count_rows(folder, name), size)
            for name, (path, size) in zip(names, sizes.items(), strict=True)
        ]
        return tuple(each for each in files if each.rows)

    def find_changed(self, version: ParquetVersion) -> list[str]:
        """The files of a version that are not what was written: gone, or of another size."""
        sizes = self._read_sizes([each.path for each in version.files])
        return [
            each.path
            for each in version.files
            if sizes[each.path] is None or each.size not in (None, sizes[each.path])
        ]

    def _read_sizes(self, paths: Sequence[str]) -> dict[str, int | None]:
        """The size of each file; None for one that is gone."""
        infos = self._files.get_file_info([str(self._base / path) for path in paths])
        return {path: info.size for path, info in zip(paths, infos, strict=True)}

    def remove_before(self, at: int) -> None:
        """Removes the versions before the one in effect at a timestamp, and files that no version
        lists; those of versions to come have later ends."""
        ends = self.list_ends()
        in_effect = max((end for end in ends if end <= at), default=0)
        for end in ends:
            if end < in_effect:
                self._files.delete_file(str(self._base / VERSIONS / name_version(end)))
        listed = {file.path for end in self.list_ends() for file in self.read(end).files}
        folders = {str(PurePosixPath(path).parent) for path in listed}
        selector = FileSelector(str(self._base / FILES), allow_not_found=True)
        for info in self._files.get_file_info(selector):
            folder = f"{FILES}/{info.base_name}"
            written = read_end(info.base_name)
            old = written is not None and written < min(at, in_effect)
            if info.type == FileType.Directory and old and folder not in folders:
                self._files.delete_dir(str(self._base / folder))

    def _count_rows(self, folder: str, name: str) -> int:
        path = str(self._base / folder / name)
        return int(ds.dataset(path, filesystem=self._files, format=PARQUET_FORMAT).count_rows())


class ParquetCopy:
    """The ``StoredCopy`` in a folder, read with Arrow."""

    def __init__(self, path: str, consumer: str) -> None:
        self.versions = VersionStore(path)
        self.consumer = consumer
        self.known: CopyState | None = None
        """The newest version that this process has read or written."""
        self.written: int | None = None
        """The newest version that this process has written."""

    def read_state(self) -> CopyState | None:
        """As ``StoredCopy.read_state``."""
        ends = self.versions.list_ends()
        if not ends:
            self.known = None
            return None
        version = self.versions.read(ends[-1])
        end = version.end if version.consumer == self.consumer else 0
        self.known = CopyState(version.end, end, version.schema)
        return self.known

    def list_outside(self, after: int | None, upto: int) -> Sequence[OutsideCommit]:  # noqa: ARG002
        """As ``StoredCopy.list_outside``: a version is whole, and only its files can be changed."""
        if upto == self.written:
            return ()
        changed = self.versions.find_changed(self.versions.read(upto))
        return [OutsideCommit(upto, f"{path} is not what was written") for path in changed]

    def find_end(self, version: int) -> int:
        """As ``StoredCopy.find_end``: a version is the end of a window."""
        return version

    def read_schema(self, version: int) -> pa.Schema:
        """As ``StoredCopy.read_schema``."""
        return self.versions.read(version).schema

    def scan(self, version: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """As ``StoredCopy.scan``."""
        stored = self.versions.read(version)
        if not stored.files:
            return
        names = list(columns) if columns is not None else stored.schema.names
        schema = pa.schema([stored.schema.field(name) for name in names])
        dataset = self.versions.open_dataset(stored)
        try:
            for batch in scan_dataset(dataset, names):
                yield batch.cast(schema)
        except OSError as error:
            raise self.versions.unreadable(version, str(error)) from error

    def remove_before(self, needed: Needed) -> None:
        """As ``StoredCopy.remove_before``."""
        self.versions.remove_before(needed.since)

    def compare_versions(
        self, before: int, after: int, names: Sequence[str]
    ) -> Iterator[VersionRows]:
        """As ``ComparableCopy.compare_versions``: files never change."""
        old, new = self.versions.read(before), self.versions.read(after)
        there = {file.path for file in old.files}, {file.path for file in new.files}
        for version, others, came in ((old, there[1], False), (new, there[0], True)):
            files = tuple(file for file in version.files if file.path not in others)
            if not files:
                continue
            schema = pa.schema([version.schema.field(name) for name in names])
            dataset = self.versions.open_dataset(replace(version, files=files))
            for batch in scan_dataset(dataset, names):
                yield VersionRows(batch.cast(schema), came)

    def explain_fixed(self) -> str:
        """As ``ReplacingCopy.explain_fixed``: every version is ours."""
        return ""

    def replace_rows(self, replacement: Replacement, end: int) -> CopyState:
        """As ``ReplacingCopy.replace_rows``: files that have one of the rows, and those that others
        have changed, are written anew; a version of the same end is replaced."""
        before = self.versions.read(replacement.version)
        self.check_known(end)
        changed = set(self.versions.find_changed(before))
        folder = f"{FILES}/{end}-{secrets.token_hex(6)}"
        kept, new = list[DataFile](), [replacement.rows.cast(before.schema)]
        for file in before.files:
            rows = self.versions.read_file(file, before.schema)
            found = [replacement.keys.find(each) for each in rows.to_batches()]
            gone = np.concatenate([np.empty(0, np.bool_), *found])  # a damaged one may have no rows
            if gone.any() or file.path in changed:
                new.append(rows.filter(pa.array(~gone)))
            else:
                kept.append(file)
        written = self.versions.write_files(folder, new)
        failpoint("after-repair-files")
        self.check_known(end)
        files = (*kept, *written)
        self.versions.write(
            ParquetVersion(self.consumer, end, replacement.kind, before.schema, files)
        )
        failpoint("after-repair-commit")
        self.known = CopyState(end, end, before.schema)
        self.written = end
        return self.known

    def check_known(self, end: int) -> None:
        """Raises CopyConflictError where another instance has written meanwhile."""
        newest = next(reversed(self.versions.list_ends()), None)
        known = self.known.version if self.known is not None else None
        if newest != known:
            self.known = None
            raise make_conflict(self.versions.path, self.consumer, end)


def name_version(end: int) -> str:
    """The file of a version: names are in the order of time."""
    return f"{end:0{DIGITS}d}{SUFFIX}"


def read_end(folder: str) -> int | None:
    """The end in the name of a folder of files; None for a folder of somebody else."""
    end = folder.partition("-")[0]
    return int(end) if end.isdecimal() else None


def open_parquet_copies(folder: str, consumer: str) -> OpenCopy:
    """The copies of a replica, each in the folder of its table's name."""
    base = folder.rstrip("/")
    return lambda table: ParquetCopy(f"{base}/{table}", consumer)
