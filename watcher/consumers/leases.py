"""Who holds a consumer's name, and the tables in which its state, commands and errors are."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, KeySet, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from spanner_schema.model.suggestions import suggest_name
from watcher.consumers.arrivals import finish_arrival
from watcher.consumers.lease_statements import LeaseStatements
from watcher.consumers.positions import (
    check_owner,
    consumers_table,
    create_own_tables,
    errors_table,
)
from watcher.consumers.positions.fences import NameFence, check_name, is_alive
from watcher.consumers.positions.rows import StoredRows
from watcher.consumers.positions.spanner import taken_over
from watcher.consumers.states import (
    Command,
    ConsumerProgress,
    ConsumerStatus,
    State,
    parse_command,
)
from watcher.model.errors import (
    ConsumerMovedError,
    ConsumerNotFoundError,
    LeaseHeldError,
)
from watcher.model.log_events.running import COMMAND_UNKNOWN
from watcher.spanner.dialects import SqlDialect, Values, find_dialect
from watcher.spanner.timestamps import to_micros
from watcher.spanner.transactions import run_optimistically
from watcher.tables.parts import find_parts, parse_part_name

LOG = logging.getLogger("watcher")
LEASE_SECONDS = 15.0


def lease_clock() -> float:
    """Seconds of this machine's clock that goes on while it is suspended, where there is one."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


@dataclass(slots=True)
class Lease:
    """A consumer's name, held by this instance under the token ``owner``. ``valid`` counts by this
    machine's own clock, from before the last renewal was asked for, so that it never lasts longer
    than Spanner's. ``command`` is what operators asked for when it was acquired."""

    consumer: str
    owner: str
    seconds: float
    renewed_at: float
    command: Command | None = None

    @property
    def valid(self) -> bool:
        """True while no other instance can have taken the name."""
        return lease_clock() - self.renewed_at < self.seconds


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """What is stored of who holds a consumer's name; ``alive`` until the lease runs out."""

    alive: bool
    owner: str | None
    command: Command | None
    fence: NameFence | None


def not_found(consumer: str, known: Iterable[str]) -> ConsumerNotFoundError:
    """The error for a name that no consumer has."""
    shared = {part[0] for name in known if (part := parse_part_name(name)) is not None}
    advice = suggest_name(consumer, sorted({*known, *shared}), "the consumers are")
    return ConsumerNotFoundError(f"consumer '{consumer}' does not exist; {advice}")


class Consumers:
    """The tables of leases and of errors that go with a table of positions."""

    def __init__(self, database: Database, positions_table: str) -> None:
        """Raises ConfigurationError for a name that no table of positions can have."""
        self._database = database
        self._positions = positions_table
        self._name = consumers_table(positions_table)
        self._errors = errors_table(positions_table)
        self._unknown: str | None = None

    @property
    def _sql(self) -> SqlDialect:
        return find_dialect(self._database)

    @property
    def _statements(self) -> LeaseStatements:
        return LeaseStatements(self._sql, self._name)

    @property
    def table(self) -> str:
        """The name of the table of leases and states."""
        return self._name

    def create(self) -> None:
        """Creates the product's own tables where they are missing."""
        create_own_tables(self._database, self._positions)

    def acquire(
        self,
        consumer: str,
        seconds: float = LEASE_SECONDS,
        owner: str | None = None,
    ) -> Lease:
        """Takes a name that nobody holds, or whose holder has not renewed in time.

        ``owner`` is the token of this acquisition; asking again with it gives the same lease. A
        command of an operator stays. Raises LeaseHeldError while another instance holds the name,
        ConfigurationError for a consumer that is divided into parts, DivisionChangedError for a
        part of one that is not, or in another way, and ConsumerMovedError for one that was moved.
        """
        lease = Lease(consumer, owner or str(uuid.uuid4()), seconds, lease_clock())
        values: Values = {
            "consumer": (consumer, param_types.STRING),
            "owner": (lease.owner, param_types.STRING),
            "state": (str(State.STARTING), param_types.STRING),
            "milliseconds": (round(seconds * 1000), param_types.INT64),
        }

        def take(transaction: Transaction) -> bool:
            StoredRows(transaction, self._positions, self._sql).check_division(consumer)
            row = self._read_holder(transaction, consumer)
            check_name(consumer, None if row is None else row.fence)
            if row is not None and row.alive and row.owner != lease.owner:
                return False
            lease.command = row.command if row is not None else None
            sql = self._statements.take if row is not None else self._statements.insert
            transaction.execute_update(*self._sql.bind(sql, values))
            return True

        try:
            taken = run_optimistically(self._database, take)
        except ConsumerMovedError:
            if not finish_arrival(self._database, self._positions, consumer):
                raise
            taken = run_optimistically(self._database, take)
        if not taken:
            raise LeaseHeldError(
                f"another instance runs as consumer '{consumer}': choose another name, stop it"
                f" (spanner-watcher ctl stop {consumer}), or wait until it has ended"
            )
        return lease

    def _read_holder(self, transaction: Transaction, consumer: str) -> LeaseHolder | None:
        """Who holds a consumer's name, or held it last."""
        rows = transaction.execute_sql(
            *self._sql.bind(self._statements.holder, {"consumer": (consumer, param_types.STRING)})
        )
        holders = [
            LeaseHolder(
                bool(alive),
                owner,
                parse_command(command),
                NameFence.parse(owner, reason),
            )
            for alive, owner, command, reason in rows
        ]
        return holders[0] if holders else None

    def renew(
        self,
        lease: Lease,
        state: State,
        progress: ConsumerProgress,
        obeyed: Command | None = None,
    ) -> Command | None:
        """Extends the lease and stores the state; what operators have asked for, without what was
        ``obeyed``.

        Raises LeaseLostError when another instance has taken the name.
        """
        asked_at = lease_clock()
        command = self._update(lease, state, progress, lease.seconds, obeyed)
        lease.renewed_at = asked_at
        return command

    def release(
        self,
        lease: Lease,
        state: State,
        progress: ConsumerProgress,
        obeyed: Command | None = None,
        reason: str | None = None,
    ) -> None:
        """Gives the name back and stores the last state, and why the run has ended. A command that
        was ``obeyed`` is taken back, unless an operator has replaced it."""
        self._update(lease, state, progress, None, obeyed, reason)

    def _update(
        self,
        lease: Lease,
        state: State,
        progress: ConsumerProgress,
        seconds: float | None,
        obeyed: Command | None = None,
        reason: str | None = None,
    ) -> Command | None:
        values: Values = {
            "consumer": (lease.consumer, param_types.STRING),
            "owner": (lease.owner, param_types.STRING),
            "next_owner": (lease.owner if seconds is not None else None, param_types.STRING),
            "state": (str(state), param_types.STRING),
            "milliseconds": (round((seconds or 0) * 1000), param_types.INT64),
            "windows": (progress.windows, param_types.INT64),
            "rows": (progress.rows, param_types.INT64),
            "rate": (progress.rows_per_second, param_types.FLOAT64),
            "dead": (progress.dead_letters, param_types.INT64),
            "obeyed": (str(obeyed) if obeyed else None, param_types.STRING),
            "reason": (reason, param_types.STRING),
        }

        def update(transaction: Transaction) -> list[list[str | None]]:
            return list(transaction.execute_sql(*self._sql.bind(self._statements.renew, values)))

        rows = run_optimistically(self._database, update)
        if not rows:
            raise taken_over(lease.consumer)
        asked = parse_command(rows[0][0])
        self._note_unknown(lease.consumer, rows[0][0] if asked is None else None)
        return asked

    def _note_unknown(self, consumer: str, command: str | None) -> None:
        """Logs a command that this release does not know, once; None for none."""
        if command is not None and command != self._unknown:
            COMMAND_UNKNOWN.log(LOG, consumer=consumer, command=command)
        self._unknown = command

    def command(self, consumer: str) -> Command | None:
        """What operators have asked of a consumer."""
        with self._database.snapshot() as snapshot:
            rows = list(snapshot.read(self._name, ("Command",), KeySet(keys=[[consumer]])))
        return parse_command(rows[0][0]) if rows else None

    def ask(self, consumer: str, command: Command) -> tuple[str, ...]:
        """Stores a command for a consumer, or for all parts of a shared one, in one transaction;
        for whom. Raises ConsumerNotFoundError, and ConsumerMovedError."""
        value = None if command is Command.RESUME else str(command)

        def write(transaction: Transaction) -> tuple[str, ...]:
            known = self._read_names(transaction)
            names = find_parts(consumer, known) or (consumer,)
            if not known.issuperset(names):
                raise not_found(consumer, known)
            row = self._read_holder(transaction, consumer)
            check_name(consumer, None if row is None else row.fence)
            rows = [(name, value) for name in names]
            transaction.update(self._name, ("Consumer", "Command"), rows)
            return names

        return run_optimistically(self._database, write)

    def _read_names(self, transaction: Transaction) -> frozenset[str]:
        """Every consumer that has a state."""
        q = self._sql.quote
        text = f"SELECT {q('Consumer')} FROM {q(self._name)}"  # noqa: S608 (quoted)
        return frozenset(row[0] for row in transaction.execute_sql(text))

    def status(self, consumer: str) -> ConsumerStatus | None:
        """A consumer, or None."""
        return next((each for each in self.list_all() if each.consumer == consumer), None)

    def list_all(self) -> tuple[ConsumerStatus, ...]:
        """Every consumer, by name."""
        with self._database.snapshot() as snapshot:
            q = self._sql.quote
            shown = ("Windows", "DeliveredRows", "RowsPerSecond", "DeadLetters", "Reason")
            rows = snapshot.execute_sql(
                f"SELECT {self._sql.quote_all(('Consumer', 'State', 'Command'))},"  # noqa: S608
                f" {is_alive(self._sql)},"
                f" {q('UpdatedAt')}, {self._sql.quote_all(shown)} FROM {q(self._name)}"
                f" ORDER BY {q('Consumer')}"
            )
            return tuple(
                ConsumerStatus(
                    row[0],
                    State(row[1]),
                    parse_command(row[2]),
                    bool(row[3]),
                    to_micros(row[4]),
                    ConsumerProgress(row[5] or 0, row[6] or 0, row[7] or 0.0, row[8] or 0),
                    row[9],
                )
                for row in rows
            )

    def store_error(self, consumer: str, error: BaseException, owner: str | None = None) -> None:
        """Stores an error for operators to see. Raises LeaseLostError when ``owner`` does not hold
        the consumer's lease any more."""
        columns = ("Consumer", "ErrorId", "Kind", "Message", "OccurredAt")
        row = (consumer, str(uuid.uuid4()), type(error).__name__, str(error), COMMIT_TIMESTAMP)

        def insert(transaction: Transaction) -> None:
            check_owner(transaction, self._positions, consumer, owner, self._sql)
            transaction.insert(self._errors, columns, [row])

        run_optimistically(self._database, insert)
