"""What Spark's Python processes import, imported before they are forked."""

from __future__ import annotations

import gc
from collections.abc import Collection
from importlib import import_module
from importlib.util import find_spec

from watcher.process.spark.collector_pause import pause_collector

SOURCE = "watcher.runners.spark.source"
PANDAS = "watcher.process.spark.pandas_import"


def preload(modules: Collection[str]) -> None:
    """Imports modules of PySpark, as far as this version has them. Nothing but imports happens
    before a fork: a channel of gRPC does not survive one, so each worker opens its own."""
    with pause_collector():
        if SOURCE in modules:
            # Not imported here: workers that never load the source need no pyarrow.
            import_module(PANDAS).keep_pandas_out()
        for module in modules:
            if find_spec(module) is not None:
                import_module(module)
        # Before the collector runs: it would look at all of this, and a worker would copy from the
        # memory that it shares what is looked at.
        gc.freeze()
