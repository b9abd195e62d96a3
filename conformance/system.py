"""The command that is judged, as a process: started, killed, frozen, stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from conformance.output import Output
from watcher.model.errors import ConfigurationError

PIPE_SECONDS_MAX = 10.0
"""So long what a killed command has left in its pipe may take to be read."""
PROCESSES = "processes"


def name_variables(values: Mapping[str, str]) -> dict[str, str]:
    """The same values as environment variables."""
    return {f"CONFORMANCE_{name.upper()}": value for name, value in values.items()}


class System:
    """The command. Its process group is its own, so that what it starts is struck with it."""

    def __init__(
        self, command: list[str], environment: Mapping[str, str], state: Path, log: Path
    ) -> None:
        self.output = Output()
        self.starts = 0
        self._command = command
        self._environment = {**os.environ, **environment}
        self._state = state
        self._log = log
        (state / PROCESSES).mkdir(parents=True, exist_ok=True)
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None

    def start(self) -> None:
        """Starts it. Raises ConfigurationError where there is no such program."""
        self.starts += 1
        with self._log.open("ab") as log:
            try:
                process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=self._environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise ConfigurationError(
                    f"--against: {self._command[0]!r} cannot be started: {error.strerror}"
                ) from error
        self._process = process
        self._reader = threading.Thread(
            target=self.output.read, args=(process.stdout, self.starts), daemon=True
        )
        self._reader.start()

    @property
    def exit_code(self) -> int | None:
        """The code that it ended with; None while it runs."""
        return self._process.poll() if self._process is not None else None

    def kill(self) -> None:
        """kill -9 of it and all that it has started."""
        self._signal(signal.SIGKILL)
        self._reap()

    def stop(self, seconds: float) -> bool:
        """SIGTERM; whether it ended within a time. It is killed if not."""
        process = self._process
        if process is None:
            return True
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        self.reap()
        return True

    def freeze(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after a while."""
        self._signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._signal(signal.SIGCONT)

    def reap(self) -> None:
        """After its end: kills what it has left behind, and reads the rest of its output."""
        self._signal(signal.SIGKILL)
        self._reap()

    def close(self) -> None:
        """Kills it, and the processes that it has asked to keep."""
        self.kill()
        for file in (self._state / PROCESSES).iterdir():
            text = file.read_text().strip()
            if text.isdigit():
                try:
                    os.killpg(int(text), signal.SIGKILL)
                except ProcessLookupError:
                    continue

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return

    def _reap(self) -> None:
        if self._process is not None:
            self._process.wait()
        if self._reader is not None:
            self._reader.join(PIPE_SECONDS_MAX)
