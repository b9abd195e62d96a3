"""Keeps a replica with Spark, which other commands do not load."""

from __future__ import annotations

import signal
from collections.abc import Callable

from watcher.replica.commits import CutReport
from watcher.runners.spark_job import run_job
from watcher.settings.watcher import WatchConfig


def replicate(
    config: WatchConfig, report: Callable[[CutReport], object], once: bool, take_over: bool
) -> None:
    """Replicates until SIGTERM or SIGINT, or ``once`` up to now."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    run_job(config, report, once, take_over)
