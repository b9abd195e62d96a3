"""Signals that no handler of Python would see in time."""

from __future__ import annotations

import signal
import subprocess

import pytest
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
threading.Thread(target=strike).start()
schedule.start()
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
