"""What a watcher hands to each of its runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from watcher.consumers.positions import MemoryPositions
from watcher.page.service import WatcherPage
from watcher.runners.delivery.sinks import Sink
from watcher.runners.metrics import Metrics
from watcher.runners.watcher_run.lifecycle import Lifecycle
from watcher.runners.watcher_run.table_resolver import TableResolver
from watcher.runners.watcher_run.totals import Totals
from watcher.settings.watcher import WatchConfig

MakeSink = Callable[[Callable[[], None]], Sink]
"""Makes the sink of a run, given what raises when this instance must not deliver any more."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What a watcher hands to each of its runs, and keeps from one to the next."""

    config: WatchConfig
    make_sink: MakeSink
    resolver: TableResolver
    memory: MemoryPositions
    lifecycle: Lifecycle
    metrics: Metrics
    totals: Totals
    page: WatcherPage
