"""Commands that read and show again and again: Ctrl-C and SIGTERM end them at once, with 0."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

from watcher.model.errors import ConfigurationError
from watcher.runners.signals import STOP_SIGNALS, open_signal_pipe, read_stop_signal
from watcher.settings.fields import duration_seconds

JOIN_SECONDS = 1.0
"""How long what is shown just then may take."""


def parse_interval(text: str, option: str = "--every") -> float:
    """The seconds of an option. Raises ConfigurationError for none."""
    seconds = duration_seconds(text)
    if seconds <= 0:
        raise ConfigurationError(f"invalid {option} '{text}': it must be longer than 0")
    return seconds


def run_until_interrupted(work: Callable[[threading.Event], object]) -> None:
    """Runs ``work`` until it ends, or SIGINT or SIGTERM comes: its event is set then, and what it
    still reads is not waited for. Raises what it raises. Call it in the main thread.

    It has a thread of its own. An error that a handler raised in the middle of a call could leave a
    lock of gRPC's held for ever, or be swallowed there; as for ``stop_on_signals``, the C handler
    writes to a pipe.
    """
    stopped, errors = threading.Event(), list[BaseException]()
    pipe, wakeup_fd = open_signal_pipe()

    def run() -> None:
        try:
            work(stopped)
        except BaseException as error:  # noqa: BLE001 (it is raised again)
            errors.append(error)
        os.write(wakeup_fd, bytes([signal.SIGTERM]))  # as a signal, which ends the wait for one

    thread = threading.Thread(target=run, name="shown", daemon=True)
    former_fd = signal.set_wakeup_fd(wakeup_fd, warn_on_full_buffer=False)
    before = {number: signal.signal(number, lambda *_: None) for number in STOP_SIGNALS}
    try:
        thread.start()
        read_stop_signal(pipe, None)
        stopped.set()
        thread.join(JOIN_SECONDS)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(former_fd)
    if errors:
        raise errors[0]
