"""Recurring work while the clock of the machine is set, and signals that no handler of Python would
see in time."""

from __future__ import annotations

import os
import signal
import subprocess
import threading

import pytest
from fixtures.pace import allow
from fixtures.shifted_clock import ShiftedClock
from fixtures.warm_python import WARM_PYTHON

STOP_SECONDS_MAX = 60
# The signal goes to a thread that is not the main one, which waits for a lock meanwhile.
SCRIPT = """
import linecache, signal, sys, threading
from watcher.runners.schedule import Schedule
from watcher.runners.signals import stop_on_signals

main = threading.main_thread().ident

def line_of_main():
    frame = sys._current_frames()[main]
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()

def strike():
    while line_of_main() != "waiter.acquire()":
        pass
    signal.pthread_kill(threading.get_ident(), signal.{name})

schedule = Schedule()
stop_on_signals(schedule.stop, {grace})
schedule.every({interval}, "work", {work})
schedule.start()
threading.Thread(target=strike).start()
schedule.wait()
print("stopped")
"""


def run_script(**values: object) -> subprocess.CompletedProcess[str]:
    """A process that got the signal."""
    return subprocess.run(
        [*WARM_PYTHON, "-c", SCRIPT.format(**values)],
        capture_output=True,
        text=True,
        check=False,
        timeout=STOP_SECONDS_MAX,
    )


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_that_another_thread_gets_stops_the_schedule(name: str) -> None:
    done = run_script(name=name, grace=STOP_SECONDS_MAX, interval=1, work="lambda: None")
    assert (done.returncode, done.stdout) == (0, "stopped\n"), done.stderr


def test_work_that_does_not_end_ends_with_the_process() -> None:
    done = run_script(name="SIGTERM", grace=0.1, interval=1, work="threading.Event().wait")
    assert (done.returncode, done.stdout) == (75, ""), done.stderr
    assert "did not end" in done.stderr


HANGING = """
import threading
from watcher.runners.schedule import Schedule
from watcher.runners.signals import stop_on_signals

schedule = Schedule()
stop_on_signals(schedule.stop, {grace})
schedule.every(1, "work", lambda: (print("begun", flush=True), threading.Event().wait()))
schedule.start()
schedule.wait()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_the_process_at_once(number: signal.Signals) -> None:
    with subprocess.Popen(
        [*WARM_PYTHON, "-u", "-c", HANGING.format(grace=10 * STOP_SECONDS_MAX)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        said = process.stderr.readline()
        assert "waiting up to 600 s for the window in progress; press Ctrl-C again" in said
        process.send_signal(number)
        assert process.wait(STOP_SECONDS_MAX) == 128 + number


# Runs until its input ends; each run prints when it was, by a clock that nobody sets.
RECURRING = """
import sys, threading, time
from watcher.runners.schedule import Schedule

schedule = Schedule()
schedule.every({interval}, "work", lambda: print(time.monotonic(), flush=True))
threading.Thread(target=lambda: (sys.stdin.read(), schedule.stop())).start()
schedule.start()
schedule.wait()
"""
INTERVAL = 0.05
RUNS = 20
LATE = 0.25
"""The share of all the time by which the first run may be late; a doubled schedule takes half."""


@pytest.mark.essential
@pytest.mark.parametrize(("seconds", "said"), [(-600, "back by 600 s"), (600, "forward by 600 s")])
def test_a_clock_that_is_set_neither_stops_recurring_work_nor_doubles_it(
    shifted_clock: ShiftedClock, seconds: int, said: str
) -> None:
    with subprocess.Popen(
        [*WARM_PYTHON, "-u", "-c", RECURRING.format(interval=INTERVAL)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | shifted_clock.environment,
    ) as process:
        assert process.stdout is not None
        late = threading.Timer(allow(STOP_SECONDS_MAX), process.kill)
        late.start()
        process.stdout.readline()
        shifted_clock.set(seconds)
        runs = [float(process.stdout.readline() or "nan") for _ in range(RUNS)]
        _, log = process.communicate()
        late.cancel()
    assert process.returncode == 0, "nothing ran after the clock was set"
    assert runs[-1] - runs[0] >= (RUNS - 1) * INTERVAL * (1 - LATE)
    assert log.count(said) == 1
