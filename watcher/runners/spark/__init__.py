"""The Spark source ``spanner-changes``: an offset is a position, a micro-batch a window, an input
partition a slice."""

from __future__ import annotations

from importlib import import_module

from watcher.process.spark.collector_pause import freeze_imports, pause_collector
from watcher.process.spark.installed_spark import is_worker, leave_zips
from watcher.process.spark.pandas_import import keep_pandas_out
from watcher.process.spark.preload import SOURCE

if is_worker():
    # A driver registers the source by its name, and needs none of what it imports.
    leave_zips()
    keep_pandas_out()
    with pause_collector():
        import_module(SOURCE)
    freeze_imports()
