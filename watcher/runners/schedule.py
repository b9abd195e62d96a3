"""Runs recurring work at intervals, without overlap, until it is stopped.

Intervals are counted by a monotonic clock: the clock of the machine may be set back or forward
meanwhile, and nothing stands still or is caught up.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from watcher.runners.clock_jumps import WALL_CLOCK

LOG = logging.getLogger("watcher.schedule")
SECONDS_MIN = 0.001
"""The shortest interval; that of an interval of 0."""


class Schedule:
    """Jobs at intervals, each in a thread. A job that raises ends the schedule: ``wait`` raises its
    error."""

    def __init__(self, stopping: threading.Event | None = None) -> None:
        """``stopping`` is set by whoever asks the schedule to stop."""
        self._stop = stopping or threading.Event()
        self._threads: list[threading.Thread] = []
        self._error: BaseException | None = None

    def every(self, seconds: float, name: str, work: Callable[[], object]) -> None:
        """Runs ``work`` once started and then every so many seconds. Times that pass while it runs
        are left out: it waits for the next one."""
        self._threads.append(
            threading.Thread(
                target=self._run_job, args=(seconds, name, work), name=name, daemon=True
            )
        )

    def poll(self, seconds: float, name: str, work: Callable[[], bool]) -> None:
        """As ``every``; while ``work`` says that there is more, it continues without waiting."""

        def repeat() -> None:
            while not self._stop.is_set() and work():
                pass

        self.every(seconds, name, repeat)

    def start(self) -> None:
        """Starts the jobs in the background, unless stopped."""
        if self._stop.is_set():
            return
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends everything after the job in progress."""
        self._stop.set()

    def pause(self, seconds: float) -> bool:
        """Waits so long, or less when stopped; True when stopped."""
        return self._stop.wait(seconds)

    def wait(self) -> None:
        """Blocks until stopped; raises what a job raised."""
        self._stop.wait()
        self.end()
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        """Stops, and returns when no job is in progress; ``wait`` raises what a job raised."""
        self._stop.set()
        for thread in self._threads:
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join()

    def _run_job(self, seconds: float, name: str, work: Callable[[], object]) -> None:
        due = time.monotonic()
        while True:
            WALL_CLOCK.check()
            try:
                work()
            except BaseException as error:  # noqa: BLE001 (``wait`` raises it)
                LOG.error("job %s failed: %s", name, error)
                self._error = self._error or error
                self._stop.set()
            due = find_next_time(due, seconds, time.monotonic())
            if self._stop.wait(due - time.monotonic()):
                return


def find_next_time(due: float, seconds: float, now: float) -> float:
    """The first of the times after ``due``, so many seconds apart, that has not passed."""
    interval = max(seconds, SECONDS_MIN)
    passed = max(0.0, now - due)
    return due + (passed // interval + 1) * interval
