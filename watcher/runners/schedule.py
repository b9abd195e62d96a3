"""Runs recurring work by APScheduler: polls and clearings, without overlap, until it is stopped.

APScheduler asks the clock of the machine when a job is due. If that clock is set back, jobs would
stand still for as long: a thread that waits by a monotonic clock makes them due again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from apscheduler.events import EVENT_JOB_ERROR, JobExecutionEvent
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from watcher.model.log_events.running import RUN_STOPPED_BY_FAILURE
from watcher.runners.clock_jumps import WALL_CLOCK
from watcher.spanner.failures import suggest_fix

LOG = logging.getLogger("watcher.schedule")
# A poll may last longer than its interval: late runs are joined to one.
logging.getLogger("apscheduler").setLevel(logging.ERROR)
# Of a job that raises, a schedule says so itself.
logging.getLogger("apscheduler.executors").setLevel(logging.CRITICAL)
CLOCK_SECONDS = 1.0
"""How often it is looked whether the clock of the machine was set back: jobs stand still no longer
than that."""


class Schedule:
    """Jobs at intervals. A job that raises ends the schedule: ``wait`` raises its error."""

    def __init__(self, stopping: threading.Event | None = None) -> None:
        """``stopping`` is set by whoever asks the schedule to stop."""
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )
        self._scheduler.add_listener(self._note_failure, EVENT_JOB_ERROR)
        self._stop = stopping or threading.Event()
        self._clock = threading.Thread(target=self._watch_clock, name="clock", daemon=True)
        self._error: BaseException | None = None

    def every(self, seconds: float, name: str, work: Callable[[], object]) -> None:
        """Runs ``work`` at once and then every so many seconds; late runs are joined to one."""

        def run() -> None:
            WALL_CLOCK.note_jump()
            work()

        self._scheduler.add_job(
            run,
            IntervalTrigger(seconds=seconds),
            id=name,
            name=name,
            next_run_time=datetime.now(UTC),
        )

    def poll(self, seconds: float, name: str, work: Callable[[], bool]) -> None:
        """As ``every``; while ``work`` says that there is more, it continues without waiting."""

        def repeat() -> None:
            while not self._stop.is_set() and work():
                pass

        self.every(seconds, name, repeat)

    def run_soon(self, name: str) -> None:
        """Runs a job before its time, unless everything is about to end."""
        with suppress(JobLookupError):
            if not self._stop.is_set():
                self._scheduler.modify_job(name, next_run_time=datetime.now(UTC))

    def start(self) -> None:
        """Starts the jobs in the background."""
        self._scheduler.start()
        self._clock.start()

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
        if self._scheduler.running:
            self._scheduler.pause()  # else it may hand a job to an executor that has ended
            self._scheduler.shutdown(wait=True)

    def _watch_clock(self) -> None:
        """No job waits for longer than its interval, whatever happens to the clock."""
        while not self._stop.wait(CLOCK_SECONDS):
            WALL_CLOCK.note_jump()
            now = datetime.now(UTC)
            for job in self._scheduler.get_jobs():
                latest = now + job.trigger.interval + timedelta(seconds=CLOCK_SECONDS)
                if job.next_run_time > latest:
                    job.modify(next_run_time=now)

    def _note_failure(self, event: JobExecutionEvent) -> None:
        """One line, also where a second job fails before everything has ended."""
        if self._error is None:
            self._error, hint = event.exception, suggest_fix(event.exception)
            advice = f"; {hint}" if hint else ""
            RUN_STOPPED_BY_FAILURE.log(LOG, job=event.job_id, error=event.exception, advice=advice)
        self._stop.set()
