"""``spanner-watcher bench``: the benchmarks, in a process that has their libraries."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

import typer

from watcher.errors import ConfigurationError

LIBRARIES = ("hdrh", "matplotlib", "numpy", "psutil")


def command(context: typer.Context) -> None:
    """Measure the watcher under load: run, list, report, compare, model."""
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"benchmarks need more libraries ({', '.join(missing)}): pip install"
            " 'spanner-watcher[bench]'"
        )
    # Their libraries take a second to import, which no other command should pay for.
    os.execv(sys.executable, [sys.executable, "-m", "benchmarks", *context.args])
