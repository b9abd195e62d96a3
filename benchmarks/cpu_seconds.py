"""The CPU time of a Spark job: its Python, its JVM, and Spark's Python processes."""

from __future__ import annotations

import psutil


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
