"""Which commits of a database are visible at which timestamp.

One commit is under way at a time. Its timestamp is taken before its rows are written, so reads stay
below it until it is done: a strong read takes the greatest timestamp below it, a read at an exact
timestamp at or above it waits.
"""

from __future__ import annotations

import threading

from emulator.engine.clock import Clock

WAIT_SECONDS = 1.0


class Timeline:
    """The commit timestamps of one database."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._under_way: int | None = None
        self._last_change: dict[str, int] = {}
        self._floor = 0

    def restart(self, last_commit: int) -> None:
        """Makes all commits of the file visible; new timestamps are above them."""
        self._floor = last_commit
        self._clock.resume(last_commit)

    def begin_commit(self) -> int:
        """The timestamp of a commit; reads at or above it wait until ``end_commit``."""
        with self._changed:
            micros = self._clock.next()
            if self._under_way is None:
                self._under_way = micros
            return micros

    def end_commit(self) -> None:
        """The commits under way are visible, or were given up."""
        with self._changed:
            self._under_way = None
            self._changed.notify_all()

    def note_change(self, table: str, micros: int) -> None:
        """A commit under way changes a table (its name in lower case)."""
        self._last_change[table] = micros

    def last_change(self, table: str) -> int:
        """No commit above this timestamp that a snapshot shows has changed the table."""
        return self._last_change.get(table, self._floor)

    def strong(self) -> int:
        """A timestamp that sees every finished commit and that no later one can take."""
        with self._changed:
            now = self._clock.now()
            return now if self._under_way is None else min(now, self._under_way - 1)

    def wait_until_readable(self, micros: int) -> None:
        """Returns when every commit at or below the timestamp is visible and none can follow."""
        while (ahead := micros - self._clock.wall()) > 0:
            with self._changed:
                self._changed.wait(min(ahead / 1_000_000, WAIT_SECONDS))
        with self._changed:
            self._clock.observe(micros)
            while self._under_way is not None and self._under_way <= micros:
                self._changed.wait(WAIT_SECONDS)
