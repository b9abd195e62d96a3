"""What takes changes: all that a run asks of a sink."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from watcher.captures import Changed
from watcher.captures.changes import iterate_changes
from watcher.captures.poll import PollCapture
from watcher.model.change import Change


class WindowEnds(Protocol):
    """What every sink does at the end of a window."""

    def resolved(self, micros: int) -> None:
        """Everything up to and including this timestamp (microseconds since 1970) was written."""
        ...

    def flush(self) -> None:
        """Returns when everything that was taken is delivered."""
        ...

    def discard(self) -> None:
        """Drops what was taken and not delivered: the window has failed and is delivered again."""
        ...


class Sink(WindowEnds, Protocol):
    """Takes what changed. What was written must be safe when ``flush`` returns."""

    def write(self, rows: Changed) -> None:
        """Takes the rows of a batch."""
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


class ChangeSink(WindowEnds, Protocol):
    """Takes changes one by one.

    One that hands them on later, as queues do, raises RefusedChangesError for those that were
    refused, and SinkUnavailableError when the window has to be delivered again.
    """

    def write_change(self, change: Change) -> None:
        """Takes a change."""
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


class SinkAround:
    """A sink around another, which is told of the end of a window."""

    def __init__(self, inside: WindowEnds) -> None:
        self._inside = inside

    def resolved(self, micros: int) -> None:
        """As ``Sink.resolved``."""
        self._inside.resolved(micros)

    def flush(self) -> None:
        """As ``Sink.flush``."""
        self._inside.flush()

    def discard(self) -> None:
        """As ``Sink.discard``."""
        self._inside.discard()


class EachChange(SinkAround):
    """A ``Sink`` that hands every row to a ``ChangeSink``, as a change."""

    def __init__(self, sink: ChangeSink, database: str) -> None:
        super().__init__(sink)
        self._sink = sink
        self._database = database

    def write(self, rows: Changed) -> None:
        """As ``Sink.write``."""
        for change in iterate_changes(rows, self._database):
            self._sink.write_change(change)
