"""The launcher of the tests' own commands: what it starts is a process like any other."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest
from fixtures.pace import allow
from fixtures.warm_python import SOCKET, WARM_PYTHON, WarmProcess, kill_whole

SAYS_ALL = """
import os, sys
print(sys.argv, sys.stdin.read(), os.getcwd(), os.environ.get("VARIABLE"))
print(sys.modules.get("watcher.runners.watcher") is not None, file=sys.stderr)
"""
WAITS = "import threading; print('begun'); threading.Event().wait()"


def run(
    *arguments: str,
    words: str = "",
    folder: Path | None = None,
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*WARM_PYTHON, *arguments],
        capture_output=True,
        text=True,
        check=False,
        input=words,
        cwd=folder,
        env=environment,
    )


def test_a_command_has_its_arguments_streams_folder_and_variables(tmp_path: Path) -> None:
    done = run(
        *("-c", SAYS_ALL, "one", "-u"),
        words="words",
        folder=tmp_path,
        environment=os.environ | {"VARIABLE": "value"},
    )
    assert done.stdout == f"['-c', 'one', '-u'] words {tmp_path} value\n"
    assert done.stderr == "True\n", "it was not forked, or imports after the fork"


@pytest.mark.parametrize(
    ("program", "code"),
    [("pass", 0), ("raise SystemExit(7)", 7), ("1/0", 1), ("import os; os.kill(0, 9)", -9)],
)
def test_it_ends_as_its_command_ends(program: str, code: int) -> None:
    program = program.replace("kill(0", "kill(os.getpid()")
    done = run("-c", program)
    assert done.returncode == code
    assert ("ZeroDivisionError" in done.stderr) == (code == 1)


def test_a_module_and_a_file_are_programs_too(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("WORD = 'found'")
    program = tmp_path / "program.py"
    program.write_text("import sys, beside; print(beside.WORD, sys.argv[1:], __name__)")
    assert run(str(program), "a").stdout == "found ['a'] __main__\n"
    assert "usage: python -m emulator" in run("-m", "emulator", "--help").stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_signals_end_the_command_itself(number: signal.Signals) -> None:
    with WarmProcess(["-u", "-c", WAITS], stdout=-1, stderr=-1) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        assert process.wait() in (-number, 1)
        assert not Path(f"/proc/{process.command_pid}").exists()


def test_a_launcher_that_is_killed_takes_its_command_along() -> None:
    with WarmProcess(["-u", "-c", WAITS], stdout=-1) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        os.kill(process.pid, signal.SIGKILL)
        assert process.stdout.read() == "", "the command holds its pipe as long as it lives"


STARTS_ANOTHER = """
import subprocess, sys
from fixtures.warm_python import WarmProcess
started = WarmProcess(["-u", "-c", "import sys; print(1); sys.stdin.read()"], stdin=-1, stdout=-1)
started.stdout.readline()
print(started.command_pid, flush=True)
started.wait()
"""


def test_a_command_is_killed_with_what_it_has_started() -> None:
    process = WarmProcess(["-u", "-c", STARTS_ANOTHER], stdout=-1)
    assert process.stdout is not None
    started = psutil.Process(int(process.stdout.readline()))
    kill_whole(process)
    assert process.returncode == -signal.SIGKILL
    gone, alive = psutil.wait_procs([started], timeout=allow(10))
    assert gone
    assert not alive


def test_without_the_fork_server_it_is_an_ordinary_python() -> None:
    bare = {name: value for name, value in os.environ.items() if name != SOCKET}
    done = run("-c", "import sys; print('google' in sys.modules)", environment=bare)
    assert done.stdout == "False\n", done.stderr
