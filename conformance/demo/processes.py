"""The demo's child processes."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from conformance.demo.settings import DemoSettings
from watcher.process.child_processes import ChildProcess
from watcher.spanner.address import EMULATOR_HOST


class ChildError(Exception):
    """A child process of the demo ended badly; the message holds the end of its log."""


class DemoProcess(ChildProcess):
    """A running ``python -m module``."""

    __slots__ = ()

    def check(self) -> None:
        """Raises ChildError if it has ended with anything but success."""
        if self.failed:
            raise ChildError(
                f"the {self.name} process exited with code {self.process.returncode};"
                f" its log {self.log} ends with:\n{self.read_log_end()}"
            )


def start_child(
    name: str, settings: DemoSettings, module: str, arguments: Sequence[str]
) -> DemoProcess:
    """Starts ``python -m module arguments``, with the demo's server in its environment."""
    command = [sys.executable, "-m", module, *arguments]
    server = {EMULATOR_HOST: settings.server} if settings.server else {}
    return DemoProcess.start(name, settings.log(name), command, server)
