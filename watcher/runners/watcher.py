"""``Watcher``: tables of a database, watched on a schedule; what ``spanner-watcher watch`` runs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager

from watcher.captures import Changed
from watcher.consumers.positions import MemoryPositions
from watcher.consumers.states import State
from watcher.model.errors import (
    ConfigurationError,
    DeliveryError,
    FileInUseError,
    FileUnavailableError,
    NotStartedError,
    WatcherError,
)
from watcher.model.log_events.running import NOT_STARTED
from watcher.overview.page.service import WatcherPage
from watcher.runners.change_iterator import Changes
from watcher.runners.folders import prepare_folders
from watcher.runners.metrics import Metrics
from watcher.runners.shared_run.run import SharedRun, open_shared_run
from watcher.runners.signals import stop_on_interrupt, stop_on_signals
from watcher.runners.watcher_run.lease_keeper import NAMELESS
from watcher.runners.watcher_run.lifecycle import OWNER_STOPPED, Lifecycle
from watcher.runners.watcher_run.run import RunStart, WatcherRun
from watcher.runners.watcher_run.settings import (
    MakeSink,
    RunContact,
    RunSettings,
    ignore,
    keep_no_letters,
)
from watcher.runners.watcher_run.startup import open_run
from watcher.runners.watcher_run.table_resolver import TableResolver
from watcher.runners.watcher_run.totals import Totals
from watcher.settings.watcher import WatchConfig, parse_watch_config
from watcher.sinks.callbacks import Callback, refuse_deferred
from watcher.sinks.contract import ChangeSink, HeldSink, Sink
from watcher.sinks.dead_letters import count_dead_letters
from watcher.sinks.functions import (
    CallbackEach,
    CallbackSink,
    EachTransaction,
    OnChange,
    OnTransaction,
)
from watcher.sinks.proto_texts import check_descriptors
from watcher.sinks.replays import Replay, refuse_late, refuse_replay, replay_dead_letters
from watcher.sinks.retries import DeliveryPolicy, RetryingSink
from watcher.sinks.whole_batches import choose_each

LOG = logging.getLogger("watcher")


class Watcher:
    """Watches tables and hands their changes to callbacks, or to a loop (``changes``), at least
    once, in commit order per key.

    >>> database = "projects/my-project/instances/my-instance/databases/my-database"
    >>> watcher = Watcher(database=database, tables=["Singers"])
    >>> watcher.on_change(print)
    >>> watcher.run()

    Options are those of ``watcher.settings.watcher.WatchConfig``. Polling sees no deletes.
    """

    def __init__(self, config: WatchConfig | None = None, **options: object) -> None:
        self.config = config if config is not None else parse_watch_config(options)
        check_descriptors(self.config.delivery.proto_descriptors)
        self.metrics = Metrics(self.config.consumer or NAMELESS)
        self._totals = Totals()
        self._page = WatcherPage(self.config)
        self._memory = MemoryPositions()
        self._resolver = TableResolver(self.config)
        self._lifecycle = Lifecycle(self._resolver.queries.fetch_read_timestamp)
        self._make_sink: MakeSink | None = None
        self._release_sink: Callable[[], None] = ignore
        self._replay: Callable[[RunContact], Replay] = keep_no_letters
        self._on_start: Callable[[RunStart], object] | None = None

    # What to do with changes: one of these before ``run``.

    def on_change(self, callback: OnChange) -> OnChange:
        """Calls a function with each ``watcher.model.change.Change``. Usable as a decorator."""
        self._refuse_envelope()
        self.deliver_to(CallbackEach(callback))
        return callback

    def on_transaction(self, callback: OnTransaction) -> OnTransaction:
        """Calls a function with all changes of one commit timestamp; needs ``transactions``."""
        if not self.config.transactions:
            raise WatcherError("on_transaction needs the option transactions=True")
        path, accepted = self.config.address.path, Callback(callback)
        self.deliver_windows_to(lambda run: EachTransaction(accepted, path, run.check))
        return callback

    def on_batch(self, callback: Callable[[Changed], object]) -> Callable[[Changed], object]:
        """Calls a function with Arrow batches: the fastest way."""
        sink = CallbackSink(callback)
        self.deliver_windows_to(lambda _run: sink)
        return callback

    def changes(self, *, once: bool = False) -> Changes:
        """The changes for a ``for`` or an ``async for``, which runs the watcher, in place of a
        callback and ``run``; with ``once`` those up to now.

        >>> for change in watcher.changes():
        ...     print(change)

        A change is acknowledged when the next one is asked for, or by ``acknowledge`` of what this
        returns: it is promised what a callback is that has returned then.
        """
        self._refuse_envelope()
        found = Changes(self.run_once if once else self.run, self.stop)
        self.deliver_to(found)
        return found

    def deliver_to(self, sink: ChangeSink) -> None:
        """Hands each change to a sink, with retries and dead letters as configured."""
        for method in (sink.write_change, sink.resolved, sink.flush, sink.discard):
            refuse_deferred(method)
        delivery = self.config.delivery
        policy = DeliveryPolicy(
            delivery.retries,
            delivery.backoff,
            delivery.dead_letters if delivery.then == "skip" else None,
            self.config.log_values,
        )

        def retry(run: RunContact) -> RetryingSink:
            def note_retry(error: DeliveryError) -> None:
                self.metrics.count_retry("change")
                run.note_refusal(error)

            return RetryingSink(
                sink,
                policy,
                on_retry=note_retry,
                on_recovery=run.note_recovery,
                on_skip=self._totals.count_skipped,
                check=run.check,
            )

        def make_sink(run: RunContact) -> Sink:
            if isinstance(sink, HeldSink):
                self._hold(sink)
            if policy.dead_letters is not None:
                self._totals.note_dead_letters(count_dead_letters(policy.dead_letters))
            return choose_each(retry(run), sink, self.config.address.path)

        def replay(run: RunContact) -> Replay:
            if policy.dead_letters is None:
                raise refuse_replay()
            if delivery.queue is not None and not delivery.queue.takes_late:
                raise refuse_late(delivery.queue)
            return replay_dead_letters(policy.dead_letters, retry(run))

        self._make_sink, self._replay = make_sink, replay
        self._release_sink = sink.close if isinstance(sink, HeldSink) else ignore

    def _hold(self, sink: HeldSink) -> None:
        """Takes a sink for this instance. On standby, an instance that it replaces, and that is
        frozen, may have the sink still: it is asked for again until that one has ended."""
        try:
            sink.open()
        except FileInUseError as error:
            if not self.config.standby:
                raise
            raise FileUnavailableError(f"waiting on standby: {error}") from error

    def deliver_windows_to(self, make_sink: MakeSink) -> None:
        """Hands whole windows to a sink, as ``watcher.sinks.contract.WindowSink`` says."""
        self._refuse_envelope()
        self._make_sink, self._replay, self._release_sink = make_sink, keep_no_letters, ignore

    def _refuse_envelope(self) -> None:
        """A callback gets what was captured: an envelope would be ignored."""
        if (name := self.config.delivery.envelope) != "plain":
            raise ConfigurationError(
                f"a callback gets the change itself: leave out delivery.envelope = '{name}', and"
                " call watcher.envelopes.encode in the callback"
            )

    def on_start(self, callback: Callable[[RunStart], object]) -> None:
        """Calls a function when a run has begun, with its tables and the position it starts at."""
        self._on_start = Callback(callback)

    # Running.

    def run(self) -> None:
        """Watches until stopped: by ``stop``, a command, ``stop_on_signals``, or the first Ctrl-C,
        after the window in progress; a second one is KeyboardInterrupt. A program that has a
        handler of SIGINT keeps it. Raises what cannot be fixed by trying again. After a stop it may
        be run again."""
        try:
            with stop_on_interrupt(self.stop), self._open_endless_run() as run:
                self._announce(run)
                run.deliver_until_stopped()
        except NotStartedError as error:  # as it was asked to
            NOT_STARTED.log(LOG, reason=error)

    def run_once(self) -> int:
        """Delivers what is there now, then ends; the number of rows. It may be run again. Raises
        ConfigurationError for a shared consumer, of which others hold parts."""
        if self.config.parts is not None:
            raise ConfigurationError(
                "'parts' and a run that ends by itself (--once) do not work together: other"
                " instances may hold parts; use spanner-watcher ctl drain, or remove 'parts'"
            )
        try:
            with (
                stop_on_interrupt(self.stop),
                open_run(self._make_settings(), once=True) as run,
            ):
                self._announce(run)
                return run.deliver_once()
        except NotStartedError as error:  # what is there was not delivered
            raise error.reason from error

    def _announce(self, run: WatcherRun | SharedRun) -> None:
        if self._on_start is not None:
            self._on_start(run.describe_start())

    def _open_endless_run(self) -> AbstractContextManager[WatcherRun | SharedRun]:
        settings = self._make_settings()
        if self.config.parts is not None:
            return open_shared_run(settings)
        return open_run(settings, once=False)

    def _make_settings(self) -> RunSettings:
        if self._make_sink is None:
            raise WatcherError(
                "no callback is set for changes: call on_change, on_transaction or on_batch first"
            )
        prepare_folders(self.config)
        return RunSettings(
            self.config,
            self._make_sink,
            self._resolver,
            self._memory,
            self._lifecycle,
            self.metrics,
            self._totals,
            self._page,
            release_sink=self._release_sink,
            replay=self._replay,
        )

    def stop(self, reason: str = OWNER_STOPPED) -> None:
        """Ends after the window in progress; a run that has not begun ends when it does. Operators
        see the ``reason`` in ``status``."""
        self._lifecycle.stop(reason)

    def stop_on_signals(self) -> None:
        """SIGTERM and SIGINT end it cleanly; from the main thread only."""
        stop_on_signals(lambda: self.stop("SIGTERM or Ctrl-C"), self.config.grace)

    def pause(self) -> None:
        """Delivers nothing until ``resume``; the consumer's name is kept."""
        self._lifecycle.pause()

    def resume(self) -> None:
        """Continues after ``pause``."""
        self._lifecycle.resume()

    def drain(self) -> None:
        """Delivers everything up to now, then ends."""
        self._lifecycle.drain()

    @property
    def stop_reason(self) -> str | None:
        """Why the last run has ended, as operators see it in ``status``; None before it does."""
        return self._lifecycle.reason

    @property
    def state(self) -> State:
        """Where in its life the watcher is."""
        return self._lifecycle.state
