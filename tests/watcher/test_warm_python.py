"""The launcher of the tests' own commands: what it starts is a process like any other."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from fixtures import warm_python
from fixtures.pace import allow
from fixtures.warm_python import SOCKET, WARM_PYTHON, WarmProcess, kill_whole, run_warm

SAYS_ALL = """
import os, sys
print(sys.argv, sys.stdin.read(), os.getcwd(), os.environ.get("VARIABLE"))
print(sys.modules.get("watcher.runners.watcher") is not None, file=sys.stderr)
"""
Run = Callable[..., subprocess.CompletedProcess[str]]
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


def ask_for(*arguments: str, seconds: float = 60.0) -> subprocess.CompletedProcess[str]:
    return run_warm(arguments, os.environ, allow(seconds))


def find_templates() -> list[psutil.Process]:
    """The process of this one that is forked for commands."""
    return [
        each for each in psutil.Process().children() if "fixtures.fork_server" in each.cmdline()
    ]


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
    ("program", "code", "errors"),
    [
        ("pass", 0, ""),
        ("raise SystemExit(7)", 7, ""),
        ("raise SystemExit(-1)", 255, ""),
        ("raise SystemExit('words')", 1, "words\n"),
        ("1/0", 1, "ZeroDivisionError: division by zero\n"),
        ("import os; os.kill(os.getpid(), 9)", -9, ""),
    ],
)
@pytest.mark.parametrize("ways", [run, ask_for], ids=["launcher", "asked for"])
def test_it_ends_as_its_command_ends(ways: Run, program: str, code: int, errors: str) -> None:
    done = ways("-c", program)
    assert (done.returncode, done.stderr[-len(errors) :] if errors else done.stderr) == (
        code,
        errors,
    )


def test_threads_and_functions_for_the_end_run_before_a_command_ends() -> None:
    """The interpreter itself is not taken apart: what is left is written before."""
    program = """
import atexit, sys, threading
sys.stdout.write("main")
def end_thread():
    threading.main_thread().join()
    sys.stdout.write(" thread")
threading.Thread(target=end_thread).start()
atexit.register(lambda: sys.stdout.write(" atexit"))
"""
    assert ask_for("-c", program).stdout == "main thread atexit"


def test_output_that_nobody_reads_is_an_error_at_the_end() -> None:
    program = "import os; os.close(1); os.open('/dev/full', os.O_WRONLY); print('words')"
    done = ask_for("-c", program)
    assert done.returncode == 120
    assert "No space left on device" in done.stderr


def test_a_command_that_takes_too_long_is_killed() -> None:
    ask_for("-c", "pass")
    (template,) = find_templates()
    before = template.children(recursive=True)
    with pytest.raises(TimeoutError, match="a command has not ended; it has printed"):
        ask_for("-c", WAITS, seconds=0.1)
    left = [each for each in template.children(recursive=True) if each not in before]
    assert psutil.wait_procs(left, allow(30))[1] == []


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


def test_commands_are_ordinary_once_the_process_that_is_forked_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody waits for its answer for ever: those that have asked already, and those that come."""
    server = warm_python.ForkServer()
    monkeypatch.setattr(warm_python, "SERVERS", [server])
    monkeypatch.setenv(SOCKET, server.path)
    known = find_templates()
    assert ask_for("-c", SAYS_ALL).stderr == "True\n"
    (template,) = [each for each in find_templates() if each not in known]
    template.suspend()
    with subprocess.Popen([*WARM_PYTHON, "-c", SAYS_ALL], stdin=-1, stderr=-1, text=True) as asking:
        template.kill()
        assert asking.communicate(timeout=allow(60))[1] == "False\n"
    assert ask_for("-c", SAYS_ALL).stderr == "False\n"
    server.stop()


def test_without_the_fork_server_it_is_an_ordinary_python() -> None:
    bare = {name: value for name, value in os.environ.items() if name != SOCKET}
    program = ("-c", "import sys; print('google' in sys.modules)")
    for done in (run(*program, environment=bare), run_warm(program, bare, allow(60))):
        assert done.stdout == "False\n", done.stderr
