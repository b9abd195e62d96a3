"""The changes of a watcher for a ``for`` and an ``async for``, instead of a callback.

The watcher runs in a thread of its own and hands over one change at a time: it waits until the
reader has acknowledged it, as it waits for a callback to return. So promises are those of
callbacks.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Self

from watcher.model.change import Change
from watcher.model.errors import OutputClosedError, WatcherError
from watcher.model.log_events.running import WATCHER_FAILED_AT_END
from watcher.runners.watcher_run.lifecycle import READER_GONE

LOG = logging.getLogger("watcher")


class Changes:
    """The changes of a watcher, one after another; made by ``Watcher.changes``.

    A change is acknowledged when the next one is asked for, or by ``acknowledge``. What is not when
    the loop is left comes again at the next start, with the same id, and so does all of a window
    that was not acknowledged whole. The loop ends when the watcher does, and raises what ``run``
    raises. Leaving it, by ``break`` or an error, ends the watcher; in a ``with`` or an ``async
    with``, at the end of the block for certain.
    """

    def __init__(self, run: Callable[[], object], stop: Callable[[str], None]) -> None:
        """``run`` runs the watcher until it ends, ``stop`` ends it; nothing runs yet."""
        self._run = run
        self._stop = stop
        self._changed = threading.Condition()
        self._offered: Change | None = None
        """What the watcher hands over."""
        self._taken = False
        """The reader has it."""
        self._closed = False
        """There is no reader any more."""
        self._ended = False
        self._error: BaseException | None = None
        self._wake: Callable[[], object] = _do_nothing
        self._thread: threading.Thread | None = None

    # The reader.

    def acknowledge(self) -> None:
        """The change that was read last is done: it does not come again once all of its window are,
        also when no other one is asked for."""
        with self._changed:
            if self._taken:
                self._offered, self._taken = None, False
                self._changed.notify_all()

    def __iter__(self) -> Iterator[Change]:
        """Waits for each change. Raises as ``Watcher.run``, and WatcherError when it was read to
        its end before."""
        self._begin()
        try:
            while (change := self._wait()) is not None:
                yield change
                self.acknowledge()
        finally:
            self.close()

    async def __aiter__(self) -> AsyncIterator[Change]:
        """As ``__iter__``, in an event loop, which is not held up."""
        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        self._wake = lambda: loop.call_soon_threadsafe(woken.set)
        self._begin()
        try:
            while True:
                # Taken without an await in between: a task that is cancelled takes nothing along.
                woken.clear()
                change = self._take()
                if change is not None:
                    yield change
                    self.acknowledge()
                elif self._ended:
                    break
                else:
                    await woken.wait()
        finally:
            await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Ends the watcher and waits for its end: what is not acknowledged comes again."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        thread = self._thread
        if thread is None or self._ended:
            return
        self._stop(READER_GONE)
        thread.join()
        if self._error is not None:
            WATCHER_FAILED_AT_END.log(LOG, error=self._error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.close)

    def _begin(self) -> None:
        if self._thread is not None or self._closed:
            raise WatcherError("these changes are read already: call changes() again")
        self._thread = threading.Thread(target=self._work, name="changes", daemon=True)
        self._thread.start()

    def _wait(self) -> Change | None:
        with self._changed:
            self._changed.wait_for(lambda: self._offered is not None or self._ended)
        return self._take()

    def _take(self) -> Change | None:
        """What is there; None where there is nothing yet, or nothing any more. Raises what the
        watcher has ended with."""
        with self._changed:
            self._taken = self._offered is not None
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            return self._offered

    # The watcher, in its thread: this is its ``ChangeSink``.

    def _work(self) -> None:
        try:
            self._run()
        except BaseException as error:  # noqa: BLE001 (raised in the loop of the reader)
            self._error = error
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._wake_reader()

    def write_change(self, change: Change) -> None:
        """As ``ChangeSink.write_change``: returns when the reader has acknowledged it. Raises
        OutputClosedError when there is none any more."""
        with self._changed:
            self._offered, self._taken = change, False
            self._changed.notify_all()
        self._wake_reader()
        with self._changed:
            self._changed.wait_for(lambda: self._offered is None or self._closed)
            if self._offered is not None:
                self._offered = None
                raise OutputClosedError

    def _wake_reader(self) -> None:
        """Wakes an event loop; without one that runs there is no reader."""
        try:
            self._wake()
        except RuntimeError:
            with self._changed:
                self._closed = True

    def resolved(self, micros: int) -> None:
        """As ``ChangeSink.resolved``: the window is in every change."""

    def flush(self) -> None:
        """As ``ChangeSink.flush``: all that was taken is acknowledged."""

    def discard(self) -> None:
        """As ``ChangeSink.discard``: nothing waits here."""


def _do_nothing() -> None:
    """There is no event loop."""
