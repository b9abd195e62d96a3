"""Changes by table and time as compressed lines of an envelope."""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa

from watcher.captures import COMMIT_TIMESTAMP_COLUMN
from watcher.envelopes.lines import JsonLines
from watcher.model.change import Change
from watcher.process.gzip_texts import GzipText, read_name
from watcher.settings.destinations import FilesDestination
from watcher.settings.watcher import WatchConfig
from watcher.sinks.timed_files import TimedFiles

HEAD_BYTES_MAX = 256
"""Of a file, that has its name."""


class CompressedLines(GzipText):
    """The ``Content`` of a file of lines: how far its folder is written is the name in its head."""

    def finish(self, written: int) -> bytes:
        """As ``Content.finish``."""
        return self.finish_as(f"{written}.jsonl")


class LineFiles(TimedFiles[CompressedLines]):
    """``TimedFiles`` of lines, which is also a ``FileSink``."""

    suffix = ".jsonl.gz"

    def __init__(self, destination: FilesDestination, config: WatchConfig) -> None:
        """As ``TimedFiles``."""
        super().__init__(destination, config)
        self.lines = JsonLines(config.message_format)
        self._backfill = False

    def begin_batch(self, backfill: bool) -> None:
        """As ``FileSink.begin_batch``."""
        self._backfill = backfill

    def write_change(self, change: Change) -> None:
        """As ``ChangeSink.write_change``."""
        lines = [f"{line}\n" for line in self.lines.encode(change)]
        if (following := self._find_file(change, self._backfill)) is not None:
            following.content.append("".join(lines).encode())

    def write_messages(self, messages: pa.RecordBatch) -> None:
        """As ``FileSink.write_messages``."""
        tables, commits = messages.column("table"), messages.column(COMMIT_TIMESTAMP_COLUMN)
        for following, inside in self._find_files(tables, commits, self._backfill):
            following.content.append(self.lines.join(messages.filter(inside)))

    def _begin(self) -> CompressedLines:
        return CompressedLines()

    def _read_written(self, file: BinaryIO) -> int | None:
        written, _, _ = (read_name(file.read(HEAD_BYTES_MAX)) or "").partition(".")
        return int(written) if written.isdecimal() else None
