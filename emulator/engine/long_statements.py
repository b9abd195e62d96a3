"""Long statements whose functions are Python take turns.

Each call of such a function takes the interpreter's lock. When several statements call them for
every row, they hand that lock over at each call: four at once took four times the CPU of one after
another. Short statements, and those that SQLite runs alone, never wait here.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable
from functools import lru_cache

CALL = re.compile(r"\b([a-z_0-9]++)\(")
NATIVE = frozenset(
    {"count", "sum", "min", "max", "coalesce", "substr", "octet_length", "unixepoch"}
)
"""SQLite's own functions; what is taken for one of Python's only takes turns."""
SHORT_CHECKS = 3
"""So many checks pass before a statement is long."""
WAIT_SECONDS = 0.05


class Turns:
    """A mutex that is handed over in the order of asking."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._places: deque[threading.Lock] = deque()

    @property
    def wanted(self) -> bool:
        """Whether somebody waits."""
        return bool(self._places)

    def take(self, check: Callable[[], None]) -> None:
        """Waits for the turn; raises what ``check`` raises meanwhile."""
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            place = threading.Lock()
            place.acquire()
            self._places.append(place)
        while not place.acquire(timeout=WAIT_SECONDS):
            try:
                check()
            except BaseException:
                self._give_up(place)
                raise

    def _give_up(self, place: threading.Lock) -> None:
        with self._lock:
            waiting = place in self._places
            if waiting:
                self._places.remove(place)
        if not waiting:
            self.give()  # it was handed over a moment ago

    def give(self) -> None:
        """Hands the turn over."""
        with self._lock:
            if self._places:
                self._places.popleft().release()
            else:
                self._taken = False


TURNS = Turns()


@lru_cache(maxsize=2_000)
def calls_python(sql: str) -> bool:
    """Whether a statement in SQLite's words calls functions of ours."""
    return not NATIVE.issuperset(CALL.findall(sql))


class LongStatement:
    """One statement, as it runs: ``note_check`` now and then, ``pause`` when it stops running."""

    def __init__(self, sql: str, check: Callable[[], None]) -> None:
        self._check = check
        self._shares = calls_python(sql)
        self._checks = 0
        self._has_turn = False

    def note_check(self) -> None:
        """A few thousand steps are done. Raises what the statement's check raises."""
        self._check()
        self._checks += 1
        if not self._shares or self._checks < SHORT_CHECKS:
            return
        if self._has_turn and TURNS.wanted:
            self.pause()
        if not self._has_turn:
            TURNS.take(self._check)
            self._has_turn = True

    def pause(self) -> None:
        """Others may run: the statement waits for its reader, or has ended."""
        if self._has_turn:
            self._has_turn = False
            TURNS.give()
