"""Lines of JSON, to a stream or to rotating files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from watcher.envelopes.lines import JsonLines
from watcher.model.change import Change
from watcher.process.line_files import LineFile
from watcher.process.terminal.console import explain_output

PLAIN = JsonLines()


class Lines:
    """Writes the lines of an envelope, by default one JSON object a change, to a stream."""

    def __init__(self, file: TextIO, lines: JsonLines = PLAIN) -> None:
        self._file = file
        self.lines = lines

    def write_change(self, change: Change) -> None:
        """As ``ChangeSink.write_change``. Raises OutputClosedError when nobody reads the lines, and
        OutputWriteError."""
        self._write(list(self.lines.encode(change)))

    def append(self, text: bytes) -> None:
        """As ``LineSink.append``."""
        with explain_output():
            self._file.write(text.decode())

    def resolved(self, micros: int) -> None:
        """As ``ChangeSink.resolved``."""
        self._write(self.lines.encode_resolved(micros))

    def flush(self) -> None:
        """As ``ChangeSink.flush``. Raises as ``write_change``."""
        with explain_output():
            self._file.flush()

    def _write(self, lines: Iterable[str]) -> None:
        with explain_output():
            for line in lines:
                self._file.write(line + "\n")

    def discard(self) -> None:
        """What was written stays: the lines of the window come again."""


class RotatingFile:
    """A ``HeldSink`` that appends the lines of an envelope to a file, which is on the disk at every
    flush, and renamed to its name and the time once it has ``rotate_bytes``; never in the middle of
    a window."""

    def __init__(self, path: Path, rotate_bytes: int | None, lines: JsonLines = PLAIN) -> None:
        """Opens nothing yet."""
        self._file = LineFile(path)
        self._limit = rotate_bytes
        self.lines = lines

    def open(self) -> None:
        """As ``HeldSink.open``. Raises FileInUseError and FileWriteError."""
        self._file.open()

    def close(self) -> None:
        """As ``HeldSink.close``."""
        self._file.close()

    def write_change(self, change: Change) -> None:
        """As ``ChangeSink.write_change``. Raises FileWriteError."""
        self._file.append(list(self.lines.encode(change)))

    def append(self, text: bytes) -> None:
        """As ``LineSink.append``. Raises FileWriteError."""
        self._file.append_text(text)

    def resolved(self, micros: int) -> None:
        """As ``ChangeSink.resolved``."""
        lines = list(self.lines.encode_resolved(micros))
        if lines:
            self._file.append(lines)

    def flush(self) -> None:
        """As ``ChangeSink.flush``. Raises FileWriteError."""
        size = self._file.sync()
        if self._limit is not None and size >= self._limit:
            self._file.rotate()

    def discard(self) -> None:
        """What is in the file stays: the lines of the window come again."""
        self._file.discard()
