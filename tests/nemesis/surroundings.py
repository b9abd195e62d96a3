"""What the watchers of a run have around them besides Spanner: the network between, the clock of
their machine, ports, and browsers of their page. All of it may go wrong."""

from __future__ import annotations

import os
import random
import socket
from collections import Counter
from pathlib import Path

from fixtures.shifted_clock import NoShiftedClockError, ShiftedClock
from fixtures.stalling_network import StallingNetwork
from fixtures.warm_python import LIBRARY

from conformance.embedded import VARIABLE

JUMPS = (-600, -60, 0, 60, 600)
"""By how many seconds the clock is off; from one to the other it is set back or forward."""
SLOW_CLIENTS = 30
"""More than the page has threads."""
UNFINISHED = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
COMMAND = (
    "import faulthandler; faulthandler.enable();"
    " from watcher.spanner import channels; channels.KEEPALIVE_SECONDS = 1.0;"
    " channels.ANSWER_SECONDS_MAX = 3.0;"
    " from watcher.cli import main; main()"
)
"""A watcher that asks soon whether its connections live. SIGABRT ends it, and writes to its log
where each of its threads stands."""


class Surroundings:
    """Those of the watchers of one run."""

    def __init__(
        self, folder: Path, server: str, randomness: random.Random, struck: Counter[str]
    ) -> None:
        self._randomness = randomness
        self._network = StallingNetwork(server)
        self._slow: list[socket.socket] = []
        self._clock = self._open_clock(folder / "clock", struck)

    def _open_clock(self, path: Path, struck: Counter[str]) -> ShiftedClock | None:
        """A clock of their own, where watchers are forks that have one."""
        if LIBRARY not in os.environ:
            struck["no clock is set: commands are forks without one"] += 1
            return None
        try:
            return ShiftedClock(path)
        except NoShiftedClockError as error:
            struck[f"no clock is set: {error}"] += 1
            return None

    @property
    def environment(self) -> dict[str, str]:
        """That of a watcher."""
        clock = self._clock.environment if self._clock is not None else {}
        return os.environ | {VARIABLE: self._network.address} | clock

    def kill_connections(self) -> None:
        """The connections of now go dead without a word. What earlier ones have taken may still
        come to the server, late."""
        if self._randomness.random() < 0.5:
            self._network.release()
        self._network.stall()

    def set_clock(self) -> None:
        """The clock of the watchers jumps."""
        if self._clock is not None:
            self._clock.set(self._randomness.choice(JUMPS))

    def crowd_page(self, port: int) -> bool:
        """Browsers connect to the page, send half a request, and stay; False where none could.
        Those of the last time leave."""
        self._leave_page()
        for _ in range(SLOW_CLIENTS):
            try:
                client = socket.create_connection(("127.0.0.1", port), timeout=5)
                client.sendall(UNFINISHED)
            except OSError:
                break  # the watcher has just ended
            self._slow.append(client)
        return bool(self._slow)

    def _leave_page(self) -> None:
        while self._slow:
            self._slow.pop().close()

    def close(self) -> None:
        """Ends every connection."""
        self._leave_page()
        self._network.close()
