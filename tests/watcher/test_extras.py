"""What needs some extras can be imported where no others are installed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fixtures.commands import SECONDS
from fixtures.pace import allow
from fixtures.warm_python import run_cold

from watcher.process.extras import EXTRAS
from watcher.process.terminal.loading import declare

ROOT = Path(__file__).parents[2]

COMMANDS = [
    f"{folder}.{file.stem}"
    for folder in ("watcher.cli", "watcher.cli.ctl", "watcher.cli.ddl", "conformance.demo")
    for file in sorted((ROOT / folder.replace(".", "/")).glob("*.py"))
    if "to_run(__name__)" in file.read_text()
]
MODULES = {
    "watcher": (),
    "ddl": (),
    "emulator": ("emulator",),
    "watcher.pytest_plugin": ("emulator",),
    "watcher.runners.spark.source": ("spark",),
    "watcher.runners.spark_job": ("spark",),
    "watcher.runners.spark_replica": ("spark",),
    "watcher.replica.frame_reading": ("spark",),
    "benchmarks.cli": ("bench",),
    "conformance.cli": ("emulator",),
} | {name: getattr(declare(name), "EXTRAS", ()) for name in COMMANDS}
"""What users import or run, and the extras that each needs."""
ALWAYS = {"opentelemetry.trace"}
"""Google's client for Spanner brings it."""
WITHOUT = """
import sys
from importlib import import_module
hidden, modules = (names.split() for names in sys.argv[1:])
sys.modules.update(dict.fromkeys(hidden))
for module in modules:
    import_module(module)
"""


@pytest.mark.parametrize("extras", sorted(set(MODULES.values())), ids=" ".join)
def test_what_an_extra_is_for_needs_no_other(extras: tuple[str, ...]) -> None:
    """README's first command installs one extra; the tests have all."""
    brought = {library for name in extras for library in EXTRAS[name]}
    hidden = {library for libraries in EXTRAS.values() for library in libraries} - brought - ALWAYS
    modules = [name for name, needed in MODULES.items() if needed == extras]
    arguments = ["-c", WITHOUT, " ".join(hidden), " ".join(modules)]
    done = run_cold(arguments, os.environ, allow(SECONDS))
    assert done.returncode == 0, done.stderr
