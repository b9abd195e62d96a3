"""Wakes the readers of a partition when it has something new; waiting costs nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from emulator.errors import resource_exhausted


class Signal:
    """What one reader waits on."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Wakes the reader."""
        self._event.set()

    def clear(self) -> None:
        """To be called before looking for news, so that none is missed."""
        self._event.clear()

    def wait(self, seconds: float) -> None:
        """Returns at the next news, or after so many seconds."""
        self._event.wait(max(seconds, 0.0))


class Signals:
    """The waiting readers of a database, by partition."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[int, set[Signal]] = {}
        self.closed = False

    def enter(self, partition: int, readers_max: int | None = None) -> Signal:
        """A reader of a partition; ``leave`` when it is done. Raises RESOURCE_EXHAUSTED where so
        many read it already."""
        signal = Signal()
        with self._lock:
            readers = self._waiting.get(partition, ())
            if readers_max is not None and len(readers) >= readers_max:
                raise resource_exhausted(
                    f"The change stream partition has {readers_max} concurrent readers already,"
                    " and takes no more."
                )
            self._waiting.setdefault(partition, set()).add(signal)
        return signal

    def leave(self, partition: int, signal: Signal) -> None:
        """Removes a reader."""
        with self._lock:
            readers = self._waiting[partition]
            readers.discard(signal)
            if not readers:
                del self._waiting[partition]

    def wake(self, partitions: Iterable[int]) -> None:
        """Wakes the readers of these partitions."""
        with self._lock:
            for partition in partitions:
                for signal in self._waiting.get(partition, ()):
                    signal.set()

    def close(self) -> None:
        """The database closes: wakes every reader, so that it ends."""
        with self._lock:
            self.closed = True
            for readers in self._waiting.values():
                for signal in readers:
                    signal.set()
