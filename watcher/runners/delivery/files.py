"""Lines in files by table and time, whole and never changed: every change once.

``FOLDER/TABLE/hour=2026-11-27-18/00000000.jsonl.gz``: a window adds one file at most to each folder
of an hour. Files are numbered, and created only where there is none of the number: of two instances
one has written it. How far its folder is written stands in the head of each file, so that a window
that comes again adds only what is not there (docs/sinks.md#files).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath

import pyarrow as pa
import pyarrow.compute as pc

from watcher.captures import COMMIT_TIMESTAMP_COLUMN
from watcher.envelopes.lines import JsonLines
from watcher.model.change import Change, Operation
from watcher.model.errors import ConfigurationError, SinkUnavailableError
from watcher.model.window import BEGINNING
from watcher.process.failpoints import failpoint
from watcher.process.gzip_texts import GzipText, read_name
from watcher.replica.owner import Owner, OwnerFile
from watcher.replica.stored_files import (
    create_new,
    explain_store,
    list_names,
    open_file_system,
    write_whole,
)
from watcher.settings.destinations import FilesDestination
from watcher.settings.watcher import WatchConfig
from watcher.spanner.timestamps import format_timestamp

SUFFIX = ".jsonl.gz"
DIGITS = 8
NAME_BYTES_MAX = 256
"""Of the beginning of a file that has its name."""
BACKFILL = "backfill"
"""In place of the time: rows of a backfill are older than what is written already."""
WATERMARK = "_watermark.json"
"""Readers of data skip files that begin with an underscore."""
PATTERNS = {"hour": "%Y-%m-%d-%H", "day": "%Y-%m-%d"}


@dataclass(slots=True)
class NextFile:
    """The next file of a folder, whose files have all changes up to the commit timestamp
    ``written`` (microseconds since 1970)."""

    number: int
    written: int
    newest: int = 0
    content: GzipText = field(default_factory=GzipText)

    def append(self, text: bytes, newest: int) -> None:
        """Adds lines, the newest of which is of this commit timestamp."""
        self.content.append(text)
        self.newest = max(self.newest, newest)

    @property
    def name(self) -> str:
        """Its name in the folder."""
        return f"{self.number:0{DIGITS}}{SUFFIX}"


class FilesSink:
    """A ``HeldSink`` that writes files of lines; a window is held in memory, compressed."""

    def __init__(
        self, destination: FilesDestination, partition_by: str, lines: JsonLines, owner: Owner
    ) -> None:
        """Opens nothing yet."""
        self.lines = lines
        self._destination = destination
        self._partition_by = partition_by
        self._owner = owner
        self._owner_file = OwnerFile(destination.folder, "use another folder")
        self._files, base = open_file_system(destination.folder)
        self._base = PurePosixPath(base)
        self._next: dict[str, NextFile] = {}
        self._resolved: int | None = None

    def check(self) -> None:
        """Raises ConfigurationError for the folder of another consumer, and ReplicaError for one
        that cannot be read."""
        there = self._owner_file.read()
        if there not in (None, self._owner):
            raise self._owner_file.refuse(there, self._owner)

    def open(self) -> None:
        """As ``HeldSink.open``. Raises as ``check``."""
        self._owner_file.claim(self._owner)

    def close(self) -> None:
        """As ``HeldSink.close``."""
        self.discard()

    def write_change(self, change: Change) -> None:
        """As ``ChangeSink.write_change``."""
        lines = [f"{line}\n" for line in self.lines.encode(change)]
        at, backfill = change.commit_timestamp, change.operation is Operation.READ
        following = self._find_next(change.table, self._name_time(at, backfill))
        if backfill or at > following.written:
            following.append("".join(lines).encode(), at)

    def write_messages(self, messages: pa.RecordBatch, backfill: bool) -> None:
        """Takes the messages of a batch, rows of ``watcher.envelopes.batches.MESSAGE``."""
        for table, time, inside in self._split(messages, backfill):
            following = self._find_next(table, time)
            commits = inside.column(COMMIT_TIMESTAMP_COLUMN).cast(pa.int64())
            lacking = inside.filter(pc.greater(commits, -1 if backfill else following.written))
            if lacking.num_rows:
                following.append(self.lines.join(lacking), pc.max(commits).as_py())

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

    def _create(self, folder: str, following: NextFile) -> None:
        written = max(following.newest, following.written)
        content = following.content.finish(f"{written}.jsonl")
        if not create_new(self._destination.folder, f"{folder}/{following.name}", content):
            raise SinkUnavailableError(
                f"{self._destination}/{folder}/{following.name} is there already, of an instance"
                " that was replaced or of a call without an answer: the window is delivered again,"
                " without what the file has"
            )
        self._next[folder] = NextFile(following.number + 1, written)

    def _split(
        self, messages: pa.RecordBatch, backfill: bool
    ) -> Iterator[tuple[str, str, pa.RecordBatch]]:
        """The messages of each table and time."""
        commits = messages.column(COMMIT_TIMESTAMP_COLUMN)
        starts = pc.floor_temporal(commits, unit=self._partition_by).cast(pa.int64())
        if backfill:
            starts = pa.repeat(pa.scalar(0, pa.int64()), messages.num_rows)
        tables = messages.column("table")
        groups = pa.table([tables, starts], ["table", "start"]).group_by(["table", "start"])
        for each in groups.aggregate([]).to_pylist():
            inside = pc.and_(pc.equal(tables, each["table"]), pc.equal(starts, each["start"]))
            yield each["table"], self._name_time(each["start"], backfill), messages.filter(inside)

    def _name_time(self, micros: int, backfill: bool) -> str:
        """The folder of a time in that of a table."""
        if backfill:
            return f"{self._partition_by}={BACKFILL}"
        at = datetime.fromtimestamp(micros // 1_000_000, UTC)
        return f"{self._partition_by}={at.strftime(PATTERNS[self._partition_by])}"

    def _find_next(self, table: str, time: str) -> NextFile:
        """The next file of a folder, which is looked at once."""
        folder = f"{self._destination.name_topic(table)}/{time}"
        if folder not in self._next:
            self._next[folder] = self._look(folder)
        return self._next[folder]

    def _look(self, folder: str) -> NextFile:
        path = self._base / folder
        names = list_names(self._files, path, SUFFIX)
        if not names:
            return NextFile(0, BEGINNING)
        number = int(names[-1].removesuffix(SUFFIX))
        return NextFile(number + 1, self._read_written(path, names[-1]))

    def _read_written(self, folder: PurePosixPath, name: str) -> int:
        """Up to which commit timestamp a folder is written, whose last file this is. Raises
        ConfigurationError for a file of somebody else."""
        path = str(folder / name)
        with explain_store(path), self._files.open_input_stream(path, compression=None) as stream:
            written, _, _ = (read_name(stream.read(NAME_BYTES_MAX)) or "").partition(".")
        if not written.isdecimal():
            raise ConfigurationError(
                f"{path} is no file that spanner-watcher has written: use another folder for"
                " delivery.to, or move the file out of it"
            )
        return int(written)


def open_sink(config: WatchConfig, destination: FilesDestination) -> FilesSink:
    """As ``queues.open_queue``. Raises as ``FilesSink.check``. Nothing is written before the
    watcher has its lease."""
    owner = Owner(config.address.path, str(config.consumer), "changes")
    lines = JsonLines(config.message_format)
    sink = FilesSink(destination, config.delivery.files.partition_by, lines, owner)
    sink.check()
    return sink
