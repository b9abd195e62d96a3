"""What shows again and again ends at a signal, whatever it is at."""

from __future__ import annotations

import signal
import subprocess

import pytest
from fixtures.commands import await_output
from fixtures.pace import allow
from fixtures.warm_python import WARM_PYTHON

SHOWN = """
from watcher.cli.interruption import run_until_interrupted

class Call:
    def __del__(self):  # calls of gRPC's take a lock here; Python swallows what is raised
        for _ in range(10_000):
            pass

def show(stopped):
    print("begun", flush=True)
    while not stopped.is_set():
        Call()
    {end}

run_until_interrupted(show)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(("end", "code"), [("pass", 0), ("raise SystemExit(7)", 7)])
def test_a_signal_ends_it_in_the_middle_of_anything(
    number: signal.Signals, end: str, code: int
) -> None:
    process = subprocess.Popen(
        [*WARM_PYTHON, "-c", SHOWN.format(end=end)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    await_output(process.stdout)
    assert process.stdout.readline() == "begun\n"
    process.send_signal(number)
    try:
        assert process.wait(allow(30)) == code
    finally:
        process.kill()
        process.communicate()
