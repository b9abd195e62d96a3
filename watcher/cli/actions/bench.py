"""Runs the benchmarks in a process of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def run_benchmarks(arguments: Sequence[str]) -> None:
    """Replaces this process by ``python -m benchmarks``."""
    os.execv(sys.executable, [sys.executable, "-m", "benchmarks", *arguments])
