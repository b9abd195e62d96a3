"""What a watcher prints -> windows as arrays of numbers."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import IO, TypeAlias

import numpy as np

from watcher.spanner.timestamps import to_micros

Rows: TypeAlias = "np.ndarray[tuple[int, int], np.dtype[np.int64]]"
"""A row each: commit timestamp in microseconds, key, version."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A window as a watcher printed it, or a part of one. ``instance`` counts the processes of a
    consumer."""

    instance: int
    start: int
    end: int
    rows: Rows


class Output:
    """Reads what the processes of one consumer print, in a thread for each; keeps the windows."""

    def __init__(self) -> None:
        self._deliveries: list[Delivery] = []
        self.newest = 0
        """The newest commit timestamp that was delivered."""
        self._instances = 0
        self._threads: list[threading.Thread] = []

    @property
    def deliveries(self) -> list[Delivery]:
        """The windows so far, process by process."""
        return sorted(self._deliveries, key=lambda delivery: delivery.instance)

    def read(self, stream: IO[bytes]) -> None:
        """Reads a process until it ends."""
        self._instances += 1
        number = self._instances
        thread = threading.Thread(target=self._read, args=(number, stream), daemon=True)
        self._threads.append(thread)
        thread.start()

    def join(self) -> None:
        """Returns when all that was printed is read."""
        for thread in self._threads:
            thread.join()

    def _read(self, number: int, stream: IO[bytes]) -> None:
        window: tuple[int, int] | None = None
        rows: list[tuple[int, int, int]] = []
        keys: set[int] = set()
        for text in stream:
            if not text.endswith(b"\n"):
                break  # the process was killed in the middle of it
            line = json.loads(text)
            span = (parse(line["window"]["start"]), parse(line["window"]["end"]))
            key = line["key"]["Id"]
            if window is not None and (span != window or key in keys):
                self._keep(number, window, rows)
                rows, keys = [], set()
            window = span
            keys.add(key)
            at = parse(line["commit_timestamp"])
            rows.append((at, key, line["values"]["Version"]))
            self.newest = max(self.newest, at)
        if window is not None:
            self._keep(number, window, rows)

    def _keep(self, number: int, window: tuple[int, int], rows: list[tuple[int, int, int]]) -> None:
        kept = np.array(rows, dtype=np.int64)
        self._deliveries.append(Delivery(number, *window, kept))


@lru_cache(maxsize=4_096)
def parse(text: str) -> int:
    """Microseconds since 1970 of a text such as 2026-01-02T03:04:05.123456Z."""
    return to_micros(datetime.fromisoformat(text))
