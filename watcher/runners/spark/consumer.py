"""The consumer that a query is: its name is held while it runs, its positions follow its commits.

Clearing waits for the positions; two live queries never share a name.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Sequence

from google.api_core.exceptions import GoogleAPICallError, RetryError

from watcher.config import SourceOptions
from watcher.consumers import Command, Consumers, Lease, Progress, State
from watcher.database import connect
from watcher.errors import LeaseHeldError, LeaseLostError, WatcherError
from watcher.outages import Outages, is_outage
from watcher.positions import Move, Position, SpannerPositions, consumers_table

LOG = logging.getLogger("watcher.spark")
RENEWALS_PER_LEASE = 3
PAUSE_SECONDS = 0.2


class QueryConsumer:
    """Lives in the driver's Python process of one query. A thread renews the lease."""

    def __init__(
        self, options: SourceOptions, name: str, tables: Sequence[str], outages: Outages
    ) -> None:
        """An outage does not end the query before ``outages`` says so: nobody can take the name
        over meanwhile, and if somebody does so afterwards, the next renewal says so."""
        self._outages = outages
        self._seconds = options.lease_seconds
        self._name = name
        self._tables = tables
        database = connect(options.address)
        self._positions = SpannerPositions(database, options.positions_table)
        self._consumers = Consumers(database, consumers_table(options.positions_table))
        self._owner = str(uuid.uuid4())
        self._lease: Lease | None = None
        self._done = threading.Event()
        self._lost: WatcherError | None = None
        self._command: Command | None = None
        self._progress = Progress()

    def start(self, begin: int) -> None:
        """Takes the name and registers tables at ``begin``, before anything is read, so that
        clearing never overtakes; a query that starts earlier than the last one takes the position
        back. Raises LeaseHeldError while a live query has the name."""
        if self._lease is not None:
            self.check()
            return
        self._positions.create()
        self._consumers.create()
        self._lease = self._acquired()
        self._register(begin)
        threading.Thread(target=self._renew, args=(self._lease,), daemon=True).start()

    def _register(self, begin: int) -> None:
        kept = self._positions.of(self._name)
        wanted = {table: begin for table in self._tables if kept.get(table, begin + 1) > begin}
        if wanted.keys() & kept.keys():
            LOG.warning("consumer '%s' starts before its position: that is taken back", self._name)
            # A position only ever moves forward: this is another one by the same name.
            self._positions.forget(self._name)
            wanted, kept = kept | wanted, {}
        moves = [Move(Position(self._name, *each), kept.get(each[0])) for each in wanted.items()]
        self._positions.save_all(moves, self._owner)

    def check(self) -> None:
        """Raises LeaseLostError when another query has taken the name over."""
        if self._lost is not None:
            raise self._lost

    @property
    def paused(self) -> bool:
        """True while an operator wants no further batch. Raises WatcherError to stop the query."""
        self.check()
        if self._command in (Command.STOP, Command.DRAIN):
            raise WatcherError(
                f"an operator asked consumer '{self._name}' to {self._command}; start the query"
                f" again after: spanner-watcher ctl resume {self._name}"
            )
        return self._command is Command.PAUSE

    def advance(self, reached: int) -> None:
        """Everything up to ``reached`` is in the sink."""
        self.check()
        kept = self._positions.of(self._name)
        moves = [
            Move(Position(self._name, table, reached), kept.get(table))
            for table in self._tables
            if kept.get(table, -1) < reached
        ]
        self._positions.save_all(moves, self._owner if self._lease is not None else None)
        self._progress = Progress(windows=self._progress.windows + 1)

    def stop(self) -> None:
        """Gives the name back."""
        self._done.set()
        if self._lease is None or self._lost is not None:
            return
        try:
            self._consumers.release(self._lease, State.NOT_STARTED, self._progress)
        except (GoogleAPICallError, WatcherError) as error:
            LOG.warning("the name '%s' is free in %s s: %s", self._name, self._seconds, error)

    def _acquired(self) -> Lease:
        """The lease; that of a query that was killed runs out first. It is alive if it renews."""
        first: int | None = None
        while True:
            try:
                return self._consumers.acquire(self._name, self._seconds, self._owner)
            except LeaseHeldError:
                status = self._consumers.status(self._name)
                renewed = status.updated_at if status is not None else None
                first = renewed if first is None else first
                if renewed != first:
                    raise
                time.sleep(PAUSE_SECONDS)

    def _renew(self, lease: Lease) -> None:
        while not self._done.wait(self._seconds / RENEWALS_PER_LEASE):
            try:
                state = State.PAUSED if self._command is Command.PAUSE else State.RUNNING
                self._command = self._consumers.renew(lease, state, self._progress)
            except LeaseLostError as error:
                self._lost = error
                return
            except (GoogleAPICallError, RetryError) as error:
                if is_outage(error) and self._outages.lasted < self._outages.limit_seconds:
                    self._outages.failed(error)
                    continue
                LOG.warning("the lease of '%s' could not be renewed: %s", self._name, error)
                if not lease.valid:
                    self._lost = LeaseLostError(
                        f"the lease of consumer '{self._name}' ran out: {error}"
                    )
                    return
            else:
                self._outages.answered()
