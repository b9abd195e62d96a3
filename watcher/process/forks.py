"""Commands of Python as forks of a process that has imported what they need.

A launcher was started as the command, and lives as long as it. The template has imported the
modules; each command is a fork of it, with a keeper that waits for it and for its launcher.
A launcher may have no packages: nothing is imported here but a bit of the standard library.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import NamedTuple

STANDARD_FILES = (0, 1, 2)
HANDED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
NUMBER_BYTES = 8


class Command(NamedTuple):
    """``python ARGUMENTS`` in a folder; ``executable`` is the interpreter."""

    executable: str
    arguments: list[str]
    environment: dict[str, str]
    folder: str


def run_as_fork(
    address: str, command: Command, tell: Callable[[int], None] = lambda _: None
) -> int | None:
    """Runs a command with the standard files of this process, and hands signals on to it.

    ``tell`` gets its process id. Returns its exit code, or the negative number of the signal that
    has ended it. None, and nothing has changed, if there is no template at the address, or none
    that can become that command.
    """
    with socket.socket(socket.AF_UNIX) as keeper:
        signal.pthread_sigmask(signal.SIG_BLOCK, HANDED_ON)
        try:
            process = ask(keeper, address, command)
            if process is None:
                return None
            for file in STANDARD_FILES:
                os.close(file)
            tell(process)
            hand_signals_on(process)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDED_ON)
        return receive_code(keeper)


def receive_code(keeper: socket.socket) -> int:
    """How a command ends, once it does, as ``run_as_fork`` returns it."""
    return int(keeper.recv(NUMBER_BYTES) or b"1")


def ask(
    keeper: socket.socket, address: str, command: Command, files: Sequence[int] = STANDARD_FILES
) -> int | None:
    """The process id of the fork, whose standard files are ``files``."""
    content = json.dumps(command).encode()
    head = len(content).to_bytes(NUMBER_BYTES, "big")
    try:
        keeper.connect(address)
        socket.send_fds(keeper, [head], files)
        keeper.sendall(content)
        answer = keeper.recv(NUMBER_BYTES)
    except OSError:
        return None
    return int(answer) if answer else None


def hand_signals_on(process: int) -> None:
    """Signals to this process go to another one."""

    def hand_on(number: int, _frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(process, number)

    for number in HANDED_ON:
        signal.signal(number, hand_on)


def end_as(code: int) -> None:
    """Ends this process as a command has ended: ``code`` is that of ``run_as_fork``."""
    if code < 0:
        if -code in HANDED_ON:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def fork_for_commands(
    listener: socket.socket, life: int, accept: Callable[[Command], bool]
) -> Command | None:
    """In each fork its command, whose standard files it has. In the template None, as soon as the
    other end of the pipe ``life`` is closed. ``accept`` says whether the template can become it."""
    signal.signal(signal.SIGCHLD, reap)
    while True:
        ready, _, _ = select.select([listener.fileno(), life], [], [])
        if life in ready:
            return None
        launcher, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            os.close(life)
            return receive_command(launcher, accept)
        launcher.close()


def reap(_number: int, _frame: FrameType | None) -> None:
    """Takes note of those that have ended, so that their CPU time is counted with that of the
    template."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def receive_command(launcher: socket.socket, accept: Callable[[Command], bool]) -> Command:
    """A launcher's command, in the process that is to execute it; its keeper ends in here."""
    head, files, _, _ = socket.recv_fds(launcher, NUMBER_BYTES, len(STANDARD_FILES))
    size = int.from_bytes(head, "big")
    with launcher.makefile("rb") as stream:
        content = stream.read(size)
    if not head or len(content) < size:
        os._exit(1)
    command = Command(*json.loads(content))
    if not accept(command):
        os._exit(0)
    process = os.fork()
    if process:
        for file in files:
            os.close(file)
        keep(launcher, process)
    launcher.close()
    take_files(files)
    return command


def take_files(files: Sequence[int]) -> None:
    """The files of a launcher in place of the template's."""
    for descriptor, file in zip(STANDARD_FILES, files, strict=True):
        os.dup2(file, descriptor)
        os.close(file)


def keep(launcher: socket.socket, process: int) -> None:
    """Tells the launcher the id and the end of a command; a launcher that is killed takes it
    along."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for file in STANDARD_FILES:
        os.dup2(nothing, file)
    descriptor = os.pidfd_open(process)
    try:
        launcher.sendall(str(process).encode().rjust(NUMBER_BYTES))
        ready, _, _ = select.select([launcher.fileno(), descriptor], [], [])
        if descriptor not in ready:
            os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        launcher.sendall(str(os.waitstatus_to_exitcode(status)).encode().rjust(NUMBER_BYTES))
    except OSError:  # the launcher has been killed
        os.kill(process, signal.SIGKILL)
    os._exit(0)
