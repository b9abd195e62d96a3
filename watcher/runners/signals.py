"""Stops cleanly on SIGTERM and SIGINT, within bounds, and when nobody reads the output any more."""

from __future__ import annotations

import logging
import os
import select
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TextIO

from watcher.model.log_events.running import STOP_TIMED_OUT, STOPPED_AT_ONCE, STOPPING

LOG = logging.getLogger("watcher.schedule")
EXIT_GAVE_UP = 75
"""What a process exits with that could not stop in time (EX_TEMPFAIL)."""
EXIT_SIGNALLED = 128
"""A shell's exit code of a process that a signal ended: this, and the signal's number."""
INTERRUPTED = "Ctrl-C"
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def stop_on_signals(stop: Callable[[], None], grace_seconds: float) -> None:
    """SIGTERM and SIGINT call ``stop``, once. A process that has not ended ``grace_seconds`` later,
    because it waits for a server that does not answer, say, exits with 75; at a second signal it
    exits at once, with 128 and the signal. Nothing was acknowledged that is not saved.

    Call it in the main thread. Python runs a handler in the main thread only, and not while that
    thread waits for a lock and the kernel has given the signal to another one, or just before it
    began to wait. So the C handler itself writes the signal's number to a pipe, and a thread reads
    it.
    """
    pipe, wakeup_fd = open_signal_pipe()
    threading.Thread(
        target=stop_or_exit, args=(pipe, stop, grace_seconds), name="signals", daemon=True
    ).start()
    signal.set_wakeup_fd(wakeup_fd, warn_on_full_buffer=False)
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: None)


def open_signal_pipe() -> tuple[int, int]:
    """Where the numbers of signals are read, and the descriptor for ``signal.set_wakeup_fd``."""
    pipe, wakeup_fd = os.pipe()
    os.set_blocking(wakeup_fd, False)
    return pipe, wakeup_fd


def stop_or_exit(pipe: int, stop: Callable[[], None], grace_seconds: float) -> None:
    """Waits for the first signal, stops, and ends the process when that takes too long."""
    read_stop_signal(pipe, None)
    STOPPING.log(LOG, seconds=grace_seconds)
    stop()
    second = read_stop_signal(pipe, grace_seconds)
    if second is not None:
        STOPPED_AT_ONCE.log(LOG)
        os._exit(EXIT_SIGNALLED + second)
    STOP_TIMED_OUT.log(LOG, seconds=grace_seconds)
    os._exit(EXIT_GAVE_UP)


def read_stop_signal(pipe: int, seconds: float | None) -> int | None:
    """The next signal to stop that comes through a pipe; None when it does not come in time."""
    until = None if seconds is None else time.monotonic() + seconds
    while True:
        left = None if until is None else max(0.0, until - time.monotonic())
        if not select.select([pipe], [], [], left)[0]:
            return None
        number = os.read(pipe, 1)[0]
        if number in STOP_SIGNALS:
            return number


@contextmanager
def stop_on_interrupt(stop: Callable[[str], object]) -> Iterator[None]:
    """Within the block, the first Ctrl-C calls ``stop`` with the reason; a second one raises
    KeyboardInterrupt. Nothing changes in another thread than the main one, and for a program that
    handles SIGINT in its own way.

    As for ``stop_on_signals``, a thread reads the signals.
    """
    default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if threading.current_thread() is not threading.main_thread() or not default:
        yield
        return
    interrupts = 0

    def count(number: int, frame: FrameType | None) -> None:
        nonlocal interrupts
        interrupts += 1
        if interrupts > 1:
            signal.default_int_handler(number, frame)

    pipe, wakeup_fd = open_signal_pipe()
    reader = threading.Thread(
        target=stop_at_interrupt, args=(pipe, stop), name="interrupts", daemon=True
    )
    reader.start()
    before = signal.set_wakeup_fd(wakeup_fd, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, count)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.set_wakeup_fd(before)
        os.close(wakeup_fd)
        reader.join()


def stop_at_interrupt(pipe: int, stop: Callable[[str], object]) -> None:
    """Stops at the first SIGINT that comes through a pipe, which is read to its end."""
    with open(pipe, "rb", buffering=0) as signals:
        while number := signals.read(1):
            if number[0] == signal.SIGINT:
                stop(INTERRUPTED)


def stop_when_closed(output: TextIO, stop: Callable[[], None]) -> None:
    """Calls ``stop`` once the reader of a pipe has gone, as ``| head`` does: a watcher of idle
    tables would only notice with the next change."""
    if not is_pipe(output):
        return

    # Errors are always reported, whatever is asked for: a pipe without a reader is one.
    poll = select.poll()
    poll.register(output.fileno(), 0)

    def wait() -> None:
        while not poll.poll():
            pass
        stop()

    threading.Thread(target=wait, name="output", daemon=True).start()


def is_pipe(output: TextIO) -> bool:
    """True for a pipe or a socket: what has a reader who may go."""
    try:
        mode = os.fstat(output.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
