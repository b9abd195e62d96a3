"""The Spark source ``spanner-changes``: an offset is a position, a micro-batch a window, an input
partition a slice."""

from __future__ import annotations

from watcher.runners.spark.registration import register_source as register
from watcher.runners.spark.source import FORMAT, SpannerChanges

__all__ = ["FORMAT", "SpannerChanges", "register"]
