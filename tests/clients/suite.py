"""A suite: how it is obtained and run, and which of its cases fail for a known reason."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clients.outcomes import Outcome

MINUTES_MAX = 40
PROJECT, INSTANCE = "test-project", "test-instance"


@dataclass(frozen=True, slots=True)
class Suite:
    """``source`` is the package with its version, ``run`` fetches and runs it. ``exceptions`` are
    reasons by case. ``port`` is the server's where the suite wants a certain one."""

    name: str
    source: str
    run: Callable[[Workplace], list[Outcome]]
    exceptions: Mapping[str, str] = field(default_factory=dict)
    port: int = 0


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where a suite is run: a folder that is kept, the address of a server, and a log."""

    folder: Path
    address: str

    @property
    def log(self) -> Path:
        """What the commands of the suite have said."""
        return self.folder / "log.txt"

    def call(
        self,
        command: Sequence[str | Path],
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        *,
        may_fail: bool = False,
    ) -> str:
        """What a command writes on standard output; all of it is in the log. The server's address
        is in its environment. Raises CalledProcessError unless it may fail."""
        done = subprocess.run(
            [str(part) for part in command],
            cwd=folder or self.folder,
            env=self.make_environment(environment or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=MINUTES_MAX * 60,
            check=False,
        )
        with self.log.open("a") as log:
            log.write(f"$ {' '.join(map(str, command))}\n{done.stdout}{done.stderr}\n")
        if not may_fail:
            done.check_returncode()
        return done.stdout

    def make_environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """That of a command: without what would change how another project's tests run."""
        unset = ("PYTHONPATH", "PYTEST_ADDOPTS", "VIRTUAL_ENV")
        inherited = {name: value for name, value in os.environ.items() if name not in unset}
        return {
            **inherited,
            "SPANNER_EMULATOR_HOST": self.address,
            "GOOGLE_CLOUD_PROJECT": PROJECT,
            "GCLOUD_PROJECT": PROJECT,
            "SPANNER_DISABLE_BUILTIN_METRICS": "true",
            **more,
        }
