"""Blows against the command and the server, chosen by a seed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from conformance.changes import ENDED, Blow
from conformance.output import now_micros
from conformance.recording import Ending
from conformance.settings import Settings
from conformance.spanner import RunSpanner
from conformance.system import System

WEIGHTS = {
    "kill": 4,
    "stop": 1,
    "freeze": 2,
    "restart_server": 2,
    "trouble": 5,
    "change_schema": 2,
}
CALM_SHARE = 1 / 6
"""Of the runs, that have no blow."""
KIND_SHARE = 0.7
"""Of the kinds of blows, that a run has."""
IMPATIENCE = 0.3
"""Of the blows, that do not wait until the command has delivered something since its start."""
FREEZE_SECONDS_MAX = 1.0
LOOK_SECONDS = 0.05


class Nemesis:
    """Strikes, and records it. Starts a command again that has ended by itself."""

    def __init__(self, settings: Settings, system: System, spanner: RunSpanner) -> None:
        self.blows: list[Blow] = []
        self.endings: list[Ending] = []
        self.hung = 0
        self._settings = settings
        self._system = system
        self._spanner = spanner
        self._choice = random.Random(f"blows {settings.seed}")
        self._kinds = choose_kinds(self._choice, settings.blows)
        self._trouble_since: int | None = None
        self._lines_at_start = 0

    @property
    def calm(self) -> bool:
        """Whether the run has no blows."""
        return not self._kinds

    @property
    def delivering(self) -> bool:
        """Whether the command has written a line since its last start."""
        return self._system.output.count() > self._lines_at_start

    def strike_for(self, seconds: float) -> None:
        """Blow after blow."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            pause = self._choice.uniform(0, 2 * self._settings.pause_seconds)
            patient = self._choice.random() >= IMPATIENCE
            self._wait(min(pause, max(ends - time.monotonic(), 0)))
            if self._kinds and time.monotonic() < ends:
                if patient:
                    self.await_line()
                self._strike()

    def await_line(self) -> None:
        """Until the command has written a line since its start, or has had its time for that."""
        ends = time.monotonic() + self._settings.start_seconds
        while time.monotonic() < ends and not self.delivering:
            self._wait(LOOK_SECONDS)

    def end(self) -> None:
        """No more faults; the command runs."""
        self._quiet()
        self.revive()

    def revive(self) -> None:
        """Starts a command again that has ended by itself."""
        code = self._system.exit_code
        if code is None:
            return
        at = now_micros()
        self._system.reap()
        self.endings.append(Ending(at, code))
        self._start_again()
        self.blows.append(Blow(ENDED, at, now_micros()))

    def _strike(self) -> None:
        names = list(self._kinds)
        name = self._choice.choices(names, [WEIGHTS[each] for each in names])[0]
        blows: dict[str, Callable[[], object]] = {
            "kill": self._kill,
            "stop": self._stop,
            "freeze": self._freeze,
            "restart_server": self._spanner.restart,
            "change_schema": self._spanner.change_schema,
        }
        if name == "trouble":
            self._quiet() if self._trouble_since is not None else self._trouble()
            return
        self._end_trouble_with_its_server(name)
        begin = now_micros()
        blows[name]()
        self.blows.append(Blow(name, begin, now_micros()))

    def _end_trouble_with_its_server(self, name: str) -> None:
        if name == "restart_server":
            self._record_trouble()

    def _trouble(self) -> None:
        self._trouble_since = now_micros()
        self._spanner.trouble(self._choice, self._settings.seed)

    def _quiet(self) -> None:
        self._spanner.quiet()
        self._record_trouble()

    def _record_trouble(self) -> None:
        if self._trouble_since is not None:
            self.blows.append(Blow("trouble", self._trouble_since, now_micros()))
        self._trouble_since = None

    def _kill(self) -> None:
        self._system.kill()
        self._start_again()

    def _stop(self) -> None:
        self.hung += not self._system.stop(self._settings.stop_seconds)
        self._start_again()

    def _freeze(self) -> None:
        self._system.freeze(self._choice.uniform(0, FREEZE_SECONDS_MAX))

    def _start_again(self) -> None:
        self._lines_at_start = self._system.output.count()
        self._system.start()

    def _wait(self, seconds: float) -> None:
        """A while, in which a command that ends is started again."""
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            time.sleep(min(left, LOOK_SECONDS))
            self.revive()


def choose_kinds(choice: random.Random, allowed: tuple[str, ...]) -> tuple[str, ...]:
    """The kinds of blows of a run: some of those that are allowed, in some runs none."""
    calm = choice.random() < CALM_SHARE
    kinds = tuple(name for name in allowed if choice.random() < KIND_SHARE)
    return () if calm or not allowed else kinds or (choice.choice(allowed),)
