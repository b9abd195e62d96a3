"""Which rows of a table that is merged on read are there, and where the row of a key is."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyroaring import BitMap

from watcher.model.errors import FileWriteError, ReplicaError
from watcher.model.log_events.copies import KEY_INDEX_BEHIND, KEY_INDEX_REREAD
from watcher.process.cache_folder import find_cache_folder
from watcher.replica.copies import find_order
from watcher.replica.keys.hashes import Words, hash_keys
from watcher.replica.writing.key_index import NEVER, RUN_ROWS_MAX, Entries, KeyIndex, contains
from watcher.replica.writing.live_files import F, M, RowFiles, TableVersion

LOG = logging.getLogger("watcher.replica")
FOLDER = "_keys"


@dataclass(slots=True)
class StagedFile(Generic[M]):
    """A file that is being written: how many of its ``rows`` an index has, and by which number."""

    index: KeyIndex[M]
    number: int
    rows: int = 0


class LiveRows(Generic[F, M]):
    """The vectors and the index of one table, at the version that they follow."""

    def __init__(
        self, path: str, files: RowFiles[F, M], parse: Callable[[Mapping[str, Any]], M]
    ) -> None:
        """``parse``: as of ``KeyIndex``."""
        self._path = path
        self._files = files
        self._parse = parse
        self._key: tuple[str, ...] = ()
        self._index: KeyIndex[M] | None = None
        self._vectors: dict[str, tuple[M | None, BitMap]] = {}
        """The vectors that were read or written, by the path of their data file."""
        self._staged: dict[str, StagedFile[M]] = {}

    def follow(self, snapshot: TableVersion[F], key: Sequence[str]) -> None:
        """Makes the index that of a version and a key."""
        self._key = tuple(key)
        self._follow(snapshot, self._open_index(snapshot), trusted=False)

    def settle(self, snapshot: TableVersion[F]) -> None:
        """The same for the version that this writer has just committed. The commit is done,
        whatever happens to the index."""
        try:
            self._follow(snapshot, self._require(), trusted=True)
        except (OSError, ReplicaError, FileWriteError) as error:
            KEY_INDEX_REREAD.log(LOG, path=self._path, error=error)
            self._index = None

    def hash(self, keys: pa.Table) -> tuple[Words, Words]:
        """The hashes of keys."""
        return hash_keys(keys, self._require().points)

    def find(self, hashes: tuple[Words, Words]) -> tuple[NDArray[np.int64], Entries]:
        """The rows of keys that are there, and for each the index of its key in ``hashes``."""
        index = self._require()
        paths = index.list_paths()
        keys, found = index.find(hashes)
        files, live = found.files, np.ones(len(found), np.bool_)
        for number in np.unique(files):
            of_file = np.flatnonzero(files == number)
            gone = self.find_gone(paths[int(number)])
            live[of_file] = ~contains(gone, found.rows[of_file])
        return keys[live], found.take(live)

    def group(self, entries: Entries) -> Mapping[str, BitMap]:
        """Rows by the paths of their files."""
        paths, files = self._require().list_paths(), entries.files
        return {
            paths[int(number)]: BitMap(entries.rows[files == number]) for number in np.unique(files)
        }

    def list_by_file(self, entries: Entries) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """Rows that are in the order of their files: of each file its path, and the numbers."""
        paths = self._require().list_paths()
        for number in np.unique(entries.files):
            yield paths[int(number)], entries.rows[entries.files == number].astype(np.int64)

    def find_gone(self, path: str) -> BitMap:
        """The rows of a file that are gone."""
        return self._vectors[path][1]

    def set_gone(self, path: str, vector: M, gone: BitMap) -> None:
        """The vector that a file is about to have. If it is not committed, what the version has is
        read again."""
        self._vectors[path] = (vector, gone)

    def add(self, path: str, hashes: tuple[Words, Words], stamps: NDArray[np.int64]) -> None:
        """The rows of a file that this writer has just committed, in their order."""
        index = self._require()
        number = index.take_number()
        try:
            index.add(path, None, number, [Entries.of_rows(number, 0, hashes, stamps)])
        except (OSError, FileWriteError) as error:
            KEY_INDEX_BEHIND.log(LOG, path=path, error=error)

    def stage(self, path: str, start: int, rows: pa.Table, key: Sequence[str]) -> None:
        """Rows, from the number ``start`` on, of a file that is being written. What the index does
        not get is read when the file is there."""
        index = self._index
        if index is None or self._key != tuple(key):
            return
        staged = self._staged.setdefault(path, StagedFile(index, index.take_number()))
        if staged.index is not index or staged.rows != start:
            return
        hashes = hash_keys(rows.select(list(key)), index.points)
        stamps = to_micros(rows.column(find_order(rows.column_names)).combine_chunks())
        try:
            index.stage(staged.number, Entries.of_rows(staged.number, start, hashes, stamps))
        except (OSError, FileWriteError) as error:
            KEY_INDEX_BEHIND.log(LOG, path=path, error=error)
            return
        staged.rows += rows.num_rows

    def settle_staged(self, snapshot: TableVersion[F]) -> None:
        """As ``settle``, for a version with files that were staged."""
        for path, staged in self._staged.items():
            file = snapshot.files.get(path)
            whole = file is not None and file.rows == staged.rows
            if file is not None and whole and staged.index is self._index:
                staged.index.adopt(path, file.vector, staged.number)
        if self._index is not None:
            self.settle(snapshot)

    def unstage(self) -> None:
        """What was staged is given up, or there."""
        self._staged = {}
        if self._index is not None:
            self._index.unstage()

    def _require(self) -> KeyIndex[M]:
        assert self._index is not None, "follow comes first"
        return self._index

    def _open_index(self, snapshot: TableVersion[F]) -> KeyIndex[M]:
        """The index, which is read or begun when it is first used, or for another key."""
        types = [(name, str(snapshot.schema.field(name).type)) for name in self._key]
        described = json.dumps([snapshot.id, types])
        if self._index is None or self._index.key != described:
            self._index = KeyIndex(index_folder(self._path), described, self._parse)
        return self._index

    def _follow(self, snapshot: TableVersion[F], index: KeyIndex[M], trusted: bool) -> None:
        """Makes the index that of a version. Files that it does not know are read, and those in
        which rows may have come back, unless the version is ``trusted``: written by this writer."""
        stale = index.files.keys() - snapshot.files.keys()
        index.forget(stale)
        changed = bool(stale)
        for path, file in snapshot.files.items():
            self._read_vector(file)
            known = index.files.get(path)
            if known is not None and known.vector == file.vector:
                continue
            changed = True
            if known is not None and (trusted or self._has_less(file, known.vector)):
                index.set_vector(path, file.vector)
            else:
                number = index.take_number()
                entries = self._read_keys(snapshot, file, number, index)
                index.add(path, file.vector, number, entries)
        self._vectors = {path: self._vectors[path] for path in snapshot.files}
        if changed:
            index.save({path: gone for path, (_, gone) in self._vectors.items()})

    def _read_vector(self, file: F) -> None:
        known = self._vectors.get(file.path)
        if known is None or known[0] != file.vector:
            self._vectors[file.path] = (file.vector, self._files.read_vector(file.vector))

    def _has_less(self, file: F, before: M | None) -> bool:
        """Whether no row of a file has come back since a vector; what VACUUM has removed may have
        had any."""
        try:
            return self._files.read_vector(before) <= self._vectors[file.path][1]
        except (OSError, ReplicaError):
            return False

    def _read_keys(
        self, snapshot: TableVersion[F], file: F, number: int, index: KeyIndex[M]
    ) -> Iterator[Entries]:
        """The entries of all rows of a file, as many at a time as a run may have."""
        schema, key = snapshot.schema, self._key
        stamp = find_order(schema.names)
        parts: list[Entries] = []
        for start, batch in self._files.iterate_rows(file, schema, [*key, stamp]):
            hashes = hash_keys(batch.select(list(range(len(key)))), index.points)
            parts.append(Entries.of_rows(number, start, hashes, to_micros(batch.column(len(key)))))
            if sum(map(len, parts)) > RUN_ROWS_MAX // 2:
                yield Entries.join(parts)
                parts = []
        if parts:
            yield Entries.join(parts)


def to_micros(stamps: pa.Array) -> NDArray[np.int64]:
    """Commit timestamps as numbers; ``NEVER`` for NULL."""
    micros = stamps.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    return np.asarray(micros.fill_null(NEVER))


def index_folder(path: str) -> Path:
    """Where the index of a copy is: in its folder, or, if that is in an object store, in the cache
    of this user."""
    if "://" not in path:
        return Path(path) / FOLDER
    name = hashlib.blake2b(path.encode(), digest_size=16).hexdigest()
    return find_cache_folder() / "keys" / name
