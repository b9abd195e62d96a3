"""An index of the keys of a copy: in which data file, and in which row there, a key is.

It is a cache in a folder of this machine: runs of entries in the order of the keys' hashes, which
never change, and a list of them with the data files that they have. What it does not have is read
from the copy's key columns; so a lost, a torn or an old one costs time, and nothing else. A row
that is gone keeps its entry until runs are merged.
"""

from __future__ import annotations

import json
import math
import secrets
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from watcher.process.private_files import make_folder, replace_file
from watcher.replica.keys.hashes import Words, draw_points
from watcher.replica.writing.live_files import M

FORMAT = 1
NAME, SUFFIX = "index.json", ".run"
ENTRY_BYTES = 32
RUN_ROWS_MAX = 1 << 22
"""Larger runs are not merged, so that a merge needs a bounded memory."""
FAN = 8
"""So many runs of about one size become one of the next size."""
ABANDONED_SECONDS = 86_400.0
"""A run of another instance that is not listed for so long never will be."""
NEVER = np.iinfo(np.int64).min
"""The timestamp of a row that has none."""


@dataclass(frozen=True, slots=True)
class IndexedFile(Generic[M]):
    """A data file whose rows have entries, all but those of its ``vector``, if not more. Entries
    name the file by its number."""

    number: int
    vector: M | None

    def to_stored(self) -> dict[str, Any]:
        """As it is stored."""
        vector = None if self.vector is None else self.vector.to_stored()
        return {"number": self.number, "vector": vector}


@dataclass(frozen=True, slots=True)
class Entries:
    """Where keys are, in four columns: the two hashes of a key, the commit timestamp of its row in
    microseconds, and the number of its file (upper half) with that of the row in it."""

    first: Words
    second: Words
    stamps: NDArray[np.int64]
    addresses: Words
    """Of each the number of its file and its row."""

    def __len__(self) -> int:
        return len(self.first)

    @classmethod
    def of_rows(
        cls, number: int, start: int, hashes: tuple[Words, Words], stamps: NDArray[np.int64]
    ) -> Entries:
        """Those of the rows of a file from one on, in their order."""
        rows = np.arange(start, start + len(stamps), dtype=np.uint64)
        return cls(*hashes, stamps, rows | np.uint64(number << 32))

    @classmethod
    def join(cls, parts: Sequence[Entries]) -> Entries:
        """All of them."""
        columns = zip(*map(columns_of, parts), strict=True)
        return cls(*map(np.concatenate, columns))

    def take(self, chosen: NDArray[Any]) -> Entries:
        """Some of them."""
        return Entries(*(column[chosen] for column in columns_of(self)))

    def sort(self) -> Entries:
        """In the order of the first hash."""
        return self.take(np.argsort(self.first))

    @property
    def files(self) -> NDArray[np.int64]:
        """The numbers of the files."""
        return (self.addresses >> np.uint64(32)).astype(np.int64)

    @property
    def rows(self) -> NDArray[np.uint32]:
        """The rows within the files."""
        return self.addresses.astype(np.uint32)


def columns_of(entries: Entries) -> tuple[NDArray[Any], ...]:
    """The columns, as they are stored one after another."""
    return (entries.first, entries.second, entries.stamps, entries.addresses)


@dataclass(frozen=True, slots=True)
class Run:
    """A stored run: its file, how many entries, and their checksum."""

    name: str
    rows: int
    checksum: int


class KeyIndex(Generic[M]):
    """The index of one copy, for keys that are described by ``key``: names and types."""

    def __init__(self, folder: Path, key: str, parse: Callable[[Mapping[str, Any]], M]) -> None:
        """``parse``: what ``Mark.to_stored`` has written."""
        self._folder = folder
        self._parse = parse
        self.key = key
        self.points = draw_points()
        self.files: dict[str, IndexedFile[M]] = {}
        self._next = 0
        self._staged: set[int] = set()
        self._runs: list[Run] = []
        self._opened: dict[str, Entries] = {}
        self._known: set[str] = set()
        self._load()

    def forget(self, paths: Collection[str]) -> None:
        """Files that the copy does not have any more, or in which rows have come back."""
        for path in paths:
            self.files.pop(path, None)

    def add(self, path: str, vector: M | None, number: int, entries: Iterable[Entries]) -> None:
        """The rows of a new file, a run each; they name it by a ``number`` that ``take_number``
        gave."""
        for each in entries:
            self._write_run(each.sort())
        self.files[path] = IndexedFile(number, vector)

    def stage(self, number: int, entries: Entries) -> None:
        """Rows of a file that is about to be added, by ``adopt``; until ``unstage`` they stay."""
        self._write_run(entries.sort())
        self._staged.add(number)

    def adopt(self, path: str, vector: M | None, number: int) -> None:
        """A file all of whose rows were staged."""
        self.files[path] = IndexedFile(number, vector)

    def unstage(self) -> None:
        """What was staged and not adopted goes when runs are merged."""
        self._staged = set()

    def take_number(self) -> int:
        """The number of a file that is about to be added. None is given twice."""
        self._next += 1
        return self._next - 1

    def list_paths(self) -> Mapping[int, str]:
        """The files by their numbers."""
        return {each.number: path for path, each in self.files.items()}

    def set_vector(self, path: str, vector: M | None) -> None:
        """Rows of a file have gone."""
        self.files[path] = replace(self.files[path], vector=vector)

    def find(self, hashes: tuple[Words, Words]) -> tuple[NDArray[np.int64], Entries]:
        """The entries of keys, and for each the index of its key in ``hashes``. Rows that are gone
        may be among them; files that are not in ``files`` are not."""
        order = np.argsort(hashes[0])
        first, second = hashes[0][order], hashes[1][order]
        keys, found = [np.empty(0, np.int64)], [EMPTY]
        for entries in self._iterate_runs():
            queries, chosen = find_equal(entries.first, first)
            same = entries.second[chosen] == second[queries]
            keys.append(order[queries[same]])
            found.append(entries.take(chosen[same]))
        joined = Entries.join(found)
        known = np.isin(joined.files, self._list_numbers())
        return np.concatenate(keys)[known], joined.take(known)

    def save(self, gone: Mapping[str, BitMap]) -> None:
        """Stores the list; ``gone`` are the rows of each file that have gone."""
        self._merge_runs(gone)
        text = json.dumps(
            {
                "format": FORMAT,
                "key": self.key,
                "points": self.points,
                "next": self._next,
                "files": {path: each.to_stored() for path, each in self.files.items()},
                "runs": [asdict(each) for each in self._runs],
            }
        )
        self._write(NAME, text.encode())
        self._remove_others()

    def _load(self) -> None:
        """Takes what is stored if it is whole, of this format and of this key."""
        try:
            stored = json.loads((self._folder / NAME).read_bytes())
            if stored["format"] != FORMAT or stored["key"] != self.key:
                return
            runs = [Run(**each) for each in stored["runs"]]
            opened = {run.name: self._open(run) for run in runs}
            files = {path: self._parse_file(each) for path, each in stored["files"].items()}
            points, number = (stored["points"][0], stored["points"][1]), stored["next"]
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            return
        self.points, self.files, self._next = points, files, number
        self._runs, self._opened = runs, opened
        self._known.update(opened)

    def _parse_file(self, stored: Mapping[str, Any]) -> IndexedFile[M]:
        vector = stored["vector"]
        return IndexedFile(stored["number"], None if vector is None else self._parse(vector))

    def _open(self, run: Run) -> Entries:
        """A stored run, mapped. Raises ValueError for a torn one."""
        if run.rows == 0:
            return EMPTY
        words = np.memmap(self._folder / run.name, np.uint64, "r")
        if len(words) * 8 != run.rows * ENTRY_BYTES or zlib.crc32(words.data) != run.checksum:
            raise ValueError(f"{run.name} is torn")
        first, second, stamps, addresses = words.reshape(4, run.rows)
        return Entries(first, second, stamps.view(np.int64), addresses)

    def _iterate_runs(self) -> Iterator[Entries]:
        return (self._opened[run.name] for run in self._runs)

    def _list_numbers(self) -> list[int]:
        return [each.number for each in self.files.values()]

    def _write_run(self, entries: Entries) -> None:
        name = f"{secrets.token_hex(8)}{SUFFIX}"
        self._known.add(name)
        content = b"".join(column.tobytes() for column in columns_of(entries))
        self._write(name, content)
        run = Run(name, len(entries), zlib.crc32(content))
        self._opened[name] = self._open(run)
        self._runs.append(run)

    def _write(self, name: str, content: bytes) -> None:
        make_folder(self._folder)
        replace_file(self._folder / name, content)

    def _merge_runs(self, gone: Mapping[str, BitMap]) -> None:
        """Merges runs of about one size where there are many, without the rows that have gone."""
        while (chosen := self._choose_runs()) is not None:
            joined = Entries.join([self._opened[run.name] for run in chosen])
            self._runs = [run for run in self._runs if run not in chosen]
            self._write_run(joined.take(self._find_live(joined, gone)).sort())
            for run in chosen:
                del self._opened[run.name]

    def _choose_runs(self) -> list[Run] | None:
        sizes: dict[int, list[Run]] = {}
        for run in self._runs:
            if run.rows < RUN_ROWS_MAX // FAN:
                sizes.setdefault(int(math.log(max(run.rows, 1), FAN)), []).append(run)
        return next((runs for runs in sizes.values() if len(runs) >= FAN), None)

    def _find_live(self, entries: Entries, gone: Mapping[str, BitMap]) -> NDArray[np.bool_]:
        """Which rows of files that the copy has are there."""
        live = np.isin(entries.files, [*self._list_numbers(), *self._staged])
        for path, rows in gone.items():
            if path in self.files and len(rows):
                of_file = np.flatnonzero(entries.files == self.files[path].number)
                live[of_file] &= ~contains(rows, entries.rows[of_file])
        return live

    def _remove_others(self) -> None:
        """Removes runs that are not listed: merged, or of an index that was given up. One that
        another instance has just written is about to be listed."""
        listed = {run.name for run in self._runs}
        unlisted = {path.name: path for path in self._folder.glob(f"*{SUFFIX}")}
        for name in unlisted.keys() - listed:
            if name in self._known or is_old(unlisted[name]):
                unlisted[name].unlink(missing_ok=True)


EMPTY = Entries(
    np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.uint64)
)


def find_equal(column: Words, wanted: Words) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where numbers are in a sorted column, as pairs of indexes: in ``wanted``, and in the column.
    Each look at the column is a page of a large file: a second search is for those alone that are
    there."""
    begins = np.searchsorted(column, wanted, "left")
    inside = np.flatnonzero(begins < len(column))
    there = inside[column[begins[inside]] == wanted[inside]]
    begins = begins[there]
    counts = np.searchsorted(column, wanted[there], "right") - begins
    queries = np.repeat(there, counts)
    within = np.arange(len(queries)) - np.repeat(np.cumsum(counts) - counts, counts)
    return queries, np.repeat(begins, counts) + within


def is_old(path: Path) -> bool:
    """Whether nobody can be about to list a run; also where it is gone already."""
    try:
        return time.time() - path.stat().st_mtime > ABANDONED_SECONDS
    except FileNotFoundError:
        return True


def contains(rows: BitMap, wanted: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Which of these are in a set of rows."""
    both = rows & BitMap(wanted)
    return np.isin(wanted, np.array(both.to_array(), np.uint32))
