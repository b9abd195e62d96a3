"""A Delta table at a version, read from its log: its files with their deletion vectors, its
protocol, its columns, the newest transaction of each application.

delta-rs shows no vectors, and reads the log anew each time; a writer of vectors goes on from the
state that it knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema
from pyarrow.fs import FileSelector, FileType

from watcher.model.errors import ReplicaError
from watcher.replica.copies import CompactionRun
from watcher.replica.delta.deletion_vectors import VectorDescriptor
from watcher.replica.delta.log import DIGITS, LOG, name_entry, parse_entry, read_entry_text
from watcher.replica.stores.stored_files import (
    explain_damage,
    explain_store,
    list_names,
    open_file_system,
)
from watcher.replica.writing.statistics import read_rows

CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")
"""A checkpoint, whole or in parts, whose number is in each name."""
ENTRY = re.compile(r"(\d{20})\.(?:json|crc|checkpoint\..*parquet)")
"""What is removed with a version."""
STATE = ("add", "txn", "metaData", "protocol")
"""The actions of a checkpoint that make a state."""
MAPS = ("partitionValues", "tags", "configuration", "options")
OBJECTS = ("deletionVector", "format")
VECTORS = "deletionVectors"
Action = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file of a version. ``add`` is the action that has added it; ``vector`` the rows that
    are not there any more (None: all are there)."""

    add: Action
    vector: VectorDescriptor | None

    @classmethod
    def from_action(cls, add: Action) -> LiveFile:
        """As the log has it."""
        stored = add.get("deletionVector")
        return cls(add, None if stored is None else VectorDescriptor.from_action(stored))

    @property
    def path(self) -> str:
        """The path in the table's folder, as the log writes it: encoded as in addresses."""
        return str(self.add["path"])

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return int(self.add["size"])

    @property
    def partition(self) -> tuple[str | None, ...]:
        """As ``DataFile.partition``, in the order of the columns' names."""
        values = self.add.get("partitionValues") or {}
        return tuple(values[name] or None for name in sorted(values))

    @property
    def rows(self) -> int | None:
        """As ``DataFile.rows``."""
        return read_rows(self.add.get("stats"))


@dataclass
class Snapshot:
    """A table at a version; -1: before the first one."""

    version: int = -1
    files: dict[str, LiveFile] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)
    metadata: Action = field(default_factory=dict)
    protocol: Action = field(default_factory=dict)
    entry: str | None = None
    """A digest of the entry of the log that has made the version; None where it is gone."""

    @property
    def id(self) -> str:
        """As ``TableVersion.id``."""
        return str(self.metadata["id"])

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return pa.schema(Schema.from_json(self.metadata["schemaString"]).to_arrow())

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.metadata.get("configuration") or {}

    @property
    def has_vectors(self) -> bool:
        """Whether files may have deletion vectors."""
        return VECTORS in (self.protocol.get("readerFeatures") or ())

    def apply(self, actions: Iterable[Action]) -> None:
        """The state after the actions of a commit, in any order: a file that is removed and added
        again has another vector."""
        listed = list(actions)
        for action in listed:
            if "remove" in action:
                self.files.pop(action["remove"]["path"], None)
        for action in listed:
            if "add" in action:
                self.files[action["add"]["path"]] = LiveFile.from_action(action["add"])
            elif "txn" in action:
                self.transactions[action["txn"]["appId"]] = action["txn"]["version"]
            self.metadata = action.get("metaData", self.metadata)
            self.protocol = action.get("protocol", self.protocol)


class SnapshotReader:
    """Reads the log of a table."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._files, base = open_file_system(path)
        self._folder = PurePosixPath(base) / LOG

    def read(self, version: int | None = None) -> Snapshot:
        """The table at a version; None: the newest. Raises ReplicaError where the log does not have
        it whole any more."""
        names = list_names(self._files, self._folder, "")
        newest = max((int(name[:DIGITS]) for name in names if is_entry(name)), default=-1)
        if newest < 0:
            raise ReplicaError(f"{self._path} is not a Delta table any more: restart 'replicate'")
        wanted = newest if version is None else version
        snapshot = self._read_checkpoint(names, wanted)
        self.advance(snapshot, wanted)
        if snapshot.version < wanted or not snapshot.metadata:
            raise ReplicaError(
                f"cannot read version {wanted} of {self._path}: its log has no entry"
                f" {snapshot.version + 1}"
            )
        return snapshot

    def advance(self, snapshot: Snapshot, upto: int | None = None) -> None:
        """Goes on to a version, or to the newest one."""
        while upto is None or snapshot.version < upto:
            text = self._read_text(snapshot.version + 1)
            if text is None:
                return
            snapshot.apply(self._parse(text, snapshot.version + 1))
            snapshot.version += 1
            snapshot.entry = digest(text)

    def is_current(self, snapshot: Snapshot) -> bool:
        """Whether the log still has the version of a snapshot: a table may have been removed and
        made again."""
        text = self._read_text(snapshot.version)
        return snapshot.entry == (None if text is None else digest(text))

    def read_entry(self, version: int) -> list[Action]:
        """The actions of a commit; none where there is none."""
        text = self._read_text(version)
        return [] if text is None else self._parse(text, version)

    def remove_entries(self, needed: int, before: int) -> None:
        """Removes what is older than a time, and of which no version from ``needed`` on has need:
        entries and checkpoints before the latest whole checkpoint up to that version."""
        with explain_store(str(self._folder)):
            infos = self._files.get_file_info(FileSelector(str(self._folder), allow_not_found=True))
        first = max(find_checkpoints((info.base_name for info in infos), needed), default=0)
        for info in infos:
            numbered = ENTRY.match(info.base_name)
            if numbered is None or int(numbered[1]) >= first or info.type != FileType.File:
                continue
            if info.mtime_ns // 1_000 < before:
                self._files.delete_file(info.path)

    def _parse(self, text: str, version: int) -> list[Action]:
        with explain_damage(str(self._folder / name_entry(version))):
            return parse_entry(text)

    def _read_text(self, version: int) -> str | None:
        return read_entry_text(self._files, self._folder, version)

    def _read_checkpoint(self, names: Iterable[str], upto: int) -> Snapshot:
        """The state of the latest checkpoint up to a version; that of an empty log without one."""
        parts = find_checkpoints(names, upto)
        if not parts:
            return Snapshot()
        snapshot = Snapshot(max(parts))
        for name in parts[snapshot.version]:
            snapshot.apply(self._read_actions(name))
        text = self._read_text(snapshot.version)
        snapshot.entry = None if text is None else digest(text)
        return snapshot

    def _read_actions(self, name: str) -> Iterator[Action]:
        path = str(self._folder / name)
        with (
            explain_store(path),
            explain_damage(path),
            self._files.open_input_file(path) as stream,
        ):
            file = pq.ParquetFile(stream)
            columns = [each for each in STATE if each in file.schema_arrow.names]
            for batch in file.iter_batches(columns=columns):
                for row in batch.to_pylist():
                    yield {kind: restore(row[kind]) for kind in columns if row[kind] is not None}


def find_checkpoints(names: Iterable[str], upto: int) -> dict[int, list[str]]:
    """The files of the checkpoints up to a version, of those that are whole."""
    parts: dict[int, list[str]] = {}
    counts: dict[int, int] = {}
    for name in names:
        if (found := CHECKPOINT.fullmatch(name)) is not None and int(found[1]) <= upto:
            parts.setdefault(int(found[1]), []).append(name)
            counts[int(found[1])] = int(found[2] or 1)
    return {version: names for version, names in parts.items() if len(names) == counts[version]}


def digest(text: str) -> str:
    """What tells an entry from another one."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def restore(action: Action) -> dict[str, Any]:
    """An action of a checkpoint as an entry of the log has it: maps as objects, without what is not
    set, and without parsed statistics, which are there as text, too."""
    return {
        name: dict(value) if name in MAPS else restore(value) if name in OBJECTS else value
        for name, value in action.items()
        if value is not None and not name.endswith("_parsed")
    }


def is_entry(name: str) -> bool:
    """Whether a file of the log is that of a commit."""
    return name.endswith(".json") and len(name) == DIGITS + len(".json") and name[:DIGITS].isdigit()


def convert_schema(table: DeltaTable) -> pa.Schema:
    """The columns of a table."""
    return pa.schema(table.schema().to_arrow())


def describe_run(run: CompactionRun, after: Snapshot) -> CompactionRun:
    """A run of compaction with the version and the files that the table has after it."""
    vectors = [file.vector for file in after.files.values()]
    deleted = sum(each.rows for each in vectors if each is not None)
    version = after.version if run.replaced else None
    return replace(run, version=version, files=len(vectors), deleted=deleted)
