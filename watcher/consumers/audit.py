"""What operators did to consumers: who, when, what, and how it ended."""

from __future__ import annotations

import getpass
import json
import logging
import os
import socket
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, param_types
from google.cloud.spanner_v1.database import Database

from watcher.consumers.positions.own_names import audit_table
from watcher.consumers.positions.tables import create_own_tables, read_own_columns
from watcher.model.log_events.running import AUDIT_NOT_WRITTEN
from watcher.spanner.dialects import Values, find_dialect
from watcher.spanner.failures import CALL_ERRORS
from watcher.spanner.timestamps import to_micros

LOG = logging.getLogger("watcher.audit")
COLUMNS = ("Consumer", "AuditId", "At", "Who", "Action", "Details", "Result")
BEGUN, DONE = "begun", "done"
"""Results. One that stays ``begun`` is of a process that died before it knew."""
RESULT_CHARACTERS_MAX = 2_000


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An action of an operator. ``consumer`` is empty for one that concerns a whole table; ``at``
    is in microseconds since 1970."""

    consumer: str
    at: int
    who: str
    action: str
    details: Mapping[str, object]
    result: str


@dataclass(slots=True)
class Outcome:
    """How an action ended."""

    result: str = DONE


def describe_operator() -> str:
    """Who runs this process, and where: Spanner does not tell us its own principal."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container may run as a user without a name
        name = f"uid {os.getuid()}"
    return f"{name}@{socket.gethostname()}"


class Audit:
    """Writes what is done, before and after, in transactions of its own.

    A command must reach its consumer also where the audit cannot be written, as for a role without
    the privilege: then the log says so.
    """

    def __init__(self, database: Database, positions_table: str, who: str | None = None) -> None:
        """``who`` None: who runs this process."""
        self._database = database
        self._positions = positions_table
        self._who = who or describe_operator()

    @contextmanager
    def record(self, action: str, consumer: str, **details: object) -> Iterator[Outcome]:
        """Writes an entry around a block, which may say more of how it ended; an error that leaves
        it is the result. Where nobody has watched there is nothing to act on, and no entry."""
        columns, outcome = read_own_columns(self._database, self._positions), Outcome()
        if not columns:
            yield outcome
            return
        if (audit_table(self._positions), "AuditId") not in columns:
            create_own_tables(self._database, self._positions)
        key = (consumer, str(uuid.uuid4()))
        shown = {name: value for name, value in details.items() if value is not None}
        text = json.dumps(shown, ensure_ascii=False, default=str)
        self._write((*key, COMMIT_TIMESTAMP, self._who, action, text, BEGUN))
        try:
            yield outcome
        except BaseException as error:
            self._end(key, f"{type(error).__name__}: {error}")
            raise
        self._end(key, outcome.result)

    def _end(self, key: tuple[str, str], result: str) -> None:
        self._write((*key, result[:RESULT_CHARACTERS_MAX]), ("Consumer", "AuditId", "Result"))

    def _write(self, row: tuple[object, ...], columns: tuple[str, ...] = COLUMNS) -> None:
        table = audit_table(self._positions)
        try:
            with self._database.batch() as batch:
                (batch.insert if columns is COLUMNS else batch.update)(table, columns, [row])
        except CALL_ERRORS as error:
            AUDIT_NOT_WRITTEN.log(LOG, table=table, error=error.message)


def read_audit(
    database: Database, positions_table: str, consumer: str | None, entries_max: int
) -> list[AuditEntry]:
    """The newest entries, the newest first: of a consumer, or of all. Empty where nobody has
    written any."""
    table, sql = audit_table(positions_table), find_dialect(database)
    if (table, "AuditId") not in read_own_columns(database, positions_table):
        return []
    condition = "" if consumer is None else f" WHERE {sql.quote('Consumer')} = @consumer"
    shown = tuple(name for name in COLUMNS if name != "AuditId")
    text = (
        f"SELECT {sql.quote_all(shown)} FROM {sql.quote(table)}{condition}"  # noqa: S608 (quoted)
        f" ORDER BY {sql.quote('At')} DESC LIMIT {entries_max:d}"
    )
    values: Values = {} if consumer is None else {"consumer": (consumer, param_types.STRING)}
    with database.snapshot() as snapshot:
        return [
            AuditEntry(name, to_micros(at), who, action, json.loads(details), result)
            for name, at, who, action, details, result in snapshot.execute_sql(
                *sql.bind(text, values)
            )
        ]
