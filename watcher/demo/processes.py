"""The demo's child processes: started in groups of their own, so that each can be killed whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from watcher.demo.settings import DemoSettings


class ChildError(Exception):
    """A child process of the demo ended badly; the message holds the end of its log."""


@dataclass(slots=True)
class DemoProcess:
    """A running ``python -m module``; what it prints goes to its log."""

    name: str
    process: subprocess.Popen[bytes]
    settings: DemoSettings

    @property
    def running(self) -> bool:
        """True until it has ended."""
        return self.process.poll() is None

    def kill(self) -> None:
        """kill -9 for the process and everything that it started (Spark's JVM, Python workers)."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        finally:
            self.process.wait()

    def check(self) -> None:
        """Raises ChildError if it has ended with anything but success."""
        if self.process.poll() not in {None, 0}:
            lines = self.settings.log(self.name).read_text(errors="replace").splitlines()
            end = "\n".join(lines[-15:])
            raise ChildError(
                f"the {self.name} process exited with code {self.process.returncode};"
                f" its log {self.settings.log(self.name)} ends with:\n{end}"
            )


def start_child(
    name: str, settings: DemoSettings, module: str, arguments: Sequence[str]
) -> DemoProcess:
    """Starts ``python -m module arguments`` with the demo's server in its environment."""
    environment = os.environ | {"SPANNER_EMULATOR_HOST": settings.server}
    with settings.log(name).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return DemoProcess(name, process, settings)
