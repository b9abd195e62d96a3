"""The processes of a Spark job: its Python, its JVM, Spark's Python processes; what they use."""

from __future__ import annotations

import threading
from typing import Self

import psutil

from benchmarks.processes import LOOK_EVERY_SECONDS


def count_cpu_seconds() -> float:
    """CPU seconds so far of this process, of Spark, and of Spark's Python processes."""
    me = psutil.Process()
    times = me.cpu_times()
    seconds: float = times.user + times.system
    for process in me.children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        seconds += times.user + times.system + times.children_user + times.children_system
    return seconds


class PeakMemory:
    """The peak resident memory meanwhile, in MB: of the driver's Python, of its JVM, and of the
    largest Python process of Spark's."""

    def __init__(self) -> None:
        self.driver = self.jvm = self.worker = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look_until, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look_until(self) -> None:
        while not self._stop.wait(LOOK_EVERY_SECONDS):
            me = psutil.Process()
            self.driver = max(self.driver, me.memory_info().rss / 1_000_000)
            for process in me.children(recursive=True):
                self._look(process)

    def _look(self, process: psutil.Process) -> None:
        try:
            name, memory = process.name(), process.memory_info().rss / 1_000_000
        except psutil.NoSuchProcess:
            return
        if name == "java":
            self.jvm = max(self.jvm, memory)
        else:
            self.worker = max(self.worker, memory)
