"""What delivering cost the client, by its own clock: from when it runs until it has ended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.load.records import CPU, DELIVERED, read
from benchmarks.run_settings import Run

MICROS = 1_000_000


@dataclass(frozen=True, slots=True)
class ClientTimes:
    """Seconds. ``start``: from the beginning of its work, connecting included, until it runs;
    ``running``: from there to the last delivered row. CPU seconds are of all its processes."""

    start: float
    running: float
    cpu_start: float
    cpu_running: float


def read_client_times(run: Run) -> ClientTimes | None:
    """From the CPU records of what delivers; None where a process has logged less than three."""
    logs = [read([path], CPU) for path in run.all_records("cpu")]
    if not logs or any(len(log) < 3 for log in logs):
        return None
    began, runs, ended = (np.array([log[index] for log in logs], CPU) for index in (0, 1, -1))
    delivered = read(run.all_records("delivered"), DELIVERED)
    ready = int(runs["at"].max())
    last = int(delivered["at"].max()) if len(delivered) else ready
    return ClientTimes(
        start=round((ready - int(began["at"].min())) / MICROS, 3),
        running=round(max(last - ready, 0) / MICROS, 3),
        cpu_start=round(int((runs["cpu"] - began["cpu"]).sum()) / MICROS, 3),
        cpu_running=round(int((ended["cpu"] - runs["cpu"]).sum()) / MICROS, 3),
    )
