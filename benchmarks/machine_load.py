"""How busy others kept the machine during a scenario: a figure of a busy machine is no figure."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from types import TracebackType

import psutil

LOOK_EVERY_SECONDS = 0.5
BUSY_SHARE = 0.1
"""Others that use more of the machine's CPU time than this disturb what is measured."""
COUNTED = ("user", "nice", "system", "steal")
"""Kinds of CPU time that some process spends, or another guest of the same host (``steal``).
Interrupts are left out: the kernel does not say for whom it served them."""

ProcessKey = tuple[int, float]


@dataclass(frozen=True, slots=True)
class CpuUse:
    """``seconds`` passed on ``cpus`` CPUs. CPU seconds: ``ours`` of this process and of all that it
    started, ``others`` of everything else, other guests of the host included."""

    seconds: float
    cpus: int
    ours: float
    others: float

    @property
    def others_share(self) -> float:
        """The share of the machine's CPU time that others used, from 0 to 1."""
        available = self.seconds * self.cpus
        return min(self.others / available, 1.0) if available > 0 else 0.0

    @property
    def others_cpus(self) -> float:
        """How many CPUs others kept busy, on average."""
        return self.others_share * self.cpus

    @property
    def busy(self) -> bool:
        """True when others used so much that the figures may not be trusted."""
        return self.others_share > BUSY_SHARE

    def describe_others(self) -> str:
        """How much others used, in words."""
        return (
            f"other processes used {100 * self.others_share:.0f} % of its CPU time"
            f" ({self.others_cpus:.1f} of {self.cpus} CPUs) meanwhile"
        )


class CpuMeter:
    """Looks twice a second at this process and what it started, while it is entered.

    ``use`` is known afterwards; it is None where the operating system does not say how much CPU
    time all processes used. The last half second of a process that nobody waits for counts as
    others'.
    """

    def __init__(self) -> None:
        self.use: CpuUse | None = None
        self._self = psutil.Process()
        self._before: dict[ProcessKey, float] = {}
        self._seen: dict[ProcessKey, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def __enter__(self) -> CpuMeter:
        self._began, self._machine = time.monotonic(), read_machine_seconds()
        self._waited = self._read_waited_seconds()
        self._look()
        self._before = dict(self._seen)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._look()
        seconds = time.monotonic() - self._began
        machine, ours = read_machine_seconds(), self._read_our_seconds()
        if machine > 0:
            others = max(machine - self._machine - ours, 0.0)
            cpus = psutil.cpu_count() or 1
            self.use = CpuUse(round(seconds, 1), cpus, round(ours, 2), round(others, 2))

    def _loop(self) -> None:
        while not self._stop.wait(LOOK_EVERY_SECONDS):
            self._look()

    def _look(self) -> None:
        for process in [self._self, *self._self.children(recursive=True)]:
            try:
                times = process.cpu_times()
                key = (process.pid, process.create_time())
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue  # it has just ended: what was seen of it before counts
            self._seen[key] = max(self._seen.get(key, 0.0), times.user + times.system)

    def _read_our_seconds(self) -> float:
        """Since the start: what was seen, or what the operating system says of those that this
        process has waited for, which knows their last moments; whichever is more."""
        seen = {key: cpu - self._before.get(key, 0.0) for key, cpu in self._seen.items()}
        own = (self._self.pid, self._self.create_time())
        waited = self._read_waited_seconds() - self._waited
        return seen[own] + max(sum(seen.values()) - seen[own], waited)

    def _read_waited_seconds(self) -> float:
        times = self._self.cpu_times()
        return float(times.children_user + times.children_system)


def read_machine_seconds() -> float:
    """CPU seconds that all processes together have used since the machine was started."""
    times = psutil.cpu_times()
    return float(sum(getattr(times, name, 0.0) for name in COUNTED))
