"""The watcher's schedule, with its jobs as units of the explorer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from watcher.runners.schedule import Schedule

TURNS = {"poll": 3, "clearing": 2}
"""A job of these names runs so often; when all are done, the schedule stops."""


@dataclass(frozen=True, slots=True)
class Job:
    """Recurring work."""

    seconds: float
    name: str
    work: Callable[[], object]


class ExploredSchedule(Schedule):
    """As ``Schedule``. Each job is a thread that sleeps in virtual time; a lease is renewed first
    after its interval, not at once."""

    turns = TURNS

    def __init__(self, stopping: threading.Event | None = None) -> None:
        super().__init__(stopping)
        self._jobs: list[Job] = []
        self._threads: list[threading.Thread] = []
        self._open = 0

    def every(self, seconds: float, name: str, work: Callable[[], object]) -> None:
        """As ``Schedule.every``."""
        self._jobs.append(Job(seconds, name, work))

    def start(self) -> None:
        """As ``Schedule.start``."""
        self._open = sum(job.name in self.turns for job in self._jobs)
        for job in self._jobs:
            thread = threading.Thread(target=self._repeat, args=(job,), name=job.name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _repeat(self, job: Job) -> None:
        turns = self.turns.get(job.name)
        if turns is None:
            self._stop.wait(job.seconds)
        done = 0
        while not self._stop.is_set() and (turns is None or done < turns):
            try:
                job.work()
            except Exception as error:  # noqa: BLE001 (``wait`` raises it)
                self._error = self._error or error
                self._stop.set()
                return
            done += 1
            self._stop.wait(job.seconds)
        if turns is not None:
            self._open -= 1
            if self._open == 0:
                self._stop.set()

    def end(self) -> None:
        """As ``Schedule.end``."""
        self._stop.set()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()


@contextmanager
def explore_schedules() -> Iterator[None]:
    """While it lasts, new watchers have an ``ExploredSchedule``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("watcher.runners.watcher_run.run.Schedule", ExploredSchedule)
        yield
