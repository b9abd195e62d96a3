"""Time that only the scheduler moves, for the threads under its control.

Outside of a schedule, and in threads that it does not control, nothing changes.
"""

from __future__ import annotations

import math
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from emulator.engine.locks.table import IDLE_SECONDS, LockTable, busy
from emulator.engine.turn import Turn
from interleavings.scheduler import Condition, Stopped, current_scheduler, current_unit
from interleavings.virtual_clock import VirtualClock, originals

NAMES = count()


@contextmanager
def control_time(clock: VirtualClock) -> Iterator[None]:
    """While it lasts, units wait and read the time through their scheduler."""
    locks = [(Turn, "acquire", acquire), (LockTable, "pause", pause)]
    replaced = [*times(clock), *waits(), *locks, (uuid, "uuid4", make_name)]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in replaced]
    for owner, name, value in replaced:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


def times(clock: VirtualClock) -> list[tuple[Any, str, Any]]:
    """The functions that return the time, with their replacements for units."""

    def now(real: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *which: clock.seconds if current_unit() is not None else real(*which)

    def now_ns() -> int:
        real: int = originals.time_ns()
        return clock.micros() * 1_000 if current_unit() is not None else real

    names = ("monotonic", "time", "clock_gettime")
    in_seconds = [(time, name, now(getattr(originals, name))) for name in names]
    return [*in_seconds, (time, "time_ns", now_ns)]


def waits() -> list[tuple[Any, str, Any]]:
    """The functions that wait or start threads, with their replacements for units."""
    return [
        (time, "sleep", sleep),
        (threading.Thread, "start", start),
        (threading.Thread, "join", join),
        (threading.Event, "wait", wait),
    ]


def make_name() -> uuid.UUID:
    """As ``uuid.uuid4``: names of units. The same schedule brings them into the same order, which
    is that of instances. No other schedule of this process has them: the server knows the
    operations of earlier ones."""
    if current_unit() is None:
        real: uuid.UUID = originals.uuid4()
        return real
    return uuid.UUID(int=random.getrandbits(64) << 64 | next(NAMES), version=4)


def sleep(seconds: float) -> None:
    """As ``time.sleep``."""
    if current_unit() is None:
        originals.sleep(seconds)
    else:
        current_scheduler().wait(seconds)


def start(thread: threading.Thread) -> None:
    """As ``Thread.start``: the thread of a unit is one, too."""
    unit = current_unit()
    if unit is None:
        originals.start(thread)
        return
    unit.starting = True
    try:
        # The client's own thread sends nothing for a week.
        if thread.name.startswith("maintenance-"):
            originals.start(thread)
        else:
            current_scheduler().adopt(unit, thread)
    finally:
        unit.starting = False


def wait(event: threading.Event, timeout: float | None = None) -> bool:
    """As ``Event.wait``."""
    unit = current_unit()
    if unit is None or unit.starting:
        is_set: bool = originals.wait(event, timeout)
        return is_set
    return current_scheduler().wait(timeout, event.is_set)


def join(thread: threading.Thread, timeout: float | None = None) -> None:
    """As ``Thread.join``."""
    joined = current_scheduler().unit_of(thread) if current_unit() is not None else None
    if joined is None:
        originals.join(thread, timeout)
    else:
        current_scheduler().wait(timeout, lambda: joined.condition is Condition.DONE)


def acquire(turn: Turn, wait_seconds: float) -> None:
    """As ``Turn.acquire``: who waits in the server for another's statement waits in virtual time,
    and lets that other one go on."""
    if current_unit() is None:
        originals.acquire(turn, wait_seconds)
        return
    while not turn._lock.acquire(blocking=False):
        try:
            current_scheduler().wait(wait_seconds, lambda: not turn._lock.locked())
        except Stopped:
            # The server does not know that its client is dead: it must not write any more.
            raise busy() from None


def pause(locks: LockTable, ready: Callable[[], bool], seconds: float) -> bool:
    """As ``LockTable.pause``: who waits for another's locks waits in virtual time, and not in small
    steps, until the other one is idle for too long."""
    if current_unit() is None:
        paused: bool = originals.pause(locks, ready, seconds)
        return paused
    try:
        current_scheduler().wait(IDLE_SECONDS / 2, ready)
    except Stopped:
        raise busy() from None
    return ready()


def end_transactions(locks: LockTable) -> None:
    """The server ends the transactions that still hold locks: their clients are gone."""
    for owner in locks.owners():
        owner.give_up_if_idle(-math.inf)
