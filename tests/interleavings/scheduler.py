"""Threads that run one at a time; which one runs next is a choice.

A *unit* is a thread under control: an actor's own, or one that an actor started. It runs until it
is about to send its next RPC, sleeps, waits or ends; then ``Scheduler`` asks a ``Chooser`` for a
token. The token ``A`` lets A go on, ``A!`` crashes it before its RPC is sent, and ``A?`` after the
RPC was executed and before its answer arrives. A sleeping unit can be chosen once its time has
come; when nobody else can go on, virtual time jumps to the first that wakes.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from interleavings.virtual_clock import VirtualClock, originals

STUCK_SECONDS = 60.0
STEPS_MAX = 3_000
CRASH_BEFORE, CRASH_AFTER = "!", "?"


class Stopped(BaseException):
    """Unwinds a unit that must stop. ``except Exception`` does not catch it."""


class Crashed(Stopped):
    """The actor is dead."""


class Ended(Stopped):
    """The schedule is over."""


class StuckError(Exception):
    """A unit waits for something that the scheduler does not control, or no unit can run."""


class Condition(Enum):
    """What a unit can do next."""

    READY = "ready"
    WAITING = "waiting"
    DONE = "done"


class Chooser(Protocol):
    """Decides which unit runs next."""

    def choose(self, current: str | None, tokens: Sequence[str], sending: str) -> str:
        """One of the tokens. ``current`` is the unit that ran until now, if it can go on, and
        ``sending`` what it is about to send."""
        ...


@dataclass(eq=False)
class Unit:
    """A thread under control. ``wake`` is in virtual seconds; ``ready`` ends a wait early."""

    name: str
    actor: str
    main: bool
    clock: VirtualClock
    condition: Condition = Condition.READY
    wake: float | None = None
    ready: Callable[[], bool] | None = None
    sending: str = ""
    killed: type[Stopped] | None = None
    token: str = ""
    starting: bool = False
    silent: bool = False
    """While it is, its RPCs are no steps."""
    children: int = 0
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    thread: threading.Thread | None = None

    def able(self) -> bool:
        """Whether it can run now. A unit whose actor has crashed in another thread can."""
        if self.killed is not None:
            return self.condition is not Condition.DONE
        if self.condition is Condition.WAITING:
            due = self.wake is not None and self.wake <= self.clock.seconds
            return due or (self.ready is not None and self.ready())
        return self.condition is Condition.READY


CURRENT = threading.local()


def current_unit() -> Unit | None:
    """The unit that this thread is, or None for a thread outside of the schedule."""
    return getattr(CURRENT, "unit", None)


def current_scheduler() -> Scheduler:
    """The scheduler of this thread's unit."""
    scheduler: Scheduler = CURRENT.scheduler
    return scheduler


@contextmanager
def hide_steps() -> Iterator[None]:
    """While it lasts, the RPCs of this thread's unit are not steps."""
    unit = current_unit()
    assert unit is not None
    unit.silent = True
    try:
        yield
    finally:
        unit.silent = False


class Scheduler:
    """One schedule: ``add`` actors, ``run`` them to their ends; ``trace`` is what was chosen."""

    def __init__(self, clock: VirtualClock, chooser: Chooser, crashes: dict[str, int]) -> None:
        self.clock = clock
        self.trace: list[str] = []
        self.labels: list[str] = []
        self._chooser = chooser
        self._crashes = dict(crashes)
        self._units: list[Unit] = []
        self._finished = threading.Event()
        self._failure: BaseException | None = None

    def add(self, name: str, body: Callable[[], object], main: bool = True) -> Unit:
        """Makes an actor of a function."""
        unit = Unit(name, name, main, self.clock)
        self._begin(unit, body)
        return unit

    def _begin(self, unit: Unit, body: Callable[[], object]) -> None:
        thread = threading.Thread(
            target=self._live, args=(unit, body), name=f"unit {unit.name}", daemon=True
        )
        unit.thread = thread
        self._units.append(unit)
        originals.start(thread)

    def adopt(self, parent: Unit, thread: threading.Thread) -> None:
        """A thread that a unit starts belongs to the same actor."""
        parent.children += 1
        unit = Unit(f"{parent.name}.{parent.children}", parent.actor, False, self.clock)
        body = thread.run
        thread.run = lambda: self._live(unit, body)  # type: ignore[method-assign]
        unit.thread = thread
        self._units.append(unit)
        originals.start(thread)

    def unit_of(self, thread: threading.Thread) -> Unit | None:
        """The unit that a thread is."""
        return next((unit for unit in self._units if unit.thread is thread), None)

    def run(self) -> None:
        """Runs all actors to their ends, then stops the threads that they left running.

        Raises StuckError, or what an actor raised.
        """
        first = self._next(None)
        if first is not None:
            first.go.release()
            self._await_end()
        for unit in list(self._units):
            if unit.condition is not Condition.DONE:
                unit.killed = unit.killed or Ended
                unit.go.release()
                assert unit.thread is not None
                originals.join(unit.thread, STUCK_SECONDS)
        if self._failure is not None:
            raise self._failure

    def _await_end(self) -> None:
        steps = -1
        while not originals.wait(self._finished, STUCK_SECONDS):
            if steps == len(self.trace):
                raise StuckError(f"no step for {STUCK_SECONDS:.0f} s:\n{self._stacks()}")
            steps = len(self.trace)

    def _stacks(self) -> str:
        frames = sys._current_frames()
        texts = []
        for unit in self._units:
            if unit.condition is not Condition.DONE and unit.thread is not None:
                frame = frames.get(unit.thread.ident or 0)
                stack = "".join(traceback.format_stack(frame)[-8:]) if frame else ""
                texts.append(f"{unit.name} is {unit.condition.value} {unit.sending}\n{stack}")
        return "\n".join(texts)

    # What units call, in their own threads.

    def gate(self, label: str) -> bool:
        """Before an RPC. Returns True when the unit crashes after it; raises Crashed, Ended."""
        unit = self._me()
        if unit.killed is not None:
            raise unit.killed
        unit.sending = label
        unit.condition = Condition.READY
        self._yield(unit)
        unit.sending = ""
        if unit.token.endswith(CRASH_BEFORE):
            self.crash(unit)
        return unit.token.endswith(CRASH_AFTER)

    def crash(self, unit: Unit) -> None:
        """Kills the actor of a unit, which is the one that runs: raises Crashed."""
        for each in self._units:
            if each.actor == unit.actor and each.condition is not Condition.DONE:
                each.killed = Crashed
        raise Crashed(unit.actor)

    def wait(self, seconds: float | None, ready: Callable[[], bool] | None = None) -> bool:
        """Sleeps for virtual seconds, or until ``ready``; whether it is ready."""
        unit = self._me()
        if unit.killed is not None:
            raise unit.killed
        if ready is not None and ready():
            return True
        unit.wake = None if seconds is None else self.clock.seconds + seconds
        unit.ready = ready
        unit.condition = Condition.WAITING
        self._yield(unit)
        unit.condition = Condition.READY
        unit.wake, unit.ready = None, None
        return ready is not None and ready()

    def _me(self) -> Unit:
        unit = current_unit()
        assert unit is not None
        return unit

    def _live(self, unit: Unit, body: Callable[[], object]) -> None:
        CURRENT.unit, CURRENT.scheduler = unit, self
        unit.go.acquire()
        try:
            if unit.killed is None:
                body()
        except Stopped:
            pass
        except BaseException as error:  # noqa: BLE001 (raised by ``run``)
            self._failure = self._failure or error
        unit.condition = Condition.DONE
        over = unit.killed is Ended
        CURRENT.unit = None
        if not over:
            self._hand_over(unit)

    def _hand_over(self, unit: Unit | None) -> None:
        if self._finished.is_set():
            return
        following = self._next(unit)
        if following is None:
            self._finished.set()
        else:
            following.go.release()

    def _yield(self, unit: Unit) -> None:
        following = self._next(unit)
        if following is not unit:
            if following is None:
                self._finished.set()
            else:
                following.go.release()
            unit.go.acquire()
        if unit.killed is not None:
            raise unit.killed

    # The choice.

    def _next(self, current: Unit | None) -> Unit | None:
        """The unit that runs next; None when the schedule is over."""
        dying = next((u for u in self._units if self._is_dying(u)), None)
        if dying is not None:
            dying.condition = Condition.READY
            return dying
        if self._failure is not None or all(
            u.condition is Condition.DONE for u in self._units if u.main
        ):
            return None
        try:
            return self._chosen(current)
        except Exception as error:  # noqa: BLE001 (raised by ``run``)
            self._failure = error
            return None

    def _is_dying(self, unit: Unit) -> bool:
        """Threads of a crashed actor unwind first; its main thread unwinds by itself."""
        return unit.killed is Crashed and not unit.main and unit.condition is not Condition.DONE

    def _chosen(self, current: Unit | None) -> Unit:
        if len(self.trace) >= STEPS_MAX:
            raise StuckError(f"no end after {STEPS_MAX} steps:\n{self._stacks()}")
        able = self._able()
        tokens = [token for unit in able for token in self._tokens(unit)]
        running = current.name if current is not None and current in able else None
        sending = current.sending if current is not None else ""
        token = self._chooser.choose(running, tokens, sending)
        unit = next(u for u in able if u.name == token.rstrip(CRASH_BEFORE + CRASH_AFTER))
        if token[-1] in (CRASH_BEFORE, CRASH_AFTER):
            self._crashes[unit.actor] -= 1
        unit.token = token
        self.trace.append(token)
        self.labels.append(unit.sending)
        self.clock.tick()
        return unit

    def _able(self) -> list[Unit]:
        while True:
            able = [unit for unit in self._units if unit.able()]
            if able:
                return able
            wakes = [
                unit.wake
                for unit in self._units
                if unit.condition is Condition.WAITING and unit.wake is not None
            ]
            if not wakes:
                raise StuckError(f"nobody can go on:\n{self._stacks()}")
            self.clock.advance(max(min(wakes) - self.clock.seconds, 0.001))

    def _tokens(self, unit: Unit) -> list[str]:
        if unit.sending and self._crashes.get(unit.actor, 0) > 0:
            return [unit.name, unit.name + CRASH_AFTER, unit.name + CRASH_BEFORE]
        return [unit.name]
