"""Imports without Python's garbage collector: it takes a sixth of their CPU time, and later, in a
worker of Spark's, 80 ms after each task."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from watcher.process.spark.installed_spark import is_worker


@contextmanager
def pause_collector() -> Iterator[None]:
    """No collection meanwhile, unless it was off before: what modules define stays, and to look at
    all of it again and again while more is defined finds nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def freeze_imports() -> None:
    """In a worker, the collector does not look again at what is there now: Spark has it collect
    after each task of a worker that is used again. Does nothing in other processes."""
    if is_worker():
        gc.freeze()
