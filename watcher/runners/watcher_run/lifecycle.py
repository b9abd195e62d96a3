"""The state of a watcher, and what its owner or an operator asks of it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from watcher.consumers.states import Command, State

OWNER_STOPPED = "the program that runs it stopped it"
CAUGHT_UP = "everything up to its start was delivered (--once)"
READER_GONE = "the reader of its output has gone"


class Lifecycle:
    """Lasts as long as the watcher: its owner may ask it to stop, pause or drain before it runs."""

    def __init__(self, read_now: Callable[[], int]) -> None:
        """``read_now`` gives the timestamp of a strong read: where a drain ends."""
        self._read_now = read_now
        self.state = State.NOT_STARTED
        self.stopping = threading.Event()
        """Set when the run is to end. Each run has an event of its own."""
        self.drain_to: int | None = None
        """Deliver up to this timestamp, then stop."""
        self.obeyed: Command | None = None
        """The command of an operator that ends this run."""
        self.reason: str | None = None
        """Why this run ends, in words for operators; the first reason counts."""
        self._paused = threading.Event()
        self._paused_by_operator = False

    # Asked by the owner.

    def stop(self, reason: str = OWNER_STOPPED) -> None:
        """Ends the run after the window in progress; a run that has not begun ends when it does."""
        self.reason = self.reason or reason
        self.stopping.set()

    def pause(self) -> None:
        """Delivers nothing until ``resume``."""
        self._paused.set()
        self.state = State.PAUSED

    def resume(self) -> None:
        """Continues after ``pause``."""
        if self._paused.is_set():
            self._paused.clear()
            self.state = State.RUNNING

    def drain(self) -> None:
        """Delivers everything up to now, then stops."""
        if self.drain_to is None:
            self.drain_to = self._read_now()
            self._paused.clear()
            self.state = State.DRAINING

    # Asked by an operator.

    def obey(self, command: Command | None) -> None:
        """Does what an operator has asked for; None takes a pause back."""
        if command in (Command.STOP, Command.DRAIN):
            self.obeyed = command
            self.reason = self.reason or f"an operator sent the command {command}"
            self.stop() if command is Command.STOP else self.drain()
        elif command is Command.PAUSE:
            self._paused_by_operator |= not self._paused.is_set()
            self.pause()
        elif self._paused_by_operator:
            self._paused_by_operator = False
            self.resume()

    # Of a run.

    @property
    def paused(self) -> bool:
        """True while nothing may be delivered."""
        return self._paused.is_set()

    @property
    def interrupted(self) -> bool:
        """True when somebody has asked to pause or to stop."""
        return self.paused or self.stopping.is_set()

    def begin_run(self) -> None:
        """A run starts: what an operator asked of the one before is over."""
        self.state = State.STARTING
        self._paused_by_operator, self.obeyed = False, None
        if not self.stopping.is_set():
            self.reason = None

    def note_failure(self) -> None:
        """A window has failed and will be tried again."""
        self.state = State.FAILED

    def note_success(self) -> None:
        """A window was delivered."""
        if self.state is State.FAILED:
            self.state = State.RUNNING

    def end_run(self, failed: bool) -> None:
        """The run has ended; the next one may be asked for."""
        self.stopping, self.drain_to = threading.Event(), None
        self.state = State.FAILED_PERMANENTLY if failed else State.STOPPED
