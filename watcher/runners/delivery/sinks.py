"""Where the scheduled poller puts changes: JSON lines to a stream or to rotating files, or a
function."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol, TextIO, runtime_checkable

from watcher.captures import Changed
from watcher.captures.changes import iterate_changes
from watcher.captures.poll import PollCapture
from watcher.change import Change
from watcher.envelopes.lines import JsonLines
from watcher.errors import OutputClosedError

TORN_BLOCK_BYTES = 65_536

OnChange = Callable[[Change], object]
OnTransaction = Callable[[tuple[Change, ...]], object]
PLAIN = JsonLines()


class Sink(Protocol):
    """Takes what changed. What was written must be safe when ``flush`` returns."""

    def write(self, rows: Changed) -> None:
        """Takes the rows of a batch."""
        ...

    def resolved(self, micros: int) -> None:
        """Everything up to and including this timestamp (microseconds since 1970) was written."""
        ...

    def flush(self) -> None:
        """Returns when everything that was taken is delivered."""
        ...

    def discard(self) -> None:
        """Drops what was taken and not delivered: the window has failed and is delivered again."""
        ...


@runtime_checkable
class WindowSink(Sink, Protocol):
    """A ``Sink`` that takes whole windows: it knows which tables a window is of."""

    def begin_window(
        self, end: int, starts: Mapping[str, int], captures: Mapping[str, PollCapture]
    ) -> None:
        """A window is read up to ``end``: of each table from its position, by the schema that is
        valid at the end. Tables whose position is above the end are not in it."""
        ...


class ChangeSink(Protocol):
    """Takes changes one by one.

    One that hands them on later, as queues do, raises RefusedChangesError for those that were
    refused, and SinkUnavailableError when the window has to be delivered again.
    """

    def write_change(self, change: Change) -> None:
        """Takes a change."""
        ...

    def resolved(self, micros: int) -> None:
        """As ``Sink.resolved``."""
        ...

    def flush(self) -> None:
        """Returns when everything that was taken is delivered."""
        ...

    def discard(self) -> None:
        """As ``Sink.discard``."""
        ...


class CallbackSink:
    """Calls a function with each batch; it is delivered when the function returns."""

    def __init__(self, callback: Callable[[Changed], object]) -> None:
        self._callback = callback

    def write(self, rows: Changed) -> None:
        """As ``Sink.write``."""
        self._callback(rows)

    def resolved(self, micros: int) -> None:
        """The windows are in the rows."""

    def flush(self) -> None:
        """Nothing is buffered."""

    def discard(self) -> None:
        """Nothing is buffered."""


class EachChange:
    """A ``Sink`` that hands every row to a ``ChangeSink``, as a change."""

    def __init__(self, sink: ChangeSink, database: str) -> None:
        self._sink = sink
        self._database = database

    def write(self, rows: Changed) -> None:
        """As ``Sink.write``."""
        for change in iterate_changes(rows, self._database):
            self._sink.write_change(change)

    def resolved(self, micros: int) -> None:
        """As ``Sink.resolved``."""
        self._sink.resolved(micros)

    def flush(self) -> None:
        """As ``Sink.flush``."""
        self._sink.flush()

    def discard(self) -> None:
        """As ``Sink.discard``."""
        self._sink.discard()


class CallbackEach:
    """Calls a function with each change."""

    def __init__(self, callback: OnChange) -> None:
        self._callback = callback

    def write_change(self, change: Change) -> None:
        """As ``ChangeSink.write_change``."""
        self._callback(change)

    def resolved(self, micros: int) -> None:
        """The window is in every change."""

    def flush(self) -> None:
        """Nothing is buffered."""

    def discard(self) -> None:
        """Each change is delivered when it is taken."""


class Lines:
    """Writes the lines of an envelope, by default one JSON object a change, to a stream."""

    def __init__(self, file: TextIO, lines: JsonLines = PLAIN) -> None:
        self._file = file
        self._lines = lines

    def write_change(self, change: Change) -> None:
        """As ``ChangeSink.write_change``."""
        self._write(list(self._lines.encode(change)))

    def resolved(self, micros: int) -> None:
        """As ``ChangeSink.resolved``."""
        self._write(self._lines.encode_resolved(micros))

    def flush(self) -> None:
        """As ``ChangeSink.flush``. Raises OutputClosedError when nobody reads the lines."""
        try:
            self._file.flush()
        except BrokenPipeError as error:
            raise OutputClosedError from error

    def _write(self, lines: Iterable[str]) -> None:
        try:
            for line in lines:
                self._file.write(line + "\n")
        except BrokenPipeError as error:
            raise OutputClosedError from error

    def discard(self) -> None:
        """What was written stays: the lines of the window come again."""


class RotatingFile(Lines):
    """As ``Lines``, into a file that is synced to the disk at every flush, and renamed to its
    name and the time once it has ``rotate_bytes``; never in the middle of a window."""

    def __init__(self, path: Path, rotate_bytes: int | None, lines: JsonLines = PLAIN) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        drop_torn_line(path)
        super().__init__(path.open("a"), lines)
        self._path = path
        self._limit = rotate_bytes

    def flush(self) -> None:
        """As ``ChangeSink.flush``."""
        super().flush()
        os.fsync(self._file.fileno())
        if self._limit is not None and self._file.tell() >= self._limit:
            self._file.close()
            self._path.rename(self._path.with_name(f"{self._path.name}.{time.time_ns()}"))
            self._file = self._path.open("a")


def drop_torn_line(path: Path) -> None:
    """Removes the part of a line that a crash left behind: its window is delivered again."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            first = max(0, end - TORN_BLOCK_BYTES)
            file.seek(first)
            newline = file.read(end - first).rfind(b"\n")
            if newline >= 0:
                file.truncate(first + newline + 1)
                return
            end = first
        file.truncate(0)


class EachTransaction:
    """A ``Sink`` that calls a function with all changes of one commit timestamp, over all tables;
    of a change stream with those of one transaction.

    They must come in that order. ``check`` raises when this instance may not deliver any more: it
    is called before every transaction.
    """

    def __init__(
        self,
        callback: OnTransaction,
        database: str,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._callback = callback
        self._database = database
        self._check = check
        self._pending: list[Change] = []

    def write(self, rows: Changed) -> None:
        """As ``Sink.write``."""
        for change in iterate_changes(rows, self._database):
            if self._pending and transaction_key(self._pending[0]) != transaction_key(change):
                self.flush()
            self._pending.append(change)

    def resolved(self, micros: int) -> None:
        """The window is in every change."""

    def flush(self) -> None:
        """As ``Sink.flush``: the last transaction of a window is whole, too."""
        if self._pending:
            self._check()
            transaction, self._pending = tuple(self._pending), []
            self._callback(transaction)

    def discard(self) -> None:
        """As ``Sink.discard``: the transaction in progress is delivered again, whole."""
        self._pending = []


def transaction_key(change: Change) -> tuple[int, str]:
    """What changes of one transaction share. Polling knows the commit timestamp alone."""
    return change.commit_timestamp, change.origin.transaction_id if change.origin else ""
