"""One instance of a shared consumer: holds its share of the parts, and gives some back when another
instance joins."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from spanner_schema.model.schema import Schema
from watcher.consumers.divisions import Beginning, Divisions
from watcher.consumers.holding import RENEWALS_PER_LEASE
from watcher.consumers.members import Members, count_share, plan_shift
from watcher.consumers.positions import SpannerPositions
from watcher.model.errors import ConfigurationError, NotStartedError
from watcher.model.log_events.running import MEMBER_NOT_REMOVED, MEMBERS_UNKNOWN
from watcher.overview.page.service import WatcherPage
from watcher.runners.metrics import Metrics
from watcher.runners.shared_run.part_run import Dividing, PartRun, Turns
from watcher.runners.sources import make_selection
from watcher.runners.watcher_run.connection import Connection
from watcher.runners.watcher_run.lifecycle import Lifecycle
from watcher.runners.watcher_run.run import RunStart
from watcher.runners.watcher_run.settings import RunSettings
from watcher.runners.watcher_run.startup import retry, retry_connected
from watcher.runners.watcher_run.table_resolver import TableResolver
from watcher.runners.watcher_run.totals import Totals
from watcher.settings.common import describe_common_settings
from watcher.settings.fields import resolve_start
from watcher.settings.watcher import WatchConfig
from watcher.spanner.database import connect
from watcher.spanner.failures import MAY_GO_AWAY, FailureKind, classify_error
from watcher.tables.parts import Part
from watcher.tables.values import WatchedTable

LOG = logging.getLogger("watcher")
MOVED = "its part goes to another instance"
ENDING = "the instance that held it ends"


@contextmanager
def open_shared_run(settings: RunSettings) -> Iterator[SharedRun]:
    """An instance of a shared consumer. Raises as ``SharedRun`` does; a server that does not answer
    is an error at once."""
    lifecycle = settings.lifecycle
    lifecycle.begin_run()
    settings.resolver.queries.outages.stopping = lifecycle.stopping
    try:
        yield SharedRun(settings)
    except BaseException as error:
        lifecycle.end_run(failed=not isinstance(error, NotStartedError))
        raise
    finally:
        settings.release_sink()
    lifecycle.end_run(failed=False)


class SharedRun:
    """Lives as long as the instance. ``settings`` are those of the consumer as a whole."""

    def __init__(self, settings: RunSettings) -> None:
        """Connects, and settles how the tables are divided. Raises ConfigurationError, and
        DivisionChangedError where they were divided in another way."""
        self._settings = settings
        self._config = settings.config
        self._shared = settings.config.consumer or ""
        self._member = str(uuid.uuid4())
        self._turns = Turns()
        self._runs: dict[Part, PartRun] = {}
        self._paused = False
        self._tables: tuple[str, ...] = ()
        connect(self._config.address)
        self._connection = retry(
            settings.lifecycle, lambda: Connection(self._config, settings.memory)
        )
        self._dividing = retry_connected(settings.lifecycle, self._connection, self._divide)
        settings.metrics.forget_position()  # each part has its own
        settings.lifecycle.note_started()

    # How the tables are divided.

    def _divide(self) -> Dividing:
        divisions = Divisions(self._positions, self._shared, self._config.parts or 1)
        dividing = Dividing(divisions, self._shared, self._read_beginning)
        tables = self._settings.resolver.resolve_latest()
        dividing.settle(tables.schema, tables.polled)
        self._tables = tuple(sorted(tables.source.tables))
        return dividing

    def _read_beginning(self) -> Beginning:
        now = self._settings.resolver.queries.fetch_read_timestamp()
        selection, start = make_selection(self._config), resolve_start(self._config.start)
        return Beginning(selection, start, now)

    @property
    def _positions(self) -> SpannerPositions:
        positions = self._connection.positions
        if not isinstance(positions, SpannerPositions):
            raise ConfigurationError("a shared consumer needs positions.keep = 'spanner'")
        return positions

    @property
    def _members(self) -> Members:
        """Over the connection of now: it may have been opened again."""
        positions, parts = self._positions, len(self._dividing.parts)
        settings = describe_common_settings(self._config)
        return Members(positions.database, positions.table, self._shared, parts, settings)

    def describe_start(self) -> RunStart:
        """What this instance is about to deliver, with others."""
        return RunStart(self._shared, self._tables, None, self._settings.page.link)

    # Until stopped.

    def deliver_until_stopped(self) -> None:
        """Holds parts and delivers them. Raises what cannot be fixed by trying again."""
        lifecycle = self._settings.lifecycle
        self._serve()
        try:
            while True:
                self._try_to_balance()
                if lifecycle.stopping.wait(self._config.lease / RENEWALS_PER_LEASE):
                    break
            self._end_parts()
            self._raise_errors()
        finally:
            self._end_parts()
            self._leave()

    def _serve(self) -> None:
        config = self._config.metrics
        if config is not None:
            self._settings.metrics.serve(config.host, config.port)
        self._settings.page.serve()

    def _try_to_balance(self) -> None:
        """Once more at the next time, where it fails with what may go away: the parts that are held
        go on meanwhile."""
        try:
            if self._connection.lost:
                self._connection.reopen()
            self._balance()
        except Exception as error:
            kind = classify_error(error)
            if kind not in MAY_GO_AWAY:
                raise
            self._connection.lost |= kind is FailureKind.SESSION
            MEMBERS_UNKNOWN.log(LOG, consumer=self._shared, error=error)

    def _balance(self) -> None:
        self._drop_ended()
        self._pass_on_wishes()
        members = self._members.renew(self._member, self._config.lease)
        if self._settings.lifecycle.drain_to is not None:
            return
        parts = self._dividing.parts
        share = count_share(len(parts), members, self._member)
        before = sum(name < self._member for name in members)
        shift = plan_shift(self._runs.keys(), self._list_free(), share, before * share)
        for part in shift.give_back:
            self._runs[part].stop(MOVED)
        for part in shift.take:
            self._runs[part] = PartRun(part, self._make_settings(part))

    def _list_free(self) -> list[Part]:
        consumers = self._connection.consumers
        statuses = consumers.list_all() if consumers is not None else ()
        alive = {each.consumer for each in statuses if each.alive}
        return [
            part
            for part in self._dividing.parts
            if part not in self._runs and part.name_consumer(self._shared) not in alive
        ]

    def _drop_ended(self) -> None:
        """Parts that have ended are nobody's. One that an operator stopped ends the instance; one
        that he drained, when the others are drained, too."""
        self._raise_errors()
        for part, run in list(self._runs.items()):
            if not run.ended:
                continue
            del self._runs[part]
            if run.settings.lifecycle.obeyed is not None:
                self._settings.lifecycle.obey(run.settings.lifecycle.obeyed)
        if self._settings.lifecycle.drain_to is not None and not self._runs:
            self._settings.lifecycle.note_drained()

    def _pass_on_wishes(self) -> None:
        """What the owner of the watcher asks for, each part does; also where an operator has
        drained one of them."""
        lifecycle = self._settings.lifecycle
        resumed, self._paused = self._paused and not lifecycle.paused, lifecycle.paused
        for run in self._runs.values():
            if lifecycle.paused:
                run.settings.lifecycle.pause()
            elif lifecycle.drain_to is not None:
                run.settings.lifecycle.drain()
            elif resumed:
                run.settings.lifecycle.resume()

    def _raise_errors(self) -> None:
        for run in self._runs.values():
            if run.error is not None:
                raise run.error

    # The end.

    def _end_parts(self) -> None:
        for run in self._runs.values():
            run.stop(self._settings.lifecycle.reason or ENDING)
        for run in self._runs.values():
            run.wait()

    def _leave(self) -> None:
        try:
            self._members.leave(self._member)
        except Exception as error:
            if classify_error(error) not in MAY_GO_AWAY:
                raise
            MEMBER_NOT_REMOVED.log(LOG, error=error)

    # One part.

    def _make_settings(self, part: Part) -> RunSettings:
        """The settings of a part: a consumer of its own. One of them clears, for all."""
        whole = self._settings
        changes: Mapping[str, object] = {
            "consumer": part.name_consumer(self._shared),
            "clearing": self._config.clearing if part.number == 1 else None,
            "parts": None,
            "page": None,
            "metrics": None,
        }
        config = self._config.model_copy(update=dict(changes))
        resolver = TableResolver(config, partial(self._keep_part, part))
        return RunSettings(
            config,
            whole.make_sink,
            resolver,
            whole.memory,
            Lifecycle(resolver.queries.fetch_read_timestamp),
            self._make_metrics(config, resolver),
            Totals(),
            WatcherPage(config),
            self._turns,
            replay=whole.replay,
        )

    def _keep_part(
        self, part: Part, schema: Schema, tables: Sequence[WatchedTable]
    ) -> Sequence[WatchedTable]:
        return self._dividing.keep(schema, tables, part)

    def _make_metrics(self, config: WatchConfig, resolver: TableResolver) -> Metrics:
        metrics = Metrics(config.consumer or "", self._settings.metrics.families)
        if self._config.metrics is not None:
            stream = resolver.queries.stream
            stream.counts_scans = True
            metrics.measure_queries(stream)
        return metrics
