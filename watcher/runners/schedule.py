"""Runs recurring work by APScheduler: polls and clearings, without overlap, until told to stop."""

from __future__ import annotations

import logging
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from apscheduler.events import EVENT_JOB_ERROR, JobExecutionEvent
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

LOG = logging.getLogger("watcher.schedule")
# A poll that lasts longer than its interval is no news: late runs are joined to one.
logging.getLogger("apscheduler").setLevel(logging.ERROR)
GAVE_UP = 75
"""What a process exits with that could not stop in time (EX_TEMPFAIL)."""
SIGNALLED = 128
"""A shell's exit code of a process that a signal ended: this, and the signal's number."""
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def give_up(seconds: float) -> None:
    """Ends the process."""
    LOG.error("what was under way did not end in %.0f s; ending without it", seconds)
    os._exit(GAVE_UP)


def stop_signal(pipe: int, seconds: float | None) -> int | None:
    """The next signal to stop that comes through a pipe; None when it does not come in time."""
    until = None if seconds is None else time.monotonic() + seconds
    while True:
        left = None if until is None else max(0.0, until - time.monotonic())
        if not select.select([pipe], [], [], left)[0]:
            return None
        number = os.read(pipe, 1)[0]
        if number in STOP_SIGNALS:
            return number


class Schedule:
    """Jobs at intervals. A job that raises ends the schedule: ``wait`` raises its error."""

    def __init__(self) -> None:
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )
        self._scheduler.add_listener(self._failed, EVENT_JOB_ERROR)
        self._stop = threading.Event()
        self._error: BaseException | None = None

    def every(self, seconds: float, name: str, work: Callable[[], object]) -> None:
        """Runs ``work`` at once and then every so many seconds; late runs are joined to one."""
        self._scheduler.add_job(
            work,
            IntervalTrigger(seconds=seconds),
            id=name,
            name=name,
            next_run_time=datetime.now(UTC),
        )

    def poll(self, seconds: float, name: str, work: Callable[[], bool]) -> None:
        """As ``every``; while ``work`` says that there is more, it goes on without waiting."""

        def drain() -> None:
            while not self._stop.is_set() and work():
                pass

        self.every(seconds, name, drain)

    def start(self) -> None:
        """Starts the jobs in the background."""
        self._scheduler.start()

    def stop(self) -> None:
        """Asks everything to end after the run under way."""
        self._stop.set()

    def pause(self, seconds: float) -> bool:
        """Waits so long, or less when stopped; True when stopped."""
        return self._stop.wait(seconds)

    @property
    def stopping(self) -> threading.Event:
        """Set once it is to stop."""
        return self._stop

    def stop_on_signals(self, grace_seconds: float) -> None:
        """SIGTERM and SIGINT stop the schedule cleanly. What does not end in its time, as a call to
        a server that is gone, ends with the process, and with a second signal it does so at once:
        nothing was acknowledged that is not saved. It exits with 75, or 128 and the second signal.

        Python runs a handler in the main thread only, and not while that thread waits for a lock
        and the kernel has given the signal to another one, or just before it began to wait. So the
        C handler itself writes the signal's number to a pipe, and a thread does the rest.
        """
        told, tell = os.pipe()
        os.set_blocking(tell, False)

        def listen() -> None:
            stop_signal(told, None)
            LOG.warning(
                "stopping: waiting up to %.0f s for the window under way;"
                " press Ctrl-C again to end at once",
                grace_seconds,
            )
            self.stop()
            second = stop_signal(told, grace_seconds)
            if second is not None:
                LOG.warning("ending at once; what was under way comes again with the next start")
                os._exit(SIGNALLED + second)
            give_up(grace_seconds)

        threading.Thread(target=listen, name="signals", daemon=True).start()
        signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
        for number in STOP_SIGNALS:
            signal.signal(number, lambda *_: None)

    def wait(self) -> None:
        """Blocks until stopped; raises what a job raised."""
        self._stop.wait()
        self.end()
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        """Stops, and returns when no job is under way; what a job raised is in ``wait``."""
        self._stop.set()
        if self._scheduler.running:
            self._scheduler.pause()  # else it may hand a job to an executor that has ended
            self._scheduler.shutdown(wait=True)

    def _failed(self, event: JobExecutionEvent) -> None:
        LOG.error("job %s failed: %s", event.job_id, event.exception)
        self._error = self._error or event.exception
        self._stop.set()
