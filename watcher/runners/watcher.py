"""``Watcher``: tables of a database, watched on a schedule; what ``spanner-watcher watch`` runs."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from google.api_core.exceptions import GoogleAPICallError

from watcher.captures import Changed
from watcher.captures.poll import PollCapture
from watcher.captures.poll_tables import PolledTables
from watcher.captures.streamed_tables import StreamedTables
from watcher.consumers.clearing import Clearing
from watcher.consumers.clearing.bounds import Fence
from watcher.consumers.positions import Registration
from watcher.consumers.states import Command, Progress, State
from watcher.errors import ConfigurationError, LeaseLostError, UnavailableError, WatcherError
from watcher.runners.backfilling import Backfilling, Instance
from watcher.runners.connection import NAMELESS, Connection, Tables
from watcher.runners.delivery import Delivering, DeliveryPolicy
from watcher.runners.metrics import Metrics
from watcher.runners.pushing import Pushing
from watcher.runners.schedule import Schedule
from watcher.runners.sinks import (
    CallbackEach,
    CallbackSink,
    ChangeSink,
    EachChange,
    EachTransaction,
    OnChange,
    OnTransaction,
    Sink,
)
from watcher.runners.sources import WatchedTables
from watcher.runners.watching import Delivered, Watching
from watcher.settings.fields import resolve_start
from watcher.settings.watcher import WatchConfig, watch_config
from watcher.spanner.database import connect
from watcher.spanner.failures import FailureKind, classify_error, suggest_fix
from watcher.spanner.outages import is_outage
from watcher.spanner.timestamps import format_timestamp
from watcher.window import BEGINNING

LOG = logging.getLogger("watcher")
BACKOFF_SECONDS_MIN = 0.25
BACKOFF_SECONDS_MAX = 60.0
IDLE_INTERVALS_MAX = 10
FAILURES_OF_ONCE_MAX = 8
"""So many failures in a row end ``run_once``."""
SCHEMA_CHANGES_MAX = 5
"""So many windows in a row that the schema spoils are an error."""


def backoff_seconds(failures: int) -> float:
    """How long to wait after so many failures: twice as long each time, with jitter."""
    longest = min(BACKOFF_SECONDS_MIN * 2.0**failures, BACKOFF_SECONDS_MAX)
    return longest * random.uniform(0.5, 1.0)


def idle_seconds(idle: int, interval: float) -> float:
    """How long an adaptive watcher waits, beside its interval, after so many idle polls."""
    return min(idle, IDLE_INTERVALS_MAX - 1) * interval


def change_sets_of(source: WatchedTables, names: Sequence[str]) -> dict[str, str]:
    """The table of change sets of each table that has one: that is cleared in its place."""
    sets = {name: source.capture(name).table.change_sets for name in names}
    return {name: each.table for name, each in sets.items() if each is not None}


class Watcher:
    """Watches tables and hands their changes to callbacks, at least once, in commit order per key.

    >>> watcher = Watcher(database="projects/p/instances/i/databases/d", tables=["Singers"])
    >>> watcher.on_change(print)
    >>> watcher.run()

    Options are those of ``watcher.settings.watcher.WatchConfig``. Polling sees no deletes.
    """

    def __init__(self, config: WatchConfig | None = None, **options: object) -> None:
        self.config = config if config is not None else watch_config(options)
        self._policy = DeliveryPolicy(
            self.config.delivery.retries,
            self.config.delivery.backoff,
            self.config.delivery.dead_letters if self.config.delivery.then == "skip" else None,
            self.config.log_values,
        )
        self.metrics = Metrics(self.config.consumer or NAMELESS)
        self._connection = Connection(self.config)
        self._sink: Sink | None = None
        self._delivering: Delivering | None = None
        self._schedule = Schedule()
        self._state = State.NOT_STARTED
        self._paused = threading.Event()
        self._drain_to: int | None = None
        self._windows = self._rows = 0
        self._started = time.monotonic()
        self._not_before = 0.0
        self._failures = self._schema_failures = self._idle = 0
        self._lost = self._once = False
        self._paused_by_command = False
        self._obeyed: Command | None = None
        self._backfilling: Backfilling | None = None
        self._pushing: Pushing | None = None
        self._tables: Tables
        self._swept: Tables | None = None
        """The tables among which those that were dropped keep no position."""
        self._unread: frozenset[str] = frozenset()
        """Tables that were registered and may not be there yet where the consumer stands."""
        self._turn = threading.Lock()

    # What to do with changes: one of these before ``run``.

    def on_change(self, callback: OnChange) -> OnChange:
        """Calls a function with each ``watcher.change.Change``. Usable as a decorator."""
        self._refuse_envelope()
        self.deliver_to(CallbackEach(callback))
        return callback

    def on_transaction(self, callback: OnTransaction) -> OnTransaction:
        """Calls a function with all changes of one commit timestamp; needs ``transactions``."""
        if not self.config.transactions:
            raise WatcherError("on_transaction needs the option transactions=True")
        self._refuse_envelope()
        self._sink = EachTransaction(callback, self.config.address.path, self._check_lease)
        return callback

    def on_batch(self, callback: Callable[[Changed], object]) -> Callable[[Changed], object]:
        """Calls a function with Arrow batches: the fastest way."""
        self._refuse_envelope()
        self._sink = CallbackSink(callback)
        return callback

    def deliver_to(self, sink: ChangeSink) -> None:
        """Hands each change to a sink, with retries and dead letters as configured."""
        self._delivering = Delivering(
            sink,
            self._policy,
            on_retry=lambda: self.metrics.retried("change"),
            check=self._check_lease,
        )
        self._sink = EachChange(self._delivering, self.config.address.path)

    def _refuse_envelope(self) -> None:
        """A callback gets what was captured: an envelope would be ignored."""
        if (name := self.config.delivery.envelope) != "plain":
            raise ConfigurationError(
                f"a callback gets the change itself: leave out delivery.envelope = '{name}', and"
                " call watcher.envelopes.encode in the callback"
            )

    # Running.

    def run(self) -> None:
        """Watches until stopped (``stop``, a command, SIGTERM in the command line). Raises what
        cannot be mended by trying again. After a stop it may be run again."""
        self._once = False
        try:
            self._start()
            self._schedule.poll(self.config.interval, "poll", self._poll)
            if self._connection.lease is not None:
                self._schedule.every(self.config.lease / 4, "lease", self._heartbeat)
            if self.config.clearing is not None:
                self._schedule.every(self.config.clearing.every, "clearing", self._clear)
            self._schedule.start()
            self._schedule.wait()
            if self._pushing is not None:
                self._pushing.finish()
        except BaseException as error:
            self._close(error)
            raise
        self._close(None)

    def run_once(self) -> int:
        """Delivers what is there now, then ends; the number of rows. It may be run again."""
        self._once, before = True, self._rows
        try:
            self._start()
            if self._connection.lease is not None:
                self._schedule.every(self.config.lease / 4, "lease", self._heartbeat)
            self._schedule.start()
            while not self._held_back and self._window_of_once():
                pass
            self._schedule.stop()
            self._schedule.wait()
        except BaseException as error:
            self._schedule.end()
            self._close(error)
            raise
        self._close(None)
        return self._rows - before

    @property
    def _held_back(self) -> bool:
        """True once somebody has asked to pause or to stop, as operators may before it starts."""
        return self._paused.is_set() or self._schedule.stopping.is_set()

    def _window_of_once(self) -> bool:
        """A window; what may go away is tried again, but not for ever."""
        while True:
            try:
                return self._window(self._drain_to)
            except Exception as error:
                if self._failures >= FAILURES_OF_ONCE_MAX:
                    raise
                self._failed(error)
                if self._schedule.pause(max(0.0, self._not_before - time.monotonic())):
                    raise

    def stop(self) -> None:
        """Ends after the window under way; a run that has not begun ends when it does."""
        self._schedule.stop()

    def stop_on_signals(self) -> None:
        """SIGTERM and SIGINT end it cleanly; from the main thread only."""
        self._schedule.stop_on_signals(self.config.grace)

    def pause(self) -> None:
        """Delivers nothing until ``resume``; the consumer's name is kept."""
        self._paused.set()
        self._state = State.PAUSED

    def resume(self) -> None:
        """Goes on after ``pause``."""
        if self._paused.is_set():
            self._paused.clear()
            self._state = State.RUNNING

    def drain(self) -> None:
        """Delivers everything up to now, then ends."""
        if self._drain_to is None:
            self._drain_to = self._now()
            self._paused.clear()
            self._state = State.DRAINING

    @property
    def state(self) -> State:
        """Where in its life the watcher is."""
        return self._state

    # The parts, made when it starts.

    def _start(self) -> None:
        """Opens everything. A server that is not there is an error at once; what goes wrong after
        the first answer, and may go away, is tried again."""
        if self._sink is None:
            raise WatcherError("nothing is to be done with changes: call on_change or on_batch")
        self._state = State.STARTING
        self._failures, self._not_before = 0, 0.0
        self._paused_by_command, self._obeyed = False, None
        connect(self.config.address)
        self._connection.begin_run()
        while True:
            try:
                self._open(self._sink)
            except Exception as error:
                if classify_error(error) not in (
                    FailureKind.RETRY,
                    FailureKind.SESSION,
                ) or isinstance(error, UnavailableError):
                    raise
                pause = backoff_seconds(self._failures)
                self._failures += 1
                LOG.warning("starting again in %.1f s: %s", pause, error)
                if self._schedule.pause(pause):
                    raise
            else:
                return

    def _open(self, sink: Sink) -> None:
        config, held = self.config, self._connection
        held.open()
        held.queries.outages.stopping = self._schedule.stopping
        held.acquire(self._schedule.pause)
        tables = held.latest_tables()
        self._watching = self._watching_of(tables.source, sink)
        self._begin(tables, sink)
        self._state = State.RUNNING
        if held.lease is not None and held.lease.command is not None:
            LOG.warning("an operator asked consumer '%s' to %s", held.consumer, held.lease.command)
            self._obey(held.lease.command)
        if config.metrics is not None:
            self._measure_queries()
            self.metrics.serve(config.metrics.host, config.metrics.port)

    def _watching_of(self, source: WatchedTables, sink: Sink) -> Watching:
        """Window by window, or with queries that stay open; ``run_once`` has an end."""
        config, held = self.config, self._connection
        instance = self._instance
        if isinstance(source, StreamedTables) and config.stream.push and not self._once:
            self._pushing = Pushing(
                source,
                held.positions,
                instance,
                sink,
                config.interval,
                self._follow,
                config.refresh,
                self._forget_dropped,
            )
            return self._pushing
        return Watching(
            source,
            held.positions,
            instance,
            sink,
            config.max_rows,
            config.transactions,
            self._follow,
            config.refresh,
            self._forget_dropped,
        )

    @property
    def _instance(self) -> Instance:
        """Who delivers in this run."""
        held = self._connection
        return Instance(held.consumer, held.owner, self._check_lease)

    def _begin(self, tables: Tables, sink: Sink) -> None:
        """Registers the consumer in the tables where it has no position, and takes up backfills."""
        held = self._connection
        source = tables.source
        instance = self._instance
        self._backfilling = None
        if self.config.backfill:
            captures = held.backfill_captures(source)
            self._backfilling = Backfilling(
                captures, held.positions, instance, sink, self.config.backfill_rows
            )
        kept = held.positions.of(held.consumer)
        self._register(source, kept, self._first_start(source, kept))
        self._tables, self._swept = tables, None

    def _first_start(self, source: WatchedTables, kept: Mapping[str, int]) -> int | None:
        """Where a table without a position begins; None is now. The tables of a consumer that ran
        before begin where it stands: what was written to them while it did not run counts. Where it
        selected them before, they are new in the database: see ``_adopt``."""
        start = resolve_start(self.config.start)
        watched = [kept[name] for name in source.tables if name in kept]
        if start is not None or not watched:
            return start
        held = self._connection
        before = held.lease.selection_before if held.lease is not None else None
        if before is not None and before == held.selection:
            return BEGINNING
        return min(watched)

    def _register(self, source: WatchedTables, kept: Mapping[str, int], start: int | None) -> None:
        """Registers the consumer in tables without a position, before anything of them is read, so
        that clearing never overtakes it. A table with a backfill begins now; so do all others where
        ``start`` is None."""
        held = self._connection
        new = [name for name in source.tables if name not in kept]
        self._unread |= frozenset(new)
        if new:
            filled = frozenset(held.backfill_captures(source)) & frozenset(new)
            now_tables = frozenset(new) if start is None else filled
            now = self._now() if now_tables else BEGINNING
            starts = {n: now if n in now_tables or start is None else start for n in new}
            registration = Registration(
                held.consumer, starts, now_tables, filled, cleared_with=change_sets_of(source, new)
            )
            registered = held.positions.register(registration, held.owner)
            for name, cleared in registered.cleared.items():
                LOG.warning(
                    "consumer '%s' begins table %s at %s, but rows up to %s may have been cleared"
                    " from its index before it came: for those, use a backfill",
                    held.consumer,
                    name,
                    format_timestamp(registered.positions[name]),
                    format_timestamp(cleared),
                )
        if self._backfilling is not None:
            self._backfilling.resume()

    def _forget_dropped(self) -> None:
        """A table that was dropped keeps no position once the others have passed its end; one that
        is there and not watched any more keeps its own, and holds clearing up until an operator
        says otherwise."""
        held, tables = self._connection, self._tables
        self._unread -= frozenset(tables.source.tables)
        if tables is self._swept:
            return
        self._swept = tables
        kept = held.positions.of(held.consumer)
        gone = [name for name in kept if tables.schema.table(name) is None]
        held.positions.remove(held.consumer, gone, held.owner)
        for name in sorted(kept.keys() - set(gone) - set(tables.source.tables)):
            LOG.warning(
                "consumer '%s' has a position in table %s, which it does not watch any more:"
                " clearing of %s waits for it; to end that, run: spanner-watcher ctl forget %s"
                " --table %s",
                held.consumer,
                name,
                name,
                held.consumer,
                name,
            )

    def _now(self) -> int:
        """A timestamp at which a strong read is served now, whatever tables there are."""
        return self._connection.queries.stream.fetch_read_timestamp()

    def _measure_queries(self) -> None:
        """From now on queries ask how many rows were scanned for them."""
        stream = self._connection.queries.stream
        stream.counts_scans = True
        self.metrics.of_queries(lambda: stream.scanned_rows, lambda: stream.restarts)

    # One window.

    def _poll(self) -> bool:
        """Delivers a window unless paused or backing off; True when the next may follow at once."""
        now = time.monotonic()
        if self._paused.is_set() or now < self._not_before:
            return False
        # A drain that is asked for while the window is under way is for the next one.
        until = self._drain_to
        try:
            more = self._window(until)
        except Exception as error:  # noqa: BLE001 (told apart, and raised if it stays)
            self._failed(error)
            return False
        if not more and until is not None:
            self.stop()
        return more or until != self._drain_to

    def _window(self, until: int | None) -> bool:
        with self._turn:
            if self._lost:
                self._connection.open()
                self._watching.keep_in(self._connection.positions)
                if self._backfilling is not None:
                    self._backfilling.keep_in(self._connection.positions)
                self._lost = False
            lease = self._connection.lease
            if lease is not None and not lease.valid:
                self._heartbeat()
            if self._backfilling is not None and self._backfilling.under_way:
                rows = self._backfilling.step()
                self._rows += sum(rows.values())
                self.metrics.backfilled(rows)
                return True
            delivered = self._watching.poll(until)
            self._succeeded(delivered)
            return delivered.more

    def _check_lease(self) -> None:
        """Nothing is delivered on a lease that has run out, as when the process was frozen: another
        instance may have taken the name. The next window begins with a renewal, or ends it."""
        lease = self._connection.lease
        if lease is not None and not lease.valid:
            raise UnavailableError(f"the lease of consumer '{lease.consumer}' ran out in a window")

    def _succeeded(self, delivered: Delivered) -> None:
        if self._state is State.FAILED:
            self._state = State.RUNNING
        self._connection.queries.outages.record_answer()
        self._failures = self._schema_failures = 0
        self._windows += 1
        self._rows += delivered.total
        self.metrics.window(delivered.rows, delivered.end)
        self._idle = 0 if delivered.total else self._idle + 1
        if self.config.adaptive and not delivered.more:
            self._not_before = time.monotonic() + idle_seconds(self._idle, self.config.interval)

    def _failed(self, error: Exception) -> None:
        """Backs off from what may go away, reads the schema again, or ends."""
        self.metrics.failure(type(error).__name__)
        kind = classify_error(error)
        if kind is FailureKind.INDEX:
            kind = self._kind_of_missing_index()
        if kind is FailureKind.SCHEMA and self._schema_failures < SCHEMA_CHANGES_MAX:
            self._schema_failures += 1
            LOG.warning("the schema has changed (%s); reading it again", error)
            self._replace_source()
            return
        if kind is FailureKind.SESSION:
            LOG.warning("the session is lost; connecting again: %s", error)
            self._lost = True
            kind = FailureKind.RETRY
        if kind is not FailureKind.RETRY:
            hint = suggest_fix(error)
            LOG.error("stopping: %s%s", error, f"; {hint}" if hint else "")
            raise error
        outage = is_outage(error)
        pause = min(2.0**self._failures, BACKOFF_SECONDS_MAX) * random.uniform(0.5, 1.0)
        self._failures += 1
        self.metrics.retried("window")
        self._not_before = time.monotonic() + pause
        self._state = State.FAILED
        if outage:
            self._connection.queries.outages.record_failure(error)
        level = logging.INFO if outage else logging.WARNING
        LOG.log(level, "again in %.1f s (failure %d): %s", pause, self._failures, error)
        if not outage:
            self._store(error)

    def _kind_of_missing_index(self) -> FailureKind:
        """What to do when an index is gone: another may have taken its place."""
        if self.config.on_missing_index == "scan":
            return FailureKind.SCHEMA
        try:
            self._connection.latest_tables()
        except WatcherError as error:
            LOG.info("no other index takes its place: %s", error)
            return FailureKind.INDEX
        except GoogleAPICallError as error:
            return classify_error(error)
        return FailureKind.SCHEMA

    def _follow(self, timestamp: int) -> None:
        """From now on the tables are those of the schema at a read timestamp."""
        tables = self._connection.tables_at(timestamp, self._unread)
        if tables.source is not self._watching.source:
            self._adopt(tables)

    def _replace_source(self) -> None:
        """From now on the tables are those of the schema as it is now."""
        self._adopt(self._connection.latest_tables())

    def _adopt(self, tables: Tables) -> None:
        """Goes on with the tables of another schema; those that are new are registered. All that
        lies in the index of a polled one came after it was made watchable; a change stream has told
        everything of it up to the least position."""
        held, source = self._connection, tables.source
        before = frozenset(self._watching.source.tables)
        for name in sorted(before ^ set(source.tables)):
            LOG.warning("table %s is %s", name, "gone" if name in before else "watched now, too")
        if self._backfilling is not None:
            self._backfilling.replace_captures(held.backfill_captures(source))
        kept = held.positions.of(held.consumer)
        watched = [at for name, at in kept.items() if name in before]
        polling = isinstance(source, PolledTables)
        self._register(source, kept, BEGINNING if polling else min(watched, default=BEGINNING))
        self._watching.replace_source(source)
        self._tables = tables

    # Beside the windows.

    def _heartbeat(self) -> None:
        """Renews the lease and does what operators have asked for."""
        lease, consumers = self._connection.lease, self._connection.consumers
        if lease is None or consumers is None:
            return
        try:
            command = consumers.renew(lease, self._state, self._progress())
        except LeaseLostError:
            raise
        except Exception as error:
            kind = classify_error(error)
            if kind not in (FailureKind.RETRY, FailureKind.SESSION):
                raise
            self._lost = self._lost or kind is FailureKind.SESSION
            if is_outage(error):
                self._connection.queries.outages.record_failure(error)
                return
            LOG.warning("the lease could not be renewed, trying again: %s", error)
            return
        self._obey(command)

    def _obey(self, command: Command | None) -> None:
        if command is Command.STOP:
            self._obeyed = command
            self.stop()
        elif command is Command.DRAIN:
            self._obeyed = command
            self.drain()
        elif command is Command.PAUSE:
            if not self._paused.is_set():
                self._paused_by_command = True
            self.pause()
        elif self._paused_by_command:
            self._paused_by_command = False
            self.resume()

    def _clear(self) -> None:
        """Takes delivered rows out of every index."""
        clearing = self.config.clearing
        if clearing is None:
            return
        for name in self._watching.source.tables:
            capture = self._watching_capture(name)
            try:
                done = Clearing(
                    self._connection.database,
                    capture.table,
                    self._connection.positions,
                    clearing.margin,
                    clearing.method,
                    self._fence(),
                ).clear(clearing.rows_max, clearing.report_after)
            except Exception as error:
                if classify_error(error) is FailureKind.PERMANENT:
                    raise
                self._lost = self._lost or classify_error(error) is FailureKind.SESSION
                level = logging.INFO if is_outage(error) else logging.WARNING
                LOG.log(level, "clearing of %s is put off: %s", name, error)
            else:
                self.metrics.cleared(name, done.rows)

    def _fence(self) -> Fence | None:
        """This instance, which clears only while it owns its lease."""
        lease = self._connection.lease
        return Fence(lease.consumer, lease.owner) if lease is not None else None

    def _watching_capture(self, name: str) -> PollCapture:
        source = self._watching.source
        if not isinstance(source, PolledTables):
            raise WatcherError(f"{name} is not polled, so it has no index to be cleared")
        return source.capture(name)

    def _progress(self) -> Progress:
        seconds = max(time.monotonic() - self._started, 0.001)
        skipped = self._delivering.skipped if self._delivering else 0
        return Progress(self._windows, self._rows, self._rows / seconds, skipped)

    def _store(self, error: BaseException) -> None:
        """Errors of the server are kept there once it answers again; else they are in the log."""
        held = self._connection
        if held.consumers is None:
            return
        try:
            held.consumers.store_error(held.consumer, error, held.owner)
        except Exception as second:  # noqa: BLE001 (the first error matters, and it is logged)
            LOG.warning("the error could not be stored: %s", second)

    def _close(self, error: BaseException | None) -> None:
        if self._pushing is not None:
            self._pushing.close()
            self._pushing = None
        self._schedule, self._drain_to = Schedule(), None
        self._state = State.NOT_STARTED if error is None else State.FAILED_PERMANENTLY
        lease, consumers = self._connection.lease, self._connection.consumers
        if lease is None or consumers is None or isinstance(error, LeaseLostError):
            return
        if error is not None:
            self._store(error)
        try:
            consumers.release(lease, self._state, self._progress(), self._obeyed)
        except Exception as second:
            if error is None and not is_outage(second):
                raise
            LOG.warning("the lease could not be given back: %s", second)
