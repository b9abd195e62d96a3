"""Who holds a consumer's name, in which state it is, and what operators ask of it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, KeySet, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from watcher.errors import ConfigurationError, LeaseHeldError, LeaseLostError
from watcher.positions import create_table
from watcher.sql import quoted
from watcher.stream import micros_of

LEASE_SECONDS = 15.0
ERRORS_SHOWN_MAX = 100


class State(StrEnum):
    """The life of a consumer, in the words that operators know from Datastream."""

    NOT_STARTED = "NOT_STARTED"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    DRAINING = "DRAINING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    """It tries again by itself."""
    FAILED_PERMANENTLY = "FAILED_PERMANENTLY"
    """Somebody has to mend something."""


class Command(StrEnum):
    """What an operator asks of a running consumer."""

    PAUSE = "pause"
    RESUME = "resume"
    DRAIN = "drain"
    """Deliver everything up to now, then stop."""
    STOP = "stop"
    """Stop after the window under way."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What an instance tells of itself with every renewal of its lease."""

    windows: int = 0
    rows: int = 0
    rows_per_second: float = 0.0
    dead_letters: int = 0


@dataclass(frozen=True, slots=True)
class ConsumerStatus:
    """A consumer as everybody can see it; timestamps in microseconds since 1970.

    ``alive`` is False when its lease has run out.
    """

    consumer: str
    state: State
    command: Command | None
    alive: bool
    updated_at: int
    progress: Progress


@dataclass(frozen=True, slots=True)
class StoredError:
    """An error that a consumer met; ``occurred_at`` in microseconds since 1970."""

    consumer: str
    occurred_at: int
    kind: str
    message: str


@dataclass(slots=True)
class Lease:
    """A consumer's name, held by this instance. ``valid`` counts by this machine's own clock, from
    before the last renewal was asked for, so that it never lasts longer than Spanner's."""

    consumer: str
    owner: str
    seconds: float
    renewed_at: float = field(default_factory=time.monotonic)

    @property
    def valid(self) -> bool:
        """True while no other instance can have taken the name."""
        return time.monotonic() - self.renewed_at < self.seconds


class Consumers:
    """The tables ``...Consumers`` and ``...ConsumerErrors`` of a Spanner database."""

    def __init__(self, database: Database, table: str) -> None:
        self._database = database
        self._name = table
        self._sql_name = quoted(table)
        self._errors = table.removesuffix("s") + "Errors"
        self._sql_errors = quoted(self._errors)

    @property
    def table(self) -> str:
        """The name of the table of leases and states."""
        return self._name

    def create(self) -> None:
        """Creates both tables unless they are there."""
        create_table(
            self._database,
            self._name,
            "Consumer STRING(256) NOT NULL, State STRING(32) NOT NULL, Command STRING(16),"
            " Owner STRING(64), LeaseUntil TIMESTAMP, Windows INT64, DeliveredRows INT64,"
            " RowsPerSecond FLOAT64, DeadLetters INT64,"
            " UpdatedAt TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true)",
            "Consumer",
        )
        create_table(
            self._database,
            self._errors,
            "Consumer STRING(256) NOT NULL, ErrorId STRING(36) NOT NULL, Kind STRING(64) NOT NULL,"
            " Message STRING(MAX) NOT NULL,"
            " OccurredAt TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true)",
            "Consumer, ErrorId",
        )

    def acquire(
        self, consumer: str, seconds: float = LEASE_SECONDS, owner: str | None = None
    ) -> Lease:
        """Takes a name that nobody holds, or whose holder has not renewed in time.

        ``owner`` names the instance; one that asks again gets what it has. Raises LeaseHeldError
        while another instance holds the name.
        """
        lease = Lease(consumer, owner or str(uuid.uuid4()), seconds)

        def work(transaction: Transaction) -> str | None:
            held = list(
                transaction.execute_sql(
                    "SELECT Owner IS NOT NULL AND LeaseUntil > CURRENT_TIMESTAMP(), Owner"  # noqa: S608
                    f" FROM {self._sql_name} WHERE Consumer = @consumer",
                    params={"consumer": consumer},
                    param_types={"consumer": param_types.STRING},
                )
            )
            if held and held[0][0] and held[0][1] != lease.owner:
                return str(held[0][1])
            transaction.insert_or_update(
                self._name,
                ("Consumer", "State", "Command", "Owner", "UpdatedAt"),
                [(consumer, State.STARTING, None, lease.owner, COMMIT_TIMESTAMP)],
            )
            return None

        if self._database.run_in_transaction(work) is not None:
            raise LeaseHeldError(
                f"another instance runs as consumer '{consumer}'; choose another name, stop it"
                f" (spanner-watcher ctl stop {consumer}), or wait until it is gone"
            )
        self.renew(lease, State.STARTING, Progress())
        return lease

    def renew(self, lease: Lease, state: State, progress: Progress) -> Command | None:
        """Holds the name for another while and tells the state; what operators have asked for.

        Raises LeaseLostError when another instance has taken the name.
        """
        asked_at = time.monotonic()
        command = self._update(lease, state, progress, lease.seconds)
        lease.renewed_at = asked_at
        return command

    def release(self, lease: Lease, state: State, progress: Progress) -> None:
        """Gives the name back and leaves the last state behind."""
        self._update(lease, state, progress, None)

    def _update(
        self, lease: Lease, state: State, progress: Progress, seconds: float | None
    ) -> Command | None:
        values: dict[str, tuple[object, object]] = {
            "consumer": (lease.consumer, param_types.STRING),
            "owner": (lease.owner, param_types.STRING),
            "next_owner": (lease.owner if seconds is not None else None, param_types.STRING),
            "state": (str(state), param_types.STRING),
            "milliseconds": (round((seconds or 0) * 1000), param_types.INT64),
            "windows": (progress.windows, param_types.INT64),
            "rows": (progress.rows, param_types.INT64),
            "rate": (progress.rows_per_second, param_types.FLOAT64),
            "dead": (progress.dead_letters, param_types.INT64),
        }

        def work(transaction: Transaction) -> Command | None:
            updated = transaction.execute_update(
                f"UPDATE {self._sql_name} SET State = @state, Owner = @next_owner,"  # noqa: S608
                " LeaseUntil = TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL @milliseconds"
                " MILLISECOND), Windows = @windows, DeliveredRows = @rows, RowsPerSecond = @rate,"
                " DeadLetters = @dead, UpdatedAt = PENDING_COMMIT_TIMESTAMP()"
                " WHERE Consumer = @consumer AND Owner = @owner",
                params={name: value for name, (value, _) in values.items()},
                param_types={name: type_ for name, (_, type_) in values.items()},
            )
            if updated != 1:
                raise LeaseLostError(
                    f"another instance has taken over the consumer '{lease.consumer}';"
                    " this one stops"
                )
            return None

        # Asked for before, not after: a command that comes between is seen at the next renewal.
        command = self.command(lease.consumer)
        self._database.run_in_transaction(work)
        return command

    def command(self, consumer: str) -> Command | None:
        """What operators have asked of a consumer."""
        with self._database.snapshot() as snapshot:
            rows = list(snapshot.read(self._name, ("Command",), KeySet(keys=[[consumer]])))
        return Command(rows[0][0]) if rows and rows[0][0] else None

    def ask(self, consumer: str, command: Command) -> None:
        """Leaves a command for a consumer. Raises ConfigurationError for one that is not known."""
        if self.status(consumer) is None:
            known = ", ".join(each.consumer for each in self.all()) or "none"
            raise ConfigurationError(f"there is no consumer '{consumer}'; there are: {known}")
        value = None if command is Command.RESUME else str(command)
        with self._database.batch() as batch:
            batch.update(self._name, ("Consumer", "Command"), [(consumer, value)])

    def forget(self, consumer: str) -> None:
        """Removes a consumer that is not alive. Raises LeaseHeldError while it is."""
        found = self.status(consumer)
        if found is not None and found.alive:
            raise LeaseHeldError(
                f"consumer '{consumer}' is alive; stop it first:"
                f" spanner-watcher ctl stop {consumer}"
            )
        with self._database.batch() as batch:
            batch.delete(self._name, KeySet(keys=[[consumer]]))

    def status(self, consumer: str) -> ConsumerStatus | None:
        """A consumer, or None."""
        return next((each for each in self.all() if each.consumer == consumer), None)

    def all(self) -> tuple[ConsumerStatus, ...]:
        """Every consumer, by name."""
        with self._database.snapshot() as snapshot:
            rows = snapshot.execute_sql(
                "SELECT Consumer, State, Command,"  # noqa: S608 (quoted)
                " Owner IS NOT NULL AND LeaseUntil > CURRENT_TIMESTAMP(), UpdatedAt,"
                " IFNULL(Windows, 0), IFNULL(DeliveredRows, 0), IFNULL(RowsPerSecond, 0.0),"
                f" IFNULL(DeadLetters, 0) FROM {self._sql_name}"
                " ORDER BY Consumer"
            )
            return tuple(
                ConsumerStatus(
                    row[0],
                    State(row[1]),
                    Command(row[2]) if row[2] else None,
                    bool(row[3]),
                    micros_of(row[4]),
                    Progress(row[5], row[6], row[7], row[8]),
                )
                for row in rows
            )

    def store_error(self, consumer: str, error: BaseException) -> None:
        """Keeps an error for operators to see."""
        columns = ("Consumer", "ErrorId", "Kind", "Message", "OccurredAt")
        row = (consumer, str(uuid.uuid4()), type(error).__name__, str(error), COMMIT_TIMESTAMP)
        with self._database.batch() as batch:
            batch.insert(self._errors, columns, [row])

    def errors(self, consumer: str, limit: int = ERRORS_SHOWN_MAX) -> Sequence[StoredError]:
        """The newest errors of a consumer, the newest first."""
        with self._database.snapshot() as snapshot:
            rows = snapshot.execute_sql(
                f"SELECT OccurredAt, Kind, Message FROM {self._sql_errors}"  # noqa: S608 (quoted)
                " WHERE Consumer = @consumer ORDER BY OccurredAt DESC LIMIT @limit",
                params={"consumer": consumer, "limit": limit},
                param_types={"consumer": param_types.STRING, "limit": param_types.INT64},
            )
            return [StoredError(consumer, micros_of(r[0]), r[1], r[2]) for r in rows]
