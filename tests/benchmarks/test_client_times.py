"""A client's own times: of all processes, from when the last of them runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.load.client_times import ClientTimes, read_client_times
from benchmarks.load.records import CPU, DELIVERED, Appender
from benchmarks.run_settings import Run

SECOND = 1_000_000


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(database="projects/p1/instances/i1/databases/d1", emulator=None, folder=tmp_path)


def log_cpu(run: Run, process: str, *moments: tuple[float, float]) -> None:
    with Appender(run.records("cpu", process), CPU) as log:
        for at, cpu in moments:
            log.add((round(at * SECOND), round(cpu * SECOND)), 1)


def test_times_are_of_all_processes(run: Run) -> None:
    log_cpu(run, "watcher0", (10, 1), (12, 2), (30, 5))
    log_cpu(run, "watcher1", (11, 1), (13, 3), (30, 4))
    with Appender(run.records("delivered", "watcher0"), DELIVERED) as log:
        log.add((0, 1, 1, 1, 20 * SECOND), 1)
    assert read_client_times(run) == ClientTimes(
        start=3.0, running=7.0, cpu_start=3.0, cpu_running=4.0
    )


def test_nothing_delivered_took_no_time(run: Run) -> None:
    log_cpu(run, "java", (10, 1), (12, 2), (30, 5))
    assert read_client_times(run) == ClientTimes(2.0, 0.0, 1.0, 3.0)


def test_a_process_that_did_not_end_tells_nothing(run: Run) -> None:
    assert read_client_times(run) is None
    log_cpu(run, "java", (10, 1), (12, 2))
    assert read_client_times(run) is None
