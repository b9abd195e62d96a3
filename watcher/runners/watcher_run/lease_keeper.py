"""Holds the consumer's name while a run of a watcher lasts, and does what operators ask for."""

from __future__ import annotations

import logging

from watcher.consumers.clearing import Fence
from watcher.consumers.holding import Holding, Report
from watcher.consumers.states import Command
from watcher.model.errors import LeaseHeldError, LeaseLostError, NotStartedError
from watcher.model.log_events.running import COMMAND_RECEIVED
from watcher.runners.delivery.instance import Instance
from watcher.runners.watcher_run.connection import Connection
from watcher.runners.watcher_run.settings import RunSettings
from watcher.spanner.failures import MAY_GO_AWAY, FailureKind, classify_error

LOG = logging.getLogger("watcher")
NAMELESS = "watch"
"""The consumer of a watcher without one; its positions end with it."""
ACQUISITIONS_PER_LEASE = 20
"""How often a name is asked for while the lease of another instance may run out."""


class LeaseKeeper(Holding):
    """The consumer of one run, whose lifecycle obeys what operators ask of it."""

    def __init__(self, settings: RunSettings, connection: Connection) -> None:
        consumer, seconds = settings.config.consumer or NAMELESS, settings.config.lease
        outages = settings.resolver.queries.outages
        super().__init__(consumer, seconds, lambda: connection.consumers, outages)
        self._standby = settings.config.standby
        self._lifecycle = settings.lifecycle
        self._totals = settings.totals
        self._connection = connection

    @property
    def instance(self) -> Instance:
        """Who delivers in this run."""
        return Instance(self.consumer, self.owner, self.check)

    @property
    def fence(self) -> Fence | None:
        """This instance, as one that may clear while it owns its lease."""
        return Fence(self.consumer, self.owner) if self.owner is not None else None

    def begin(self) -> None:
        """Takes the consumer's name. Raises LeaseHeldError while another instance lives, unless on
        standby; NotStartedError where it is asked to end while it waits; and as
        ``Consumers.acquire`` for the name of a divided consumer, or of a part."""
        stopping = self._lifecycle.stopping
        try:
            self.acquire(stopping.wait, self.seconds / ACQUISITIONS_PER_LEASE, self._standby)
        except LeaseHeldError as error:
            if stopping.is_set():
                raise NotStartedError(error) from error
            raise

    def obey(self) -> None:
        """Does what operators ask for, as of the last answer."""
        before = self._lifecycle.command
        self._lifecycle.obey(self.command)
        if self.command is not before:
            asked = self.command or Command.RESUME
            COMMAND_RECEIVED.log(LOG, consumer=self.consumer, command=asked)

    def keep(self) -> None:
        """Renews the lease, and does what operators have asked for. Raises LeaseLostError when
        another instance has taken the name; what may go away is left to the next renewal."""
        try:
            self.renew(self._report, self._lifecycle.done)
            self._lifecycle.done = None
            self.obey()
        except Exception as error:
            kind = classify_error(error)
            if kind not in MAY_GO_AWAY:
                raise
            self._connection.lost |= kind is FailureKind.SESSION
            self.report_failed_renewal(error)

    def keep_expired(self) -> None:
        """Renews a lease that has run out. Raises LeaseLostError when the name is taken."""
        if self.expired:
            self.keep()

    @property
    def _report(self) -> Report:
        return Report(self._lifecycle.state, self._totals.progress)

    def end(self, error: BaseException | None) -> None:
        """Gives the name back, and leaves the state and the error that ended the run behind. A name
        that another instance has taken is its own."""
        if self.owner is None or isinstance(error, LeaseLostError):
            return
        if error is not None:
            self.store_error(error)
        reason = self._lifecycle.reason if error is None else describe_end(error)
        try:
            self.release(self._report, reason, self._lifecycle.obeyed)
        except Exception as second:
            if error is None and classify_error(second) not in MAY_GO_AWAY:
                raise
            self.report_failed_release(second)


def describe_end(error: BaseException) -> str:
    """Why an instance has ended that failed, as operators see it."""
    return str(error) or type(error).__name__
