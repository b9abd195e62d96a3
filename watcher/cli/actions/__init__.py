"""What each command does. A module is loaded when its command runs, so that ``--help`` is fast."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from watcher.extras import require_extras

if TYPE_CHECKING:
    from watcher.cli.actions import bench as bench
    from watcher.cli.actions import check as check
    from watcher.cli.actions import clear as clear
    from watcher.cli.actions import conformance as conformance
    from watcher.cli.actions import ctl as ctl
    from watcher.cli.actions import ddl as ddl
    from watcher.cli.actions import demo as demo
    from watcher.cli.actions import emulator as emulator
    from watcher.cli.actions import failures as failures
    from watcher.cli.actions import page as page
    from watcher.cli.actions import replay as replay
    from watcher.cli.actions import replicate as replicate
    from watcher.cli.actions import replicate_spark as replicate_spark
    from watcher.cli.actions import status as status
    from watcher.cli.actions import status_watch as status_watch
    from watcher.cli.actions import trial as trial
    from watcher.cli.actions import verify as verify
    from watcher.cli.actions import watch as watch

EXTRAS: dict[str, tuple[str, ...]] = {
    "bench": ("bench",),
    "check": (),
    "clear": (),
    "conformance": ("emulator",),
    "ctl": (),
    "ddl": (),
    "demo": ("emulator", "spark"),
    "emulator": ("emulator",),
    "failures": (),
    "page": (),
    "replay": (),
    "replicate": ("delta",),
    "replicate_spark": ("spark",),
    "status": (),
    "status_watch": (),
    "trial": ("emulator",),
    "verify": (),
    "watch": (),
}
"""The modules, with the extras of the distribution that each needs."""


def __getattr__(name: str) -> ModuleType:
    """Loads the module of a command. Raises MissingExtraError if an extra is missing, and
    AttributeError."""
    if name not in EXTRAS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_extras(*EXTRAS[name])
    return import_module(f"{__name__}.{name}")
