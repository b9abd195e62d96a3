"""What a watcher hands to each of its runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from watcher.consumers.positions import MemoryPositions
from watcher.model.errors import DeliveryError
from watcher.overview.page.service import WatcherPage
from watcher.runners.metrics import Metrics
from watcher.runners.watcher_run.lifecycle import Lifecycle
from watcher.runners.watcher_run.table_resolver import TableResolver
from watcher.runners.watcher_run.totals import Totals
from watcher.settings.watcher import WatchConfig
from watcher.sinks.contract import Sink
from watcher.sinks.replays import Replay, refuse_replay


@dataclass(frozen=True, slots=True)
class RunContact:
    """What a sink asks of its run, and says to it. ``check`` raises when this instance must not
    deliver any more. ``note_refusal`` is told why a change is tried again, and ``note_recovery``
    that it was delivered: operators see both. ``is_stopping``: whether the run is to end soon."""

    check: Callable[[], None]
    note_refusal: Callable[[DeliveryError], object]
    note_recovery: Callable[[], object]
    is_stopping: Callable[[], bool]


MakeSink = Callable[[RunContact], Sink]
"""Makes the sink of a run."""


def keep_no_letters(_: RunContact) -> Replay:
    """The ``replay`` of a sink without dead letters. Raises ConfigurationError."""
    raise refuse_replay()


def ignore() -> None:
    """Nothing is held."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What a watcher hands to each of its runs, and keeps from one to the next.

    Runs of one process that write to the same sink deliver in ``turn``. ``release_sink`` gives back
    what the sink of a run that has ended holds, before another instance can have the name.
    ``replay`` delivers the dead letters again, to the same sink, between windows."""

    config: WatchConfig
    make_sink: MakeSink
    resolver: TableResolver
    memory: MemoryPositions
    lifecycle: Lifecycle
    metrics: Metrics
    totals: Totals
    page: WatcherPage
    turn: AbstractContextManager[object] = field(default_factory=nullcontext)
    release_sink: Callable[[], None] = ignore
    replay: Callable[[RunContact], Replay] = keep_no_letters
