"""Whose CPU time it is: of what was started here, or of others."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.machine_load import CpuMeter, CpuUse

BURNED_SECONDS = 0.6
BURN = f"import time\nwhile time.process_time() < {BURNED_SECONDS}: pass"


def test_what_a_process_that_was_started_here_uses_is_ours() -> None:
    with CpuMeter() as meter:
        subprocess.run([sys.executable, "-c", BURN], check=True)
    assert meter.use is not None
    assert meter.use.ours >= BURNED_SECONDS - 0.05
    assert 0 <= meter.use.others_share <= 1


def test_what_was_used_before_does_not_count() -> None:
    subprocess.run([sys.executable, "-c", BURN], check=True)
    with CpuMeter() as meter:
        pass
    assert meter.use is not None
    assert meter.use.ours < BURNED_SECONDS


def test_others_are_a_share_of_all_cpus() -> None:
    use = CpuUse(seconds=10, cpus=4, ours=20, others=10)
    assert use.others_share == 0.25
    assert use.busy
    assert use.describe_others() == (
        "other processes used 25 % of its CPU time (1.0 of 4 CPUs) meanwhile"
    )


def test_a_little_is_not_busy() -> None:
    assert not CpuUse(seconds=10, cpus=4, ours=20, others=4).busy
    assert not CpuUse(seconds=0, cpus=4, ours=0, others=0).busy
