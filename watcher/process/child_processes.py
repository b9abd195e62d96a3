"""Child processes in groups of their own, so that each can be killed whole, with a log."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

LOG_LINES_SHOWN = 15


@dataclass(slots=True)
class ChildProcess:
    """A process; what it prints goes to its log."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(
        cls, name: str, log: Path, command: Sequence[str], environment: Mapping[str, str]
    ) -> Self:
        """Starts a command; the ``environment`` is added to that of this process."""
        with log.open("ab") as file:
            process = subprocess.Popen(
                command,
                env=os.environ | environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return cls(name, process, log)

    @property
    def running(self) -> bool:
        """True until it has ended."""
        return self.process.poll() is None

    @property
    def failed(self) -> bool:
        """True once it has ended with anything but success."""
        return self.process.poll() not in {None, 0}

    def read_log_end(self) -> str:
        """The last lines of its log."""
        text = self.log.read_bytes().decode(errors="replace")
        return "\n".join(text.splitlines()[-LOG_LINES_SHOWN:])

    def kill(self) -> None:
        """kill -9 for the process and everything that it started (Spark's JVM, Python workers)."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        finally:
            self.process.wait()
