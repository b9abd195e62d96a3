"""Opens what a run needs, and releases the consumer's name when the run ends."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from watcher.consumers.positions import SpannerPositions
from watcher.model.errors import NotStartedError, UnavailableError
from watcher.model.log_events.running import START_RETRIED
from watcher.overview.probe.stored import refuse_unsafe
from watcher.runners.watcher_run.connection import Connection
from watcher.runners.watcher_run.lease_keeper import LeaseKeeper
from watcher.runners.watcher_run.lifecycle import Lifecycle
from watcher.runners.watcher_run.recovery import iterate_pauses_of_run
from watcher.runners.watcher_run.run import WatcherRun
from watcher.runners.watcher_run.settings import RunSettings
from watcher.settings.modes import list_watch_modes
from watcher.settings.watcher import WatchConfig
from watcher.spanner.database import connect
from watcher.spanner.failures import MAY_GO_AWAY, classify_error

LOG = logging.getLogger("watcher")
PAUSE_SECONDS_FIRST = 0.5

Opened = TypeVar("Opened")


@contextmanager
def open_run(settings: RunSettings, once: bool) -> Iterator[WatcherRun]:
    """A run of a watcher; ``once``: it has an end. A server that does not answer is an error at
    once; what fails after the first answer, and may go away, is tried again.

    Raises LeaseHeldError while another instance runs as this consumer, NotStartedError where it is
    asked to end before it has started.
    """
    lifecycle = settings.lifecycle
    lifecycle.begin_run()
    settings.resolver.queries.outages.stopping = lifecycle.stopping
    try:
        connect(settings.config.address)
        connection = retry(lifecycle, lambda: Connection(settings.config, settings.memory))
    except BaseException as error:
        lifecycle.end_run(failed=not isinstance(error, NotStartedError))
        raise
    lease = LeaseKeeper(settings, connection)
    try:
        yield retry_connected(
            lifecycle, connection, lambda: start(settings, connection, lease, once)
        )
    except BaseException as error:
        lifecycle.end_run(failed=not isinstance(error, NotStartedError))
        settings.release_sink()
        lease.end(error)
        raise
    lifecycle.end_run(failed=False)
    settings.release_sink()
    lease.end(None)


def start(
    settings: RunSettings, connection: Connection, lease: LeaseKeeper, once: bool
) -> WatcherRun:
    """Takes the consumer's name and registers it; may be called again when it has failed."""
    refuse_unsafe_run(settings.config, connection)
    lease.begin()
    run = WatcherRun(settings, connection, lease, settings.resolver.resolve_latest(), once)
    settings.lifecycle.note_started()
    lease.obey()
    serve_metrics(settings)
    settings.page.serve()
    return run


def refuse_unsafe_run(config: WatchConfig, connection: Connection) -> None:
    """Raises UnsafeModeError where a probe of the database has found wrong what the run relies on.
    One read."""
    positions = connection.positions
    database = (
        positions.database if isinstance(positions, SpannerPositions) else connection.database
    )
    modes, accepted = list_watch_modes(config), config.accept_failed_probes
    refuse_unsafe(database, config.positions.table, config.address, modes, accepted)


def serve_metrics(settings: RunSettings) -> None:
    """Serves the metrics where they are configured; queries then ask how many rows were scanned."""
    config = settings.config.metrics
    if config is None:
        return
    stream = settings.resolver.queries.stream
    stream.counts_scans = True
    settings.metrics.measure_queries(stream)
    settings.metrics.serve(config.host, config.port)


def retry(lifecycle: Lifecycle, attempt: Callable[[], Opened]) -> Opened:
    """What an attempt opens; tried again while it fails with what may go away. Raises
    NotStartedError where the run is asked to end meanwhile."""
    pauses = iterate_pauses_of_run(PAUSE_SECONDS_FIRST)
    while True:
        try:
            return attempt()
        except Exception as error:
            if isinstance(error, UnavailableError) or classify_error(error) not in MAY_GO_AWAY:
                raise
            pause = next(pauses)
            START_RETRIED.log(LOG, seconds=pause, error=error)
            if lifecycle.stopping.wait(pause):
                raise NotStartedError(error) from error


def retry_connected(
    lifecycle: Lifecycle, connection: Connection, attempt: Callable[[], Opened]
) -> Opened:
    """As ``retry``; after an attempt that has failed, the next one connects again."""

    def attempt_connected() -> Opened:
        if connection.lost:
            connection.reopen()
        try:
            return attempt()
        except Exception:
            connection.lost = True
            raise

    return retry(lifecycle, attempt_connected)
