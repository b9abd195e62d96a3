"""Spark's daemon of Python workers that has imported the source already: a worker is a fork of it,
and does not spend its first second or two on imports.

It is chosen before the session is made: ``.config("spark.python.daemon.module",
"watcher.spark_daemon")``, on clusters whose workers have the product installed.
"""

from __future__ import annotations

import sys
from importlib import import_module

from watcher.process.spark.installed_spark import use_installed_spark
from watcher.process.spark.preload import SOURCE, preload

DAEMON = "pyspark.daemon"
WITHOUT_SOURCE = frozenset({"pyspark.sql.worker.lookup_data_sources"})
"""Worker modules of Spark's that never load the source."""


def choose_modules(worker_module: str | None) -> tuple[str, ...]:
    """What a worker needs: the source, and the module of Spark's that the worker runs."""
    if worker_module in WITHOUT_SOURCE:
        return (DAEMON,)
    return (DAEMON, SOURCE, *filter(None, [worker_module]))


def main() -> None:
    """Runs Spark's daemon."""
    use_installed_spark()
    preload(choose_modules(sys.argv[1] if len(sys.argv) > 1 else None))
    import_module(DAEMON).manager()


if __name__ == "__main__":
    main()
