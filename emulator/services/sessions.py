"""Sessions, and the transactions that were begun in them."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from emulator import limits
from emulator.engine.clock import wall_micros
from emulator.engine.partitioned import PartitionedDmlTransaction
from emulator.engine.privileges import Rights
from emulator.engine.read_only import ReadOnlyTransaction
from emulator.engine.read_write import ReadWriteTransaction
from emulator.errors import (
    SpannerError,
    aborted,
    failed_precondition,
    invalid_argument,
    not_found,
    resource_exhausted,
    resource_not_found,
)
from emulator.faults import FaultInjector
from emulator.services.registry import DATABASE_TYPE, HostedDatabase, Registry
from emulator.values.requests import Committed
from emulator.wire.messages import Message

MARK = b"swtx"
"""Every transaction id begins with this, then comes the run of the server."""

SESSION_TYPE = "google.spanner.v1.Session"
SESSION_ID_CHARACTERS = 32
Engine = ReadOnlyTransaction | ReadWriteTransaction | PartitionedDmlTransaction


@dataclass(slots=True)
class SessionTransaction:
    """A transaction by its id. ``answers`` holds the response to each seqno of DML.

    ``lock`` keeps the requests of one read-write transaction apart.
    """

    id: bytes
    session: str
    engine: Engine
    multiplexed: bool
    lock: threading.RLock = field(default_factory=threading.RLock)
    answers: dict[int, tuple[bytes, object]] = field(default_factory=dict)
    committed: Committed | None = None
    seen: int = 0
    ended: bool = False
    aborted: bool = False
    failure: SpannerError | None = None
    excluded: bool = False

    def find_answer(self, seqno: int, request: bytes) -> object | None:
        """The earlier response to this seqno, or None. Raises for a seqno that is out of order."""
        if not seqno:
            return None
        previous = self.answers.get(seqno)
        if previous is not None:
            if previous[0] != request:
                raise invalid_argument(
                    f"Previously received a different request with this seqno. seqno={seqno}"
                )
            return previous[1]
        newest = max(self.answers, default=0)
        if seqno < newest:
            raise invalid_argument(
                f"Request has an out-of-order seqno. Request seqno={seqno}. Last seen "
                f"seqno={newest}. The sequence number must be monotonically increasing within the "
                "transaction."
            )
        return None

    def remember(self, seqno: int, request: bytes, answer: object) -> None:
        """Keeps an answer for a request that comes again."""
        if seqno:
            self.answers[seqno] = (request, answer)

    def roll_back(self) -> None:
        """Gives a read-write transaction up; harmless for others."""
        self.ended = True
        if isinstance(self.engine, ReadWriteTransaction):
            self.engine.rollback()


@dataclass(slots=True)
class Session:
    """A session. A multiplexed one runs any number of transactions at once, another only one:
    ``active``. ``latest`` is the one that was begun last, also after its end."""

    name: str
    database: HostedDatabase
    labels: Mapping[str, str] = field(default_factory=dict)
    creator_role: str = ""
    multiplexed: bool = False
    create_time_micros: int = field(default_factory=wall_micros)
    last_use_micros: int = field(default_factory=wall_micros)
    active: SessionTransaction | None = None
    latest: SessionTransaction | None = None

    @property
    def rights(self) -> Rights | None:
        """What the session's role may do; None without a role. Raises PERMISSION_DENIED for a role
        that is gone."""
        return self.database.engine.rights(self.creator_role)


class Sessions:
    """All sessions and transactions of the server. Thread-safe."""

    def __init__(self, registry: Registry, faults: FaultInjector) -> None:
        self._registry = registry
        self._faults = faults
        self._run = MARK + secrets.token_bytes(4)
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}
        self._transactions: OrderedDict[bytes, SessionTransaction] = OrderedDict()
        for name, database in registry.lasting_sessions.items():
            hosted = registry.databases.get(database)
            if hosted is not None:
                role = registry.session_roles.get(name, "")
                self._sessions[name] = Session(name, hosted, creator_role=role, multiplexed=True)

    def create(self, database_name: str, template: Message) -> Session:
        """A new session of a database, like the template."""
        database = self._registry.database(database_name)
        database.engine.rights(template.creator_role)
        self._make_room()
        session = Session(
            f"{database_name}/sessions/{make_session_id(database)}",
            database,
            dict(template.labels),
            template.creator_role,
            template.multiplexed,
        )
        self._sessions[session.name] = session
        if session.multiplexed:
            self._registry.keep_session(session.name, database_name, session.creator_role)
        return session

    def _make_room(self) -> None:
        """Raises RESOURCE_EXHAUSTED when there are as many sessions as there may be, and all of
        them are in use."""
        if len(self._sessions) < limits.SESSIONS_MAX:
            return
        idle = wall_micros() - limits.SESSION_IDLE_SECONDS_MAX * 1_000_000
        for session in list(self._sessions.values()):
            if session.last_use_micros < idle and not session.multiplexed:
                self.delete(session.name)
        if len(self._sessions) >= limits.SESSIONS_MAX:
            raise resource_exhausted(
                f"Too many sessions: {limits.SESSIONS_MAX}. Delete sessions, or create fewer."
            )

    def get(self, name: str) -> Session:
        """A session whose database is still there.

        Raises NOT_FOUND as Spanner does: for its instance, its database, and then itself. The
        session of a database that was dropped is never one of another with its name.
        """
        session = self._sessions.get(name)
        if session is None or self._faults.loses_session():
            self._refuse_unknown(name)
            raise resource_not_found("Session", SESSION_TYPE, name)
        database = session.database
        if self._registry.databases.get(database.name) is not database:
            self.delete(name)
            raise resource_not_found("Database", DATABASE_TYPE, database.name)
        session.last_use_micros = wall_micros()
        return session

    def _refuse_unknown(self, name: str) -> None:
        """Raises for a session's name whose form is wrong, or whose database is not there."""
        database, separator, identifier = name.rpartition("/sessions/")
        if not separator or not identifier or "/" in identifier:
            raise invalid_argument(f"Invalid session uri: {name}")
        mark = mark_database(self._registry.database(database))
        if len(identifier) == SESSION_ID_CHARACTERS and not identifier.startswith(mark):
            raise resource_not_found("Database", DATABASE_TYPE, database)

    def list_sessions(self, database_name: str) -> list[Session]:
        """The sessions of a database, by name; multiplexed ones are not listed."""
        database = self._registry.database(database_name)
        with self._lock:
            sessions = [s for s in self._sessions.values() if s.database is database]
        return sorted((s for s in sessions if not s.multiplexed), key=lambda s: s.name)

    def delete(self, name: str) -> None:
        """Ends a session and gives its open transaction up."""
        session = self._sessions.pop(name, None)
        if session is not None and session.active is not None:
            session.active.roll_back()

    def begin(self, session: Session, engine: Engine) -> SessionTransaction:
        """Gives a transaction an id. In a plain session it replaces the previous one."""
        begun = SessionTransaction(self._new_id(), session.name, engine, session.multiplexed)
        if not session.multiplexed and not isinstance(engine, ReadOnlyTransaction):
            before, session.active = session.active, begun
            session.latest = begun
            if before is not None and not before.ended:
                before.roll_back()
        forgotten: list[SessionTransaction] = []
        with self._lock:
            self._transactions[begun.id] = begun
            while len(self._transactions) > limits.TRANSACTIONS_KEPT_MAX:
                forgotten.append(self._transactions.popitem(last=False)[1])
        for old in forgotten:
            old.roll_back()
        return begun

    def retried_age(self, session: Session, previous: bytes) -> int | None:
        """The age of the aborted transaction of which a new one is the retry; None without one.

        ``previous`` is its id, which clients send in multiplexed sessions. In another session it is
        the latest transaction.
        """
        retried = self._transactions.get(previous) if session.multiplexed else session.latest
        if retried is None or retried.session != session.name:
            return None
        engine = retried.engine
        if not isinstance(engine, ReadWriteTransaction):
            return None
        return engine.age if retried.aborted or engine.is_aborted else None

    def transaction(self, session: Session, identifier: bytes) -> SessionTransaction:
        """A transaction of this session. Raises NOT_FOUND or, in another session, refuses."""
        transaction = self._transactions.get(identifier)
        if transaction is None and self._is_of_earlier_run(identifier):
            raise aborted("The transaction was lost when the server restarted.")
        if transaction is None:
            raise not_found(f"Transaction not found: {identifier.hex()}")
        if transaction.session != session.name:
            raise foreign_transaction(identifier)
        return transaction

    def _new_id(self) -> bytes:
        """A transaction id that a later run of the server recognizes as one."""
        return self._run + secrets.token_bytes(8)

    def _is_of_earlier_run(self, identifier: bytes) -> bool:
        """Whether another run of the server began a transaction. Spanner answers ABORTED for a lost
        transaction, so that clients retry it."""
        return identifier.startswith(MARK) and not identifier.startswith(self._run)


def mark_database(database: HostedDatabase) -> str:
    """What the ids of its sessions begin with: another database of the same name has another."""
    return f"{database.create_time_micros:014x}"


def make_session_id(database: HostedDatabase) -> str:
    """An id for a new session."""
    mark = mark_database(database)
    return mark + secrets.token_hex((SESSION_ID_CHARACTERS - len(mark)) // 2)


def foreign_transaction(identifier: bytes) -> SpannerError:
    """A transaction is used in a session that did not begin it."""
    return failed_precondition(
        f"Transaction {identifier.hex()} was begun in another session and cannot be used here."
    )
