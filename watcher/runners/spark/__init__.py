"""The Spark source ``spanner-changes``: an offset is a position, a micro-batch a window, an input
partition a slice."""

from __future__ import annotations

from watcher.process.spark.collector_pause import freeze_imports, pause_collector
from watcher.process.spark.installed_spark import leave_zips

leave_zips()
# Spark starts several Python processes for a first batch, and each imports all of this.
with pause_collector():
    from watcher.runners.spark.prestart import prestart_workers
    from watcher.runners.spark.registration import register_source as register
    from watcher.runners.spark.source import FORMAT, SpannerChanges
freeze_imports()

__all__ = ["FORMAT", "SpannerChanges", "prestart_workers", "register"]
