"""One instance's hold of a consumer: it takes the name, keeps the lease, checks it, gives it back.

Everybody who delivers holds a consumer in this way: a watcher, each part of a shared consumer, a
Spark query. Rule 4 of docs/protocol.md: what the instance writes is fenced by ``owner``; rule 5: it
hands nothing over unless ``check`` returns.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from watcher.consumers.leases import Consumers, Lease
from watcher.consumers.states import Command, ConsumerProgress, State
from watcher.model.errors import LeaseExpiredError, LeaseHeldError
from watcher.model.log_events.running import ERROR_NOT_STORED, LEASE_NOT_RELEASED, LEASE_NOT_RENEWED
from watcher.spanner.outages import Outages

LOG = logging.getLogger("watcher")
RENEWALS_PER_LEASE = 4


@dataclass(frozen=True, slots=True)
class Report:
    """What an instance says of itself whenever it renews its lease."""

    state: State
    progress: ConsumerProgress


class Holding:
    """From ``acquire`` to ``release``. Each has a token of its own: what an earlier instance may
    still write is refused."""

    def __init__(
        self,
        consumer: str,
        seconds: float,
        find_consumers: Callable[[], Consumers | None],
        outages: Outages,
    ) -> None:
        """A lease of ``seconds``. ``find_consumers`` gives the tables of leases over the connection
        of now; None where nobody else sees the name, so that there is no lease to hold."""
        self.consumer = consumer
        self.seconds = seconds
        self._find_consumers = find_consumers
        self._outages = outages
        self._token = str(uuid.uuid4())
        self._lease: Lease | None = None
        self.command: Command | None = None
        """What operators ask for, as of the last answer."""

    def acquire(
        self, pause: Callable[[float], bool], interval_seconds: float, standby: bool = False
    ) -> None:
        """Takes the name; asks again every ``interval_seconds``, until the lease of an instance
        that was killed has run out.

        ``pause`` waits so many seconds and says whether to give up. Raises LeaseHeldError when the
        holder renews its lease, which proves that it is alive, unless on ``standby``; and as
        ``Consumers.acquire``.
        """
        consumers = self._find_consumers()
        if consumers is None:
            return
        first_renewal: int | None = None
        while True:
            try:
                self._lease = consumers.acquire(self.consumer, self.seconds, self._token)
            except LeaseHeldError:
                status = consumers.status(self.consumer)
                renewal = status.updated_at if status is not None else None
                first_renewal = renewal if first_renewal is None else first_renewal
                alive = renewal != first_renewal
                if (alive and not standby) or pause(interval_seconds):
                    raise
            else:
                self.command = self._lease.command
                return

    @property
    def owner(self) -> str | None:
        """The token of this instance, where it holds a lease."""
        return self._lease.owner if self._lease is not None else None

    @property
    def expired(self) -> bool:
        """True when another instance may have taken the name: by this machine's clock the lease has
        run out, as it does while the process is frozen. The next renewal says whether one has."""
        return self._lease is not None and not self._lease.valid

    def check(self) -> None:
        """Raises LeaseExpiredError when the lease has run out."""
        if self.expired:
            raise LeaseExpiredError(
                f"the lease of consumer '{self.consumer}' expired while a window was delivered"
            )

    def renew(self, report: Report, obeyed: Command | None = None) -> None:
        """Extends the lease and stores what the instance reports. A command that was ``obeyed`` is
        taken back, unless an operator has replaced it. Raises LeaseLostError when
        another instance has taken the name, and what the database raises."""
        consumers = self._find_consumers()
        if self._lease is not None and consumers is not None:
            self.command = consumers.renew(self._lease, report.state, report.progress, obeyed)

    def report_failed_renewal(self, error: Exception) -> None:
        """Logs a renewal that has failed and is tried again; an outage has lines of its own."""
        if not self._outages.record_error(error):
            LEASE_NOT_RENEWED.log(LOG, consumer=self.consumer, error=error)

    def report_failed_release(self, error: Exception) -> None:
        """Logs that the name could not be given back."""
        LEASE_NOT_RELEASED.log(LOG, consumer=self.consumer, seconds=self.seconds, error=error)

    def store_error(self, error: BaseException) -> None:
        """Stores an error for operators. One that cannot be stored is in the log."""
        consumers = self._find_consumers()
        if consumers is None:
            return
        try:
            consumers.store_error(self.consumer, error, self.owner)
        except Exception as second:  # noqa: BLE001 (the first error matters, and it is logged)
            ERROR_NOT_STORED.log(LOG, error=second)

    def release(self, report: Report, reason: str | None, obeyed: Command | None = None) -> None:
        """Gives the name back, where it is held, and leaves behind the state and why the instance
        has ended. A command that was ``obeyed`` is taken back. Raises as ``renew``."""
        consumers = self._find_consumers()
        if self._lease is not None and consumers is not None:
            consumers.release(self._lease, report.state, report.progress, obeyed, reason)
