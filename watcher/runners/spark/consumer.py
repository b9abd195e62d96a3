"""A query as a consumer: it holds its name while it runs, and its positions follow its commits.

Clearing waits for the positions; two live queries never share a name.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping

from watcher.consumers.holding import RENEWALS_PER_LEASE, Holding, Report
from watcher.consumers.leases import Consumers
from watcher.consumers.positions import (
    Move,
    Position,
    Registration,
    SpannerPositions,
)
from watcher.consumers.states import Command, ConsumerProgress, State
from watcher.model.errors import LeaseLostError, WatcherError
from watcher.runners.clock_jumps import WALL_CLOCK
from watcher.runners.table_rules import warn_about_cleared
from watcher.settings.spark import SourceOptions
from watcher.spanner.database import connect
from watcher.spanner.failures import CALL_ERRORS
from watcher.spanner.outages import Outages

LOG = logging.getLogger("watcher.spark")
ACQUISITION_SECONDS = 0.2
"""How often a name is asked for while the lease of another query may run out."""
EARLIER_ROWS = "start with 'startingTimestamp' = 'earliest' and a new checkpoint"
NOTHING: Mapping[str, str] = {}
OPERATOR_ASKED = "an operator asked consumer"
NEVER_OBEYED = Command.REPLAY
"""A query has no dead letters: the command is taken back."""
"""How the error begins with which an operator's command ends a query."""


class QueryConsumer:
    """Lives in the driver's Python process of one query. A thread renews the lease."""

    def __init__(
        self, options: SourceOptions, name: str, selection: str | None, outages: Outages
    ) -> None:
        """``selection``: the tables that are polled, for clearing. While Spanner does not answer
        nobody can take the name over; the next renewal after that says whether somebody has."""
        self._outages = outages
        self._selection = selection
        database = connect(options.address)
        self._positions = SpannerPositions(database, options.positions_table)
        consumers = Consumers(database, options.positions_table)
        self._holding = Holding(name, options.lease_seconds, lambda: consumers, outages)
        self._registered: dict[str, int] = {}
        self._done = threading.Event()
        self._lost: WatcherError | None = None
        self._progress = ConsumerProgress()

    def register(
        self, starts: Mapping[str, int], now: bool = False, with_sets: Mapping[str, str] = NOTHING
    ) -> Mapping[str, int]:
        """Takes the name, and registers tables where they start, before anything is read, so that
        clearing never overtakes; their positions then.

        A query that starts earlier than the last one takes positions back. ``now``: the starts are
        a read timestamp of just now, and move up to what was cleared already. ``with_sets`` are the
        tables of change sets that are cleared for them. Raises LeaseHeldError while a live query
        has the name, LeaseLostError when another one has taken it over.
        """
        self._hold()
        new = {table: at for table, at in starts.items() if table not in self._registered}
        if new:
            floating = frozenset(new) if now else frozenset()
            registration = Registration(
                self._holding.consumer,
                new,
                floating,
                backwards=True,
                cleared_with=with_sets,
                selection=self._selection,
            )
            registered = self._positions.register(registration, self._holding.owner)
            warn_about_cleared(LOG, self._holding.consumer, registered, EARLIER_ROWS)
            self._registered |= registered.positions
        return {table: self._registered[table] for table in starts}

    def _hold(self) -> None:
        """Holds the name, or takes it for the first time; that of a query that was killed when its
        lease has run out."""
        if self._holding.owner is not None:
            self.check()
            return
        self._positions.create()
        self._holding.acquire(self._done.wait, ACQUISITION_SECONDS)
        threading.Thread(target=self._keep_renewing, daemon=True).start()

    def check(self) -> None:
        """Raises LeaseLostError when another query has taken the name over. A lease that has run
        out is renewed first: nobody may have taken the name meanwhile."""
        if self._lost is not None:
            raise self._lost
        if self._holding.expired:
            self._holding.renew(self._report, NEVER_OBEYED)

    @property
    def _report(self) -> Report:
        paused = self._holding.command is Command.PAUSE
        return Report(State.PAUSED if paused else State.RUNNING, self._progress)

    def is_paused(self) -> bool:
        """True while an operator wants no further batch. Raises WatcherError when the query is to
        stop.

        Takes the name first: a query may be stopped before its first batch.
        """
        self._hold()
        command, name = self._holding.command, self._holding.consumer
        if command in (Command.STOP, Command.DRAIN):
            raise WatcherError(
                f"{OPERATOR_ASKED} '{name}' to {command}: to continue, run"
                f" 'spanner-watcher ctl resume {name}' and restart the query"
            )
        return command is Command.PAUSE

    def advance(self, reached: int, tables: Iterable[str]) -> None:
        """Everything of the tables up to ``reached`` is in the sink."""
        self.check()
        behind = {t: at for t in tables if (at := self._registered.get(t, reached)) < reached}
        name = self._holding.consumer
        moves = [Move(Position(name, t, reached), at) for t, at in behind.items()]
        self._positions.save_all(moves, self._holding.owner)
        self._registered |= dict.fromkeys(behind, reached)
        self._progress = ConsumerProgress(windows=self._progress.windows + 1)

    def stop(self) -> None:
        """Gives the name back."""
        self._done.set()
        if self._lost is not None:
            return
        try:
            report = Report(State.STOPPED, self._progress)
            self._holding.release(report, "the Spark query has ended")
        except (*CALL_ERRORS, WatcherError) as error:
            self._holding.report_failed_release(error)

    def _keep_renewing(self) -> None:
        """Continues after any error but a lost lease: ``check`` notices when it has run out."""
        while not self._done.wait(self._holding.seconds / RENEWALS_PER_LEASE):
            WALL_CLOCK.note_jump()
            try:
                self._holding.renew(self._report, NEVER_OBEYED)
            except LeaseLostError as error:
                self._lost = error
                return
            except Exception as error:  # noqa: BLE001 (whatever it is, the next one may succeed)
                self._holding.report_failed_renewal(error)
            else:
                self._outages.record_answer()
