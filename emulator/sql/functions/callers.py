"""Who waits for a statement: what computes for long asks now and then whether anybody does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SECONDS_BETWEEN_CHECKS = 0.05


class Waiting(threading.local):
    """The caller of the statement that a thread runs."""

    check: Callable[[], None] | None = None
    due = 0.0


WAITING = Waiting()


@contextmanager
def waiting(check: Callable[[], None] | None) -> Iterator[None]:
    """While it lasts, ``check`` raises once nobody waits for what this thread computes; None
    leaves it to whoever is waiting already."""
    before = WAITING.check
    WAITING.check = check or before
    try:
        yield
    finally:
        WAITING.check = before


def check_caller() -> None:
    """Raises when nobody waits any more. It takes no time to ask often."""
    if WAITING.check is None:
        return
    now = time.monotonic()
    if now >= WAITING.due:
        WAITING.due = now + SECONDS_BETWEEN_CHECKS
        WAITING.check()
