"""Loads of copies, chunk by chunk: how far one is, for how long a window goes on with it, and where
that is kept. The rules are L1 to L8 of docs/replica-protocol.md."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol

from watcher.process.failpoints import failpoint
from watcher.replica.cuts.stored import FORMAT, read_stored
from watcher.replica.stores.stored_files import (
    LOAD_ADVICE,
    list_names,
    open_file_system,
    write_whole,
)
from watcher.spanner.keys import Key

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER, SUFFIX = "_load", ".json"
CHUNK = "chunk"
"""The name of a chunk's ID in what its commit says of itself."""
ON = "on"
"""Of a chunk by Spark: the ID of the one that its writer knew as the newest."""
BEHIND_SHARE = 0.1
BEHIND_SECONDS_MIN = 10.0
"""A window that is younger is never behind, however short its chunks are."""


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """A load that has not read its table to the end. ``upto`` is the last key that was read, in the
    JSON of Spanner's API; ``rows`` and ``bytes`` (of Arrow's columns) are what all ``chunks`` had;
    ``began`` is the end of the window of the first one, in microseconds; ``share``: how much of the
    table is loaded, between 0 and 1, estimated by its keys; None: nobody knows."""

    upto: Key
    rows: int
    bytes: int
    chunks: int
    began: int
    share: float | None = None

    def explain(self) -> str:
        """For people."""
        about = "" if self.share is None else f", about {self.share:.0%}"
        return f"it is loaded up to the key {json.dumps(self.upto)}: {self.rows:,} rows{about}"

    def to_stored(self) -> dict[str, Any]:
        """As it is stored."""
        return {
            "upto": self.upto,
            "rows": self.rows,
            "bytes": self.bytes,
            "chunks": self.chunks,
            "began": self.began,
            "share": self.share,
        }

    @classmethod
    def from_stored(cls, stored: dict[str, Any]) -> LoadProgress:
        """As it was stored."""
        names = ("rows", "bytes", "chunks", "began")
        rows, size, chunks, began = (stored[name] for name in names)
        return cls(tuple(stored["upto"]), rows, size, chunks, began, stored.get("share"))


class Chunk(Protocol):
    """Rows of a table, for its copy."""

    @property
    def first(self) -> bool:
        """Whether they replace all rows that are there; else they are added."""
        ...

    @property
    def progress(self) -> LoadProgress | None:
        """Where the load is once the rows were read; None: at its end."""
        ...

    @property
    def key(self) -> Sequence[str]:
        """The columns of the table's primary key, in order; empty where that is not known."""
        ...

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Reads the rows, once."""
        ...


@dataclass(frozen=True, slots=True)
class WholeTable:
    """All rows of a table, as one chunk."""

    batches: Iterable[pa.RecordBatch]
    first: bool = True
    progress: LoadProgress | None = None
    key: Sequence[str] = ()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self.batches)


def parse_progress(stored: dict[str, Any]) -> LoadProgress | None:
    """As ``ProgressFiles.write`` has stored it."""
    return None if stored["whole"] else LoadProgress.from_stored(stored)


class ProgressFiles:
    """How far the load of one copy is, a file for each chunk, in its folder."""

    def __init__(self, path: str) -> None:
        self._files, base = open_file_system(path)
        self._folder = PurePosixPath(base) / FOLDER

    def write(self, chunk: str, progress: LoadProgress | None) -> None:
        """Notes where the load is after a chunk; None: at its end."""
        values = {"whole": True} if progress is None else {"whole": False, **progress.to_stored()}
        text = json.dumps({"format": FORMAT, **values})
        write_whole(self._files, self._folder, f"{chunk}{SUFFIX}", text.encode())

    def read(self, chunk: str) -> LoadProgress | None:
        """What ``write`` was given. Raises FileNotFoundError."""
        path = str(self._folder / f"{chunk}{SUFFIX}")
        return read_stored(self._files, path, parse_progress, f", or {LOAD_ADVICE}")

    def remove_others(self, chunk: str) -> None:
        """Removes what no commit names any more."""
        for name in list_names(self._files, self._folder, SUFFIX):
            if name != f"{chunk}{SUFFIX}":
                self._files.delete_file(str(self._folder / name))


class CopyLoad:
    """The load of one copy, as its writer knows it. ``progress`` is None where none is under
    way."""

    def __init__(self, path: str) -> None:
        self._files = ProgressFiles(path)
        self._chunk: str | None = None
        self.progress: LoadProgress | None = None

    @property
    def mark(self) -> dict[str, str]:
        """What a commit says of the load, but for those of chunks."""
        return {} if self._chunk is None else {CHUNK: self._chunk}

    def read(self, mark: Mapping[str, Any] | None) -> None:
        """Takes what the newest commit says. Raises FileNotFoundError where its file is gone."""
        self._chunk = self.progress = None
        name = None if mark is None else mark.get(CHUNK)
        if name is not None:
            self.progress = self._files.read(name)
            self._chunk = None if self.progress is None else name

    def is_newest(self, mark: Mapping[str, Any] | None) -> bool:
        """Whether the newest commit is of the load as it is known here."""
        return mark is not None and mark.get(CHUNK) == self._chunk

    def record(self, chunk: Chunk, name: str) -> Iterator[pa.RecordBatch]:
        """The rows of a chunk; then notes how far the load is, before they are committed."""
        yield from chunk
        self.note(chunk.progress, name)

    def note(self, progress: LoadProgress | None, name: str) -> None:
        """Notes how far the load is after a chunk that is not committed yet."""
        self._files.write(name, progress)
        failpoint("after-load-progress")

    def settle(self, progress: LoadProgress | None, name: str) -> None:
        """A chunk is committed."""
        self.progress = progress
        self._chunk = None if progress is None else name
        self._files.remove_others(name)


def name_chunk() -> str:
    """An ID that no other chunk has, whoever writes it."""
    return secrets.token_hex(8)


@dataclass(frozen=True, slots=True)
class ChunkLimit:
    """A chunk ends after so many seconds, and has so many rows at most (0: as many as come).
    ``parallelism``: how many ranges of its keys are read at once; ``data_boost``: on machines of
    Spanner's own."""

    seconds: float = 60.0
    rows: int = 0
    parallelism: int = 1
    data_boost: bool = False


CHUNK_LIMIT = ChunkLimit()
FIRST_ROWS, LEAST_ROWS = 1_000_000, 10_000
GROWTH = 4


class ChunkPace:
    """How many rows the next chunk has where that is planned before it is read: as many as were
    written in the time of a chunk, by the one before."""

    def __init__(self, limit: ChunkLimit) -> None:
        self._limit = limit
        self._rows = FIRST_ROWS

    @property
    def rows(self) -> int:
        """So many at most."""
        return min(self._rows, self._limit.rows) if self._limit.rows else self._rows

    def note(self, rows: int, seconds: float) -> None:
        """A chunk was written."""
        fitting = round(rows / max(seconds, 0.001) * self._limit.seconds)
        self._rows = max(LEAST_ROWS, min(fitting, GROWTH * self._rows))


class LoadBudget:
    """For how long one window loads tables: until a time, or until the process is to stop.
    ``lag_seconds``: how old the window's end was when it began."""

    def __init__(
        self,
        limit: ChunkLimit,
        lag_seconds: float = 0.0,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_stopping = is_stopping
        behind = lag_seconds > max(limit.seconds, BEHIND_SECONDS_MIN)
        # Of the lag: a load whose windows take long would hardly go on with short chunks.
        self._seconds = min(limit.seconds, lag_seconds * BEHIND_SHARE) if behind else limit.seconds
        self.rows = limit.rows
        self.parallelism = limit.parallelism
        self.data_boost = limit.data_boost
        self._ends_at: float | None = None

    def start(self) -> None:
        """The first chunk of the window begins."""
        if self._ends_at is None:
            self._ends_at = time.monotonic() + self._seconds

    @property
    def used_up(self) -> bool:
        """Whether the time is over."""
        if self._is_stopping():
            return True
        return self._ends_at is not None and time.monotonic() >= self._ends_at


class FirstError:
    """Batches, and what they raised: delta-rs keeps only the text of an error, and an error of
    Spanner is none of the store."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self.error: Exception | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._batches
        except Exception as error:
            self.error = error
            raise
