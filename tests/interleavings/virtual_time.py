"""Time that only the scheduler moves, for the threads under its control.

Outside of a schedule, and in threads that it does not know, everything is as ever.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from emulator.engine.turn import IDLE_SECONDS, Turn

TICK_SECONDS = 0.001
BEGIN_SECONDS = 1_750_000_000.0
"""Virtual time begins in 2025."""

originals = SimpleNamespace(
    sleep=time.sleep,
    monotonic=time.monotonic,
    clock_gettime=time.clock_gettime,
    time=time.time,
    time_ns=time.time_ns,
    start=threading.Thread.start,
    join=threading.Thread.join,
    wait=threading.Event.wait,
    acquire=Turn.acquire,
)


class VirtualClock:
    """Seconds since 1970 that pass when they are told to."""

    def __init__(self) -> None:
        self._micros = round(BEGIN_SECONDS * 1_000_000)

    @property
    def seconds(self) -> float:
        """Now."""
        return self._micros / 1_000_000

    def micros(self) -> int:
        """Now, in microseconds."""
        return self._micros

    def tick(self) -> None:
        """The time that a step takes."""
        self.advance(TICK_SECONDS)

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        self._micros += max(round(seconds * 1_000_000), 1)

    def next_hour(self) -> None:
        """Each schedule begins at a whole hour, so that nothing in it depends on the one before."""
        hour = 3_600_000_000
        self._micros = (self._micros // hour + 2) * hour


@contextmanager
def controlled(clock: VirtualClock) -> Iterator[None]:
    """While it lasts, units wait and look at the time through their scheduler."""
    from interleavings.scheduler import current_scheduler, current_unit

    def sleep(seconds: float) -> None:
        if current_unit() is None:
            originals.sleep(seconds)
        else:
            current_scheduler().wait(seconds)

    def start(thread: threading.Thread) -> None:
        unit = current_unit()
        if unit is None:
            originals.start(thread)
        else:
            # The client's own thread sends nothing for a week.
            ours = not thread.name.startswith("maintenance-")
            unit.starting = True
            try:
                if ours:
                    current_scheduler().adopt(unit, thread)
                else:
                    originals.start(thread)
            finally:
                unit.starting = False

    def wait(event: threading.Event, timeout: float | None = None) -> bool:
        unit = current_unit()
        if unit is None or unit.starting:
            found: bool = originals.wait(event, timeout)
            return found
        return current_scheduler().wait(timeout, event.is_set)

    def join(thread: threading.Thread, timeout: float | None = None) -> None:
        unit = current_unit()
        joined = current_scheduler().unit_of(thread) if unit is not None else None
        if joined is None:
            originals.join(thread, timeout)
        else:
            current_scheduler().wait(timeout, lambda: joined.condition.value == "done")

    def acquire(turn: Turn, wait_seconds: float) -> None:
        if current_unit() is None:
            originals.acquire(turn, wait_seconds)
            return
        while not turn._lock.acquire(blocking=False):
            current_scheduler().wait(wait_seconds, lambda: not turn._lock.locked())
            give_up_idle(turn, clock)

    replaced: list[tuple[Any, str, Any]] = [
        (time, "sleep", sleep),
        (time, "monotonic", lambda: now(originals.monotonic)),
        (time, "time", lambda: now(originals.time)),
        (
            time,
            "time_ns",
            lambda: clock.micros() * 1_000 if current_unit() else originals.time_ns(),
        ),
        (time, "clock_gettime", lambda which: now(lambda: originals.clock_gettime(which))),
        (threading.Thread, "start", start),
        (threading.Thread, "join", join),
        (threading.Event, "wait", wait),
        (Turn, "acquire", acquire),
    ]

    def now(real: Any) -> float:
        found: float = clock.seconds if current_unit() is not None else real()
        return found

    before = [(owner, name, getattr(owner, name)) for owner, name, _ in replaced]
    for owner, name, value in replaced:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


def give_up_idle(turn: Turn, clock: VirtualClock) -> None:
    """The server ends a transaction that holds the turn and is silent for too long."""
    holder = turn.holder
    if turn._lock.locked() and holder is not None:
        holder.give_up_if_idle(IDLE_SECONDS)
