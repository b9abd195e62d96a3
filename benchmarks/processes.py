"""The processes of a run: started, looked at (CPU seconds, memory), ended."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import psutil

from watcher.process.child_processes import ChildProcess

LOOK_EVERY_SECONDS = 0.2


class RunError(Exception):
    """A run could not be done, or what it measured cannot be trusted."""


class BenchProcess(ChildProcess):
    """A running process."""

    __slots__ = ()

    def check(self) -> None:
        """Raises RunError, with the end of its log, if it has ended with anything but success."""
        if self.failed:
            end = self.read_log_end()
            raise RunError(f"{self.name} exited with code {self.process.returncode}:\n{end}")


def start_module(name: str, log: Path, module: str, arguments: Sequence[str]) -> BenchProcess:
    """Starts ``python -m module arguments``."""
    return BenchProcess.start(name, log, [sys.executable, "-m", module, *arguments], {})


def ask_module(
    name: str,
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str] = MappingProxyType({}),
) -> list[Any]:
    """What ``follow_module`` gives, once it has ended."""
    return list(follow_module(name, module, arguments, environment))


def follow_module(
    name: str,
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Any]:
    """What ``python -m module arguments OUT`` writes into the file ``OUT``, a line of JSON each, as
    it writes it; the ``environment`` is added to ours. Raises RunError where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "answer")
        out.touch()
        command = [sys.executable, "-m", module, *arguments, str(out)]
        process = BenchProcess.start(name, Path(folder, "log"), command, environment)
        try:
            with out.open("rb") as lines:
                while process.process.poll() is None:
                    yield from read_lines(lines)
                    time.sleep(LOOK_EVERY_SECONDS)
                process.check()
                yield from map(json.loads, lines)
        finally:
            process.kill()


def read_lines(lines: BinaryIO) -> Iterator[Any]:
    """What was written since the last call, in whole lines."""
    while (line := lines.readline()).endswith(b"\n"):
        yield json.loads(line)
    lines.seek(-len(line), os.SEEK_CUR)


def read_cpu_seconds(pid: int) -> float:
    """CPU seconds (user and system) of a process so far; 0 once it has ended."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds (user and system) and peak resident memory, with everything it started."""

    cpu_seconds: float
    peak_mb: float


class UsageMeter:
    """Looks at processes five times a second, from ``start`` until ``stop``.

    The CPU seconds of the last fifth of a second of a process that ends are not seen.
    """

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._processes = {name: psutil.Process(pid) for name, pid in pids.items()}
        self._before = {name: self._look(name)[0] for name in self._processes}
        self._cpu = dict(self._before)
        self._peak = dict.fromkeys(self._processes, 0.0)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def stop(self) -> dict[str, Usage]:
        """Ends; what was used since it was made."""
        self._stop.set()
        self._thread.join()
        return {
            name: Usage(round(self._cpu[name] - self._before[name], 2), round(peak, 1))
            for name, peak in self._peak.items()
        }

    def _loop(self) -> None:
        while True:
            for name in self._processes:
                cpu, memory = self._look(name)
                self._cpu[name] = max(self._cpu[name], cpu)
                self._peak[name] = max(self._peak[name], memory)
            if self._stop.wait(LOOK_EVERY_SECONDS):
                return

    def _look(self, name: str) -> tuple[float, float]:
        """CPU seconds so far, and memory now, in MB; zero once it has ended."""
        cpu = memory = 0.0
        try:
            root = self._processes[name]
            for process in [root, *root.children(recursive=True)]:
                times = process.cpu_times()
                cpu += times.user + times.system
                memory += process.memory_info().rss / 1_000_000
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            return cpu, memory
        return cpu, memory


def read_memory(process: int) -> tuple[float, float]:
    """The resident megabytes of a process of Linux, and those of them that are no page of a file:
    the others the system takes back when it needs them. Raises OSError where it has ended."""
    _, *lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines() or [""]
    if not lines:
        raise ProcessLookupError(f"process {process} has ended")
    sizes = {name: int(size) for name, size, _ in (line.replace(":", "").split() for line in lines)}
    return round(sizes["Rss"] * 1.024 / 1_000, 1), round(sizes["Anonymous"] * 1.024 / 1_000, 1)
