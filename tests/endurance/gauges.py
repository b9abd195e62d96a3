"""What must not grow: memory and file descriptors of processes, the index, staleness."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import psutil

EVERY_SECONDS = 0.2
SAMPLE_SECONDS = 5.0
LATE_SECONDS = 2.0
"""A consumer that is further behind is late."""
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Sample:
    """One look; ``processes`` has MB of memory and file descriptors by name."""

    at: float
    processes: dict[str, tuple[float, int]]
    index_rows: int | None
    disk_mb: float


@dataclass(frozen=True, slots=True)
class Event:
    """Something that was done to the system: a kill of ``what``, or a schema change."""

    at: float
    what: str


class StalenessLog:
    """How far a consumer is behind, looked at five times a second."""

    def __init__(self, newest: Callable[[], int]) -> None:
        self._newest = newest
        self.points: list[tuple[float, float]] = []

    def look(self, now: float) -> None:
        """Notes the time since the newest commit that was delivered, if one was."""
        newest = self._newest()
        if newest:
            self.points.append((now, now - newest / 1_000_000))


def find_recoveries(
    points: Sequence[tuple[float, float]], kills: Sequence[Event]
) -> list[tuple[Event, float | None]]:
    """For each kill the seconds until its consumer had delivered what was committed after the kill
    and was late no more; None where that was not before the next kill."""
    recoveries: list[tuple[Event, float | None]] = []
    for number, kill in enumerate(kills):
        until = kills[number + 1].at if number + 1 < len(kills) else float("inf")
        well = (
            at - kill.at
            for at, staleness in points
            if kill.at < at < until and staleness < LATE_SECONDS and at - staleness > kill.at
        )
        recoveries.append((kill, next(well, None)))
    return recoveries


def count_late_seconds(
    points: Sequence[tuple[float, float]], events: Iterable[Event], grace_seconds: float
) -> float:
    """For how long a consumer was late when nothing had been killed for ``grace_seconds``."""
    kills = [event.at for event in events]
    late = 0.0
    for (before, _), (at, staleness) in pairwise(points):
        excused = any(kill <= at < kill + grace_seconds for kill in kills)
        if staleness >= LATE_SECONDS and not excused:
            late += at - before
    return late


def look_at_process(pid: int) -> tuple[float, int] | None:
    """Resident memory in MB and open file descriptors; None for a process that has ended."""
    try:
        process = psutil.Process(pid)
        return process.memory_info().rss / MEGABYTE, process.num_fds()
    except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
        return None


def measure_disk(folder: Path) -> float:
    """MB of the files of a folder; files may go away meanwhile."""
    size = 0
    for path in folder.rglob("*"):
        try:
            size += path.stat().st_size
        except FileNotFoundError:
            continue
    return size / MEGABYTE


class Sampler:
    """Samples and staleness in a thread; samples go to a file as they come."""

    def __init__(
        self,
        path: Path,
        sample: Callable[[], Sample],
        staleness: Sequence[StalenessLog],
    ) -> None:
        self.samples: list[Sample] = []
        self._path = path
        self._sample = sample
        self._staleness = staleness
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._take_samples, daemon=True),
            threading.Thread(target=self._look, daemon=True),
        ]

    def start(self) -> None:
        """Begins."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _look(self) -> None:
        while not self._stop.wait(EVERY_SECONDS):
            for log in self._staleness:
                log.look(time.time())

    def _take_samples(self) -> None:
        with self._path.open("a") as file:
            while not self._stop.wait(SAMPLE_SECONDS):
                sample = self._sample()
                self.samples.append(sample)
                file.write(json.dumps(asdict(sample)) + "\n")
                file.flush()


def thirds(values: Sequence[float]) -> tuple[float, float, float]:
    """The medians of the first, second and last third; zeros where there are not three."""
    size = len(values) // 3
    if size == 0:
        return 0.0, 0.0, 0.0
    return (
        median(values[:size]),
        median(values[size : 2 * size]),
        median(values[2 * size :]),
    )


def grows(values: Sequence[float], share: float, least: float) -> bool:
    """Whether the last third is above the first by more than this share, and this much."""
    first, _, last = thirds(values)
    return last > first * (1 + share) and last > first + least
