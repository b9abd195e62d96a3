"""The state of a watcher, and what its owner or an operator asks of it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from watcher.consumers.states import Command, State

OWNER_STOPPED = "the program that runs it stopped it"
CAUGHT_UP = "everything up to its start was delivered (--once)"
READER_GONE = "the reader of its output has gone"


class Lifecycle:
    """Lasts as long as the watcher: its owner may ask it to stop, pause or drain before it runs.

    Operators are seen at renewals of the lease only, and a command that is replaced in between
    never is. So what a run does follows from their newest command, not from those before it: a
    pause takes back a drain, a drain a pause, and no command both of them
    (docs/protocol.md, rule 7).
    """

    def __init__(self, read_now: Callable[[], int]) -> None:
        """``read_now`` gives the timestamp of a strong read: where a drain ends."""
        self._read_now = read_now
        self.state = State.NOT_STARTED
        self.stopping = threading.Event()
        """Set when the run is to end. Each run has an event of its own."""
        self.obeyed: Command | None = None
        """The command of an operator that has ended this run."""
        self.reason: str | None = None
        """Why this run ends, in words for operators; the first reason counts."""
        self._paused = False
        self._drain_to: int | None = None
        self.command: Command | None = None
        """What operators ask for now."""
        self._command_drain_to = 0
        self.done: Command | None = None
        """A command that was obeyed while the run goes on: the next renewal takes it back."""

    # Asked by the owner.

    def stop(self, reason: str = OWNER_STOPPED) -> None:
        """Ends the run after the window in progress; a run that has not begun ends when it does."""
        self.reason = self.reason or reason
        self.stopping.set()

    def pause(self) -> None:
        """Delivers nothing until ``resume``."""
        self._paused = True
        self._set_active_state()

    def resume(self) -> None:
        """Continues after ``pause``, also with a drain that was paused."""
        if self._paused:
            self._paused = False
            self._set_active_state()

    def drain(self) -> None:
        """Delivers everything up to now, then stops. Ends a pause of the owner."""
        if self._drain_to is None or self._paused:
            self._drain_to = self._read_now()
            self._paused = False
            self._set_active_state()

    # Asked by an operator.

    def obey(self, command: Command | None) -> None:
        """Does what operators ask for now; None: nothing, or nothing any more."""
        if command is self.command:
            return
        if command is Command.DRAIN:
            self._command_drain_to = self._read_now()
        self.command = command
        if command is Command.STOP:
            self._end_by_command()
        else:
            self._set_active_state()

    def _end_by_command(self) -> None:
        self.obeyed = self.command
        self.stop(f"an operator sent the command {self.command}")

    # Of a run.

    @property
    def paused(self) -> bool:
        """True while nothing may be delivered. A pause of the owner does not hold up a drain that
        an operator asks for."""
        if self.command in (Command.PAUSE, Command.DRAIN):
            return self.command is Command.PAUSE
        return self._paused

    @property
    def drain_to(self) -> int | None:
        """Deliver up to this timestamp, then stop."""
        if self.command is Command.DRAIN:
            return max(self._command_drain_to, self._drain_to or 0)
        return self._drain_to

    @property
    def replaying(self) -> bool:
        """True while dead letters are to be delivered again."""
        return self.command is Command.REPLAY and self.done is None

    @property
    def interrupted(self) -> bool:
        """True when somebody has asked to pause or to stop."""
        return self.paused or self.stopping.is_set()

    def begin_run(self) -> None:
        """A run starts: what an operator asked of the one before is over."""
        self.state = State.STARTING
        self.command = self.obeyed = self.done = None
        if not self.stopping.is_set():
            self.reason = None

    def note_started(self) -> None:
        """The run is ready to deliver."""
        self._set_active_state()

    def note_drained(self) -> None:
        """Everything up to ``drain_to`` was delivered: the run ends, unless the drain was taken
        back just now."""
        if self.command is Command.DRAIN:
            self._end_by_command()
        elif self._drain_to is not None:
            self.stop()

    def note_failure(self) -> None:
        """A window has failed and will be tried again."""
        self.state = State.FAILED

    def note_success(self) -> None:
        """A window was delivered."""
        if self.state is State.FAILED:
            self._set_active_state()

    def end_run(self, failed: bool) -> None:
        """The run has ended; the next one may be asked for."""
        self.stopping, self._drain_to = threading.Event(), None
        self.state = State.FAILED_PERMANENTLY if failed else State.STOPPED

    def _set_active_state(self) -> None:
        if self.paused:
            self.state = State.PAUSED
        else:
            self.state = State.RUNNING if self.drain_to is None else State.DRAINING
