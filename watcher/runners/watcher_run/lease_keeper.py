"""Holds the consumer's name while a run lasts."""

from __future__ import annotations

import logging
import uuid

from watcher.consumers.acquisition import Claim, acquire_lease
from watcher.consumers.clearing import Fence
from watcher.consumers.leases import Lease
from watcher.consumers.states import Command
from watcher.model.errors import LeaseExpiredError, LeaseHeldError, LeaseLostError, NotStartedError
from watcher.runners.delivery.instance import Instance
from watcher.runners.watcher_run.connection import Connection
from watcher.runners.watcher_run.settings import RunSettings
from watcher.spanner.failures import MAY_GO_AWAY, FailureKind, classify_error

LOG = logging.getLogger("watcher")
NAMELESS = "watch"
"""The consumer of a watcher without one; its positions end with it."""
ACQUISITIONS_PER_LEASE = 20
"""How often a name is asked for while the lease of another instance may run out."""


class LeaseKeeper:
    """The lease of one run, from its acquisition to its release.

    Where positions are not kept in Spanner nobody else sees the name: there is no lease to hold.
    """

    def __init__(self, settings: RunSettings, connection: Connection) -> None:
        self._config = settings.config
        self._lifecycle = settings.lifecycle
        self._totals = settings.totals
        self._outages = settings.resolver.queries.outages
        self._connection = connection
        self._token = str(uuid.uuid4())
        """A run has a token of its own: what an earlier one may still write is refused."""
        self._lease: Lease | None = None
        self.consumer = settings.config.consumer or NAMELESS

    def acquire(self) -> None:
        """Takes the consumer's name. Raises LeaseHeldError while another instance lives, unless on
        standby; NotStartedError where it is asked to end while it waits; and as
        ``Consumers.acquire`` for the name of a divided consumer, or of a part."""
        consumers = self._connection.consumers
        if consumers is None:
            return
        seconds = self._config.lease
        try:
            self._lease = acquire_lease(
                consumers,
                Claim(self.consumer, seconds, self._token),
                self._lifecycle.stopping.wait,
                seconds / ACQUISITIONS_PER_LEASE,
                self._config.standby,
            )
        except LeaseHeldError as error:
            if self._lifecycle.stopping.is_set():
                raise NotStartedError(error) from error
            raise

    # What holds while the run lasts.

    @property
    def owner(self) -> str | None:
        """The token of this instance, where it holds a lease."""
        return self._lease.owner if self._lease is not None else None

    @property
    def instance(self) -> Instance:
        """Who delivers in this run."""
        return Instance(self.consumer, self.owner, self.check)

    @property
    def fence(self) -> Fence | None:
        """This instance, as one that may clear while it owns its lease."""
        return Fence(self.consumer, self._lease.owner) if self._lease is not None else None

    @property
    def exists(self) -> bool:
        """Whether there is a lease to be renewed."""
        return self._lease is not None

    def check(self) -> None:
        """Raises LeaseExpiredError when the lease has run out, as it does while the process is
        frozen: another instance may have taken the name. The next window begins with a renewal."""
        if self._lease is not None and not self._lease.valid:
            raise LeaseExpiredError(
                f"the lease of consumer '{self.consumer}' expired while a window was delivered"
            )

    def obey_stored_command(self) -> None:
        """Does what an operator asked for before the run began."""
        if self._lease is not None:
            self._obey(self._lease.command)

    def _obey(self, command: Command | None) -> None:
        before = self._lifecycle.command
        self._lifecycle.obey(command)
        if command is not before:
            asked = command or Command.RESUME
            LOG.warning("an operator asked consumer '%s' to %s", self.consumer, asked)

    # Renewals.

    def renew_expired(self) -> None:
        """Renews a lease that has run out. Raises LeaseLostError when the name is taken."""
        if self._lease is not None and not self._lease.valid:
            self.renew()

    def renew(self) -> None:
        """Renews the lease, and does what operators have asked for. Raises LeaseLostError when
        another instance has taken the name; what may go away is left to the next renewal."""
        lease, consumers = self._lease, self._connection.consumers
        if lease is None or consumers is None:
            return
        try:
            command = consumers.renew(lease, self._lifecycle.state, self._totals.progress)
            self._obey(command)
        except Exception as error:
            kind = classify_error(error)
            if kind not in MAY_GO_AWAY:
                raise
            self._connection.lost |= kind is FailureKind.SESSION
            self._report_failed_renewal(error)

    def _report_failed_renewal(self, error: Exception) -> None:
        if not self._outages.record_error(error):
            LOG.warning("the lease could not be renewed, trying again: %s", error)

    # The end.

    def store_error(self, error: BaseException) -> None:
        """Stores an error for operators. One that cannot be stored is in the log."""
        consumers = self._connection.consumers
        if consumers is None:
            return
        try:
            consumers.store_error(self.consumer, error, self.owner)
        except Exception as second:  # noqa: BLE001 (the first error matters, and it is logged)
            LOG.warning("the error could not be stored: %s", second)

    def release(self, error: BaseException | None) -> None:
        """Gives the name back, and leaves the state and the error that ended the run behind. A name
        that another instance has taken is its own."""
        lease, consumers = self._lease, self._connection.consumers
        if lease is None or consumers is None or isinstance(error, LeaseLostError):
            return
        if error is not None:
            self.store_error(error)
        state, progress = self._lifecycle.state, self._totals.progress
        reason = self._lifecycle.reason if error is None else describe_end(error)
        try:
            consumers.release(lease, state, progress, self._lifecycle.obeyed, reason)
        except Exception as second:
            if error is None and classify_error(second) not in MAY_GO_AWAY:
                raise
            LOG.warning("the lease could not be released, it runs out by itself: %s", second)


def describe_end(error: BaseException) -> str:
    """Why a run has ended that failed, as operators see it."""
    return str(error) or type(error).__name__
