"""Functions of the user as sinks: with batches, with changes, with transactions."""

from __future__ import annotations

from collections.abc import Callable

from watcher.captures import Changed
from watcher.captures.changes import iterate_changes
from watcher.model.change import Change
from watcher.sinks.callbacks import Callback

OnChange = Callable[[Change], object]
OnTransaction = Callable[[tuple[Change, ...]], object]


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
