"""Files by table and time, whole and never changed: every change once.

``FOLDER/TABLE/hour=2026-11-27-18/00000000.jsonl.gz``: a window adds one file at most to each folder
of an hour. Files are numbered, and created only where there is none of the number: of two instances
one has written it. How far its folder is written stands in each file, so that a window that comes
again adds only what is not there (docs/sinks.md#files).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import BinaryIO, Generic, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from watcher.model.change import Change, Operation
from watcher.model.errors import ConfigurationError, SinkUnavailableError
from watcher.model.window import BEGINNING
from watcher.process.failpoints import failpoint
from watcher.replica.cuts.owner import Owner, OwnerFile
from watcher.replica.stores.stored_files import (
    create_new,
    explain_store,
    list_names,
    open_file_system,
    write_whole,
)
from watcher.settings.destinations import FilesDestination
from watcher.settings.watcher import WatchConfig
from watcher.spanner.timestamps import format_timestamp

DIGITS = 8
BACKFILL = "backfill"
"""In place of the time: rows of a backfill are older than what is written already."""
WATERMARK = "_watermark.json"
"""Readers of data skip files that begin with an underscore."""
PATTERNS = {"hour": "%Y-%m-%d-%H", "day": "%Y-%m-%d"}


class Content(Protocol):
    """What a file is going to have."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was added."""
        ...

    def finish(self, written: int) -> bytes:
        """The file, which says up to which commit timestamp its folder is written."""
        ...


AnyContent = TypeVar("AnyContent", bound=Content)


@dataclass(slots=True)
class NextFile(Generic[AnyContent]):
    """The next file of a folder, whose files have all changes up to the commit timestamp
    ``written``; ``newest`` is the newest of those to come (microseconds since 1970)."""

    number: int
    written: int
    content: AnyContent
    newest: int = BEGINNING


class TimedFiles(ABC, Generic[AnyContent]):
    """A ``HeldSink`` over such a folder; a window is held in memory."""

    suffix: str

    def __init__(self, destination: FilesDestination, config: WatchConfig) -> None:
        """Opens nothing yet."""
        self._destination = destination
        self._partition_by = config.delivery.files.partition_by
        self._owner = Owner(config.address.path, str(config.consumer), f"changes{self.suffix}")
        self._owner_file = OwnerFile(destination.folder, "use another folder")
        self._files, base = open_file_system(destination.folder)
        self._base = PurePosixPath(base)
        self._next: dict[str, NextFile[AnyContent]] = {}
        self._resolved: int | None = None

    @abstractmethod
    def _begin(self) -> AnyContent:
        """The content of a file that has none yet."""

    @abstractmethod
    def _read_written(self, file: BinaryIO) -> int | None:
        """What ``Content.finish`` was told of a file; None for one of somebody else."""

    @abstractmethod
    def write_change(self, change: Change) -> None:
        """As ``ChangeSink.write_change``."""

    # As ``HeldSink``.

    def refuse_others(self) -> None:
        """Raises ConfigurationError for the folder of another consumer, and ReplicaError for one
        that cannot be read."""
        there = self._owner_file.read()
        if there is not None and there != self._owner:
            raise self._owner_file.refuse(there, self._owner)

    def open(self) -> None:
        """As ``HeldSink.open``. Raises as ``refuse_others``."""
        self._owner_file.claim(self._owner)

    def close(self) -> None:
        """As ``HeldSink.close``."""
        self.discard()

    def resolved(self, micros: int) -> None:
        """As ``ChangeSink.resolved``."""
        self._resolved = micros

    def flush(self) -> None:
        """As ``ChangeSink.flush``. Raises SinkUnavailableError where somebody else has written a
        file meanwhile, also this instance without hearing of it."""
        for folder, following in sorted(self._next.items()):
            if not following.content.is_empty:
                self._create(folder, following)
                failpoint("after-file")
        if self._resolved is not None:
            text = json.dumps({"resolved": format_timestamp(self._resolved)})
            write_whole(self._files, self._base, WATERMARK, text.encode())
            self._resolved = None

    def discard(self) -> None:
        """As ``ChangeSink.discard``. What is there is looked for again."""
        self._next.clear()
        self._resolved = None

    # Folders.

    def _find_file(self, change: Change, backfill: bool = False) -> NextFile[AnyContent] | None:
        """The file that a change goes into; None where it is in one already."""
        at, backfill = change.commit_timestamp, backfill or change.operation is Operation.READ
        following = self._find_next(self._name_folder(change.table, at, backfill))
        if at <= following.written and not backfill:
            return None
        following.newest = max(following.newest, at)
        return following

    def _find_files(
        self, tables: pa.Array, commits: pa.Array, backfill: bool
    ) -> Iterator[tuple[NextFile[AnyContent], pa.Array]]:
        """The files that the rows of a batch go into, and which rows of it, as a mask: those that
        are in one already are in none of them. ``commits`` are timestamps."""
        micros = commits.cast(pa.int64())
        for folder, inside in self._divide(tables, commits, backfill):
            following = self._find_next(folder)
            written = BEGINNING - 1 if backfill else following.written
            lacking = pc.and_(inside, pc.greater(micros, written))
            newest = pc.max(micros.filter(lacking)).as_py()
            if newest is not None:
                following.newest = max(following.newest, newest)
                yield following, lacking

    def _divide(
        self, tables: pa.Array, commits: pa.Array, backfill: bool
    ) -> Iterator[tuple[str, pa.Array]]:
        """Each folder that rows of a batch belong to, and which of them, as a mask."""
        if backfill:
            starts = pa.repeat(pa.scalar(BEGINNING, pa.int64()), len(commits))
        else:
            starts = pc.floor_temporal(commits, unit=self._partition_by).cast(pa.int64())
        both = pa.table([tables, starts], ["table", "start"])
        for each in both.group_by(["table", "start"]).aggregate([]).to_pylist():
            inside = pc.and_(pc.equal(tables, each["table"]), pc.equal(starts, each["start"]))
            yield self._name_folder(each["table"], each["start"], backfill), inside

    def _name_folder(self, table: str, micros: int, backfill: bool) -> str:
        """The folder of a table and a time in it."""
        at = datetime.fromtimestamp(micros // 1_000_000, UTC)
        time = BACKFILL if backfill else at.strftime(PATTERNS[self._partition_by])
        return f"{self._destination.name_topic(table)}/{self._partition_by}={time}"

    def _find_next(self, folder: str) -> NextFile[AnyContent]:
        """The next file of a folder, which is looked at once."""
        if folder not in self._next:
            names = list_names(self._files, self._base / folder, self.suffix)
            number = int(names[-1].removesuffix(self.suffix)) + 1 if names else 0
            written = self._look(str(self._base / folder / names[-1])) if names else BEGINNING
            self._next[folder] = NextFile(number, written, self._begin())
        return self._next[folder]

    def _look(self, path: str) -> int:
        """Up to which commit timestamp a folder is written, whose last file this is. Raises
        ConfigurationError for a file of somebody else."""
        with explain_store(path), self._files.open_input_file(path) as file:
            written = self._read_written(file)
        if written is None:
            raise ConfigurationError(
                f"{path} is no file that spanner-watcher has written: use another folder for"
                " delivery.to, or move the file out of it"
            )
        return written

    def _create(self, folder: str, following: NextFile[AnyContent]) -> None:
        written = max(following.newest, following.written)
        name = f"{folder}/{following.number:0{DIGITS}}{self.suffix}"
        content = following.content.finish(written)
        if not create_new(self._destination.folder, name, content):
            raise SinkUnavailableError(
                f"{self._destination}/{name} is there already, of an instance that was replaced or"
                " of a call without an answer: the window is delivered again, without what the file"
                " has"
            )
        self._next[folder] = NextFile(following.number + 1, written, self._begin())
