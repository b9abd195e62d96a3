"""Streams that a fault has cut, kept for a while to go on exactly where they stopped.

A stream that is cut elsewhere (in the network) is read again from its timestamp instead.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

from emulator import limits
from emulator.services.calls import RpcContext
from emulator.services.statements import StatementOutcome
from emulator.wire.results import ResultStream

Place = tuple[str, bytes, bytes]
"""Session, what is read, resume token."""


@dataclass(frozen=True, slots=True)
class ParkedStream:
    """A stream between two calls."""

    outcome: StatementOutcome
    result: ResultStream
    context: RpcContext
    """The call for which it was begun."""
    until: float


class Parking:
    """Thread-safe. What nobody fetches is closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parked: OrderedDict[Place, ParkedStream] = OrderedDict()

    def leave(
        self, place: Place, outcome: StatementOutcome, result: ResultStream, context: RpcContext
    ) -> None:
        """Keeps a stream for its client."""
        until = time.monotonic() + limits.PARKED_SECONDS
        with self._lock:
            before = self._parked.pop(place, None)
            self._parked[place] = ParkedStream(outcome, result, context, until)
        if before is not None:
            before.outcome.rows.close()
        self._sweep()

    def fetch(self, place: Place) -> ParkedStream | None:
        """The stream that stopped at this token; None when it is not here (any more)."""
        with self._lock:
            return self._parked.pop(place, None)

    def _sweep(self) -> None:
        """Closes streams that waited too long, and the oldest if there are too many."""
        now = time.monotonic()
        gone: list[ParkedStream] = []
        with self._lock:
            while self._parked:
                place, oldest = next(iter(self._parked.items()))
                if oldest.until > now and len(self._parked) <= limits.PARKED_MAX:
                    break
                gone.append(self._parked.pop(place))
        for parked in gone:
            parked.outcome.rows.close()
