"""Spark's daemon of Python workers that has imported the source already: a worker is a fork of it,
and does not spend its first second or two on imports.

It is chosen before the session is made: ``.config("spark.python.daemon.module",
"watcher.spark_daemon")``, where the workers have the product installed. Nothing but imports happens
before a fork: a channel of gRPC does not survive one, so each worker opens its own.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module

from watcher.process.spark.collector_pause import pause_collector
from watcher.process.spark.installed_spark import use_installed_spark

DAEMON = "pyspark.daemon"
SOURCE = "watcher.runners.spark.source"
WITHOUT_SOURCE = frozenset({"pyspark.sql.worker.lookup_data_sources"})
"""Worker modules of Spark's that never load the source."""


def preload(worker_module: str | None = None) -> None:
    """Imports what a worker needs: the source, and the module of Spark's that the worker runs."""
    with pause_collector():
        import_module(DAEMON)
        if worker_module not in WITHOUT_SOURCE:
            import_module(SOURCE)
            if worker_module is not None:
                import_module(worker_module)
        # Before the collector runs: it would look at all of this, and a worker would copy from the
        # daemon's memory what is looked at.
        gc.freeze()


def main() -> None:
    """Runs Spark's daemon."""
    use_installed_spark()
    preload(sys.argv[1] if len(sys.argv) > 1 else None)
    import_module(DAEMON).manager()


if __name__ == "__main__":
    main()
