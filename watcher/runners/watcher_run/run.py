"""One run of a watcher: windows after backfills, beside renewals of the lease and clearing."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from watcher.captures.streamed_tables import StreamedTables
from watcher.consumers.holding import RENEWALS_PER_LEASE
from watcher.consumers.states import Command, State
from watcher.model.errors import (
    ConfigurationError,
    DeliveryError,
    FileInUseError,
    OutputClosedError,
)
from watcher.model.log_events.delivery import DEAD_LETTERS_NOT_REPLAYED, DEAD_LETTERS_REPLAYED
from watcher.model.log_events.running import WATCHED_TABLES_CHANGED
from watcher.runners.delivery.backfill import BackfillDelivery
from watcher.runners.delivery.push import PushDelivery
from watcher.runners.delivery.windows import Delivered, WindowDelivery
from watcher.runners.schedule import Schedule
from watcher.runners.watcher_run.clearing import PeriodicClearing
from watcher.runners.watcher_run.connection import Connection
from watcher.runners.watcher_run.idle_pause import IdlePause
from watcher.runners.watcher_run.lease_keeper import LeaseKeeper
from watcher.runners.watcher_run.lifecycle import CAUGHT_UP, READER_GONE
from watcher.runners.watcher_run.recovery import Recovery
from watcher.runners.watcher_run.registration import Registrar
from watcher.runners.watcher_run.settings import RunContact, RunSettings
from watcher.runners.watcher_run.table_resolver import Tables
from watcher.sinks.contract import Sink
from watcher.sinks.proto_texts import show_protos
from watcher.sinks.traced import trace_sink

LOG = logging.getLogger("watcher")
POLL = "poll"
"""The job that delivers windows."""
FAILURES_OF_ONCE_MAX = 8
"""So many failures in a row end ``WatcherRun.deliver_once``."""


@dataclass(frozen=True, slots=True)
class RunStart:
    """What a run watches: tables by name, the consumer, and from which commit timestamp on
    (microseconds since 1970; the earliest of the tables, None where there is none).

    ``page`` is the address of the live page, where one is served; it ends with the token unless
    that is in a file."""

    consumer: str
    tables: tuple[str, ...]
    since: int | None
    page: str | None = None


class WatcherRun:
    """Lives from the acquisition of the lease to its release; ``open_run`` makes it."""

    def __init__(
        self,
        settings: RunSettings,
        connection: Connection,
        lease: LeaseKeeper,
        tables: Tables,
        once: bool,
    ) -> None:
        """Registers the consumer in ``tables``. ``once``: the run has an end."""
        self._settings = settings
        self._connection = connection
        self._lease = lease
        self._tables = tables
        self._rows_came = False
        """Whether the latest poll brought rows."""
        self._not_before = 0.0
        """Until when nothing is tried again."""
        self._idle = IdlePause(settings.config)
        self._once = once
        self._fixed_end: int | None = None
        """Where a run that has an end ends: what the first look saw."""
        self._registrar = Registrar(
            settings.config.start, connection, lease, settings.resolver, once
        )
        self._recovery = Recovery(settings, connection, lease, self._reread_schema)
        lifecycle = settings.lifecycle
        self._contact = RunContact(
            lease.check, self._note_refusal, lifecycle.note_success, lifecycle.stopping.is_set
        )
        made = settings.make_sink(self._contact)
        shown = show_protos(made, settings.config.delivery.proto_descriptors)
        sink = trace_sink(shown, settings.config)
        self._windows = self._make_delivery(sink, once)
        self._backfill = BackfillDelivery(
            tables.backfills,
            connection.positions,
            lease.instance,
            sink,
            settings.config.backfill_rows,
        )
        self._registrar.register_first(tables)
        self._backfill.resume()

    def _make_delivery(self, sink: Sink, once: bool) -> WindowDelivery:
        """Window by window, or with queries that stay open, which have no end."""
        config, source = self._settings.config, self._tables.source
        positions, instance = self._connection.positions, self._lease.instance
        if isinstance(source, StreamedTables) and config.stream.push and not once:
            return PushDelivery(
                source, positions, instance, sink, config.interval, self, config.refresh
            )
        return WindowDelivery(
            source,
            positions,
            instance,
            sink,
            config.window_limit,
            config.transactions,
            self,
            config.refresh,
        )

    def describe_start(self) -> RunStart:
        """What this run is about to deliver."""
        starts = self._windows.read_positions()
        tables = tuple(sorted(self._tables.source.tables))
        since = min(starts.values(), default=None)
        return RunStart(self._lease.consumer, tables, since, self._settings.page.link)

    def _note_refusal(self, error: DeliveryError) -> None:
        """A change is refused and will be tried again: stored once, until one is delivered."""
        lifecycle = self._settings.lifecycle
        if lifecycle.state is not State.FAILED:
            self._lease.store_error(error)
        lifecycle.note_failure()

    # Until stopped.

    def deliver_until_stopped(self) -> None:
        """Delivers windows on a schedule. Raises what cannot be fixed by trying again."""
        config = self._settings.config
        schedule = Schedule(self._settings.lifecycle.stopping)
        schedule.poll(config.interval, POLL, self._poll)
        self._idle.wake = lambda: schedule.run_soon(POLL)
        self._schedule_renewals(schedule)
        if config.clearing is not None:
            clearing = PeriodicClearing(
                config.clearing, self._connection, self._lease, self._settings.metrics
            )
            schedule.every(
                config.clearing.every, "clearing", lambda: clearing.clear(self._tables.polled)
            )
        try:
            schedule.start()
            schedule.wait()
            self._windows.finish()
        finally:
            schedule.end()
            self._idle.end()
            self._windows.close()

    def _schedule_renewals(self, schedule: Schedule) -> None:
        if self._lease.owner is not None:
            seconds = self._settings.config.lease / RENEWALS_PER_LEASE
            schedule.every(seconds, "lease", self._lease.keep)

    def _poll(self) -> bool:
        """Delivers a window unless paused or backing off; True when the next may follow at once: an
        adaptive watcher does not wait while rows keep coming."""
        lifecycle = self._settings.lifecycle
        waits = time.monotonic() < self._not_before
        idle = self._idle.goes_on and lifecycle.drain_to is None and not lifecycle.replaying
        if lifecycle.paused or waits or idle:
            return False
        try:
            with self._settings.turn:
                more = self._deliver_next()
        except OutputClosedError:
            lifecycle.stop(READER_GONE)
            return False
        except Exception as error:  # noqa: BLE001 (classified, and raised if it is permanent)
            self._not_before = time.monotonic() + self._recovery.handle(error)
            return False
        keeps_coming = self._settings.config.adaptive and self._rows_came
        return more or keeps_coming

    # Once.

    def deliver_once(self) -> int:
        """Delivers what is there now; the number of rows."""
        lifecycle, totals = self._settings.lifecycle, self._settings.totals
        before = totals.rows
        schedule = Schedule(lifecycle.stopping)
        self._schedule_renewals(schedule)
        try:
            schedule.start()
            while not lifecycle.interrupted and self._deliver_or_retry():
                pass
            lifecycle.reason = lifecycle.reason or CAUGHT_UP
            schedule.stop()
            schedule.wait()
            self._windows.finish()
        except Exception:
            schedule.stop()
            schedule.wait()  # raises what a renewal raised: it is why the window was not retried
            raise
        finally:
            schedule.end()
        return totals.rows - before

    def _deliver_or_retry(self) -> bool:
        """Delivers a window; what may go away is tried again, but not for ever."""
        lifecycle = self._settings.lifecycle
        while True:
            try:
                return self._deliver_next()
            except OutputClosedError:
                lifecycle.stop(READER_GONE)
                return False
            except Exception as error:
                if self._recovery.failures >= FAILURES_OF_ONCE_MAX:
                    raise
                if lifecycle.stopping.wait(self._recovery.handle(error)):
                    raise

    # One window.

    def _deliver_next(self) -> bool:
        """As ``_deliver``, up to the end of a drain, which ends the run. What is asked for while
        the window is in progress is for the next one."""
        lifecycle = self._settings.lifecycle
        until = lifecycle.drain_to
        fixed_end = None if self._windows.unfinished else self._fixed_end
        end = fixed_end if until is None else until
        more = self._deliver(end)
        if lifecycle.replaying:
            obey_replay(self._settings, self._lease, self._contact)
        if more or until != lifecycle.drain_to or (until is None and self._windows.unfinished):
            return True
        if until is not None:
            lifecycle.note_drained()
        return False

    def _deliver(self, until: int | None) -> bool:
        """Delivers a page of a backfill or a window; True when there may be more."""
        if self._connection.lost:
            self._connection.reopen()
            self._windows.replace_positions(self._connection.positions)
            self._backfill.replace_positions(self._connection.positions)
        self._lease.keep_expired()
        if self._backfill.in_progress:
            rows = self._backfill.deliver_page()
            self._settings.totals.count_rows(sum(rows.values()))
            self._settings.metrics.count_backfilled(rows)
            return True
        delivered = self._windows.poll(until)
        if self._once and self._fixed_end is None:
            self._fixed_end = delivered.wanted
        self._note_delivered(delivered)
        return delivered.more

    def _note_delivered(self, delivered: Delivered) -> None:
        config = self._settings.config
        self._recovery.reset()
        self._settings.totals.count_window(delivered.total)
        self._settings.metrics.count_window(delivered.rows, delivered.end)
        # An adaptive watcher polls at once behind rows; that this brings none is not idleness yet.
        active = delivered.total > 0 or (config.adaptive and self._rows_came)
        self._rows_came = delivered.total > 0
        over = not delivered.more and not self._windows.unfinished
        self._idle.note(delivered.end, active, over and not self._once, self._windows.listen)

    # Tables as the schema changes.

    def follow(self, timestamp: int) -> None:
        """As ``TableFollower.follow``."""
        tables = self._settings.resolver.resolve_at(timestamp, self._registrar.unread)
        if tables.source is not self._windows.source:
            self._adopt(tables, timestamp)
        else:
            self._tables = tables

    def prepare(self, timestamp: int) -> None:
        """As ``TableFollower.prepare``."""
        self._settings.resolver.prepare(timestamp)

    def note_saved(self) -> None:
        """As ``TableFollower.note_saved``."""
        self._registrar.remove_dropped(self._tables)

    def _reread_schema(self) -> None:
        """Continues with the tables of the current schema."""
        at = self._settings.resolver.queries.fetch_read_timestamp()
        self._adopt(self._settings.resolver.resolve_latest(), at)

    def _adopt(self, tables: Tables, at: int) -> None:
        """Continues with the tables of the schema that is valid at a timestamp; those that are new
        are registered."""
        before = frozenset(self._tables.source.tables)
        for name in sorted(before ^ set(tables.source.tables)):
            change = "not watched any more" if name in before else "watched now, too"
            WATCHED_TABLES_CHANGED.log(LOG, table=name, change=change)
        self._backfill.replace_captures(tables.backfills)
        self._registrar.register_new(tables, before, at)
        self._backfill.resume()
        self._windows.replace_source(tables.source)
        self._tables = tables


def obey_replay(settings: RunSettings, lease: LeaseKeeper, contact: RunContact) -> None:
    """Between windows, where the sink has nothing else in hand; then the command is taken back.
    Raises what the sink raises: the command stays."""
    try:
        replay = settings.replay(contact)
    except (ConfigurationError, FileInUseError) as error:
        DEAD_LETTERS_NOT_REPLAYED.log(LOG, consumer=lease.consumer, error=error)
        lease.store_error(error)
    else:
        settings.totals.note_dead_letters(replay.left)
        DEAD_LETTERS_REPLAYED.log(
            LOG, consumer=lease.consumer, letters=replay.read, left=replay.left
        )
    settings.lifecycle.done = Command.REPLAY
    lease.keep()
