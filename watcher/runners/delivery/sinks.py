"""Where the scheduled poller puts changes: JSON lines to a stream or to rotating files, or a
function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol, TextIO, runtime_checkable

from watcher.captures import Changed
from watcher.captures.changes import iterate_changes
from watcher.captures.poll import PollCapture
from watcher.envelopes.lines import JsonLines
from watcher.model.change import Change
from watcher.process.line_files import LineFile
from watcher.process.terminal.console import explain_output
from watcher.runners.callbacks import Callback

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

    @property
    def unfinished(self) -> bool:
        """Whether the next window has something to do even if nothing has changed."""
        ...

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


@runtime_checkable
class HeldSink(ChangeSink, Protocol):
    """A ``ChangeSink`` that one instance at a time has, from the acquisition of its lease on."""

    def open(self) -> None:
        """Takes it; nothing where this instance has it."""
        ...

    def close(self) -> None:
        """Gives it back, with all that was flushed."""
        ...


class CallbackSink:
    """Calls a function with each batch; it is delivered when the function returns."""

    def __init__(self, callback: Callable[[Changed], object]) -> None:
        """Raises ConfigurationError as ``Callback`` does."""
        self._callback = Callback(callback)

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
        """Raises ConfigurationError as ``Callback`` does."""
        self._callback = Callback(callback)

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


class EachTransaction:
    """A ``Sink`` that calls a function with all changes of one commit timestamp, over all tables;
    of a change stream with those of one transaction.

    They must come in that order. ``check`` raises when this instance may not deliver any more: it
    is called before every transaction.
    """

    def __init__(
        self,
        callback: Callback[tuple[Change, ...]],
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
