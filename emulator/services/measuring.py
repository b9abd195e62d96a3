"""Statements as the query statistics count them: from their start until their rows are read."""

from __future__ import annotations

import threading
import time

from emulator.engine.query_stats import Execution, QueryStats
from emulator.engine.read_write import ReadWriteTransaction
from emulator.services.sessions import SessionTransaction
from emulator.services.statements import MEASURED, BoundStatement, StatementOutcome
from emulator.wire.messages import Message


class Measurement:
    """One execution that runs."""

    __slots__ = ("_cpu", "_done", "_started", "_statement", "_stats", "_tag", "_thread", "_writing")

    def __init__(
        self,
        stats: QueryStats,
        statement: BoundStatement,
        transaction: SessionTransaction,
        tag: str,
    ) -> None:
        self._stats = stats
        self._statement = statement
        self._tag = tag
        self._writing = isinstance(transaction.engine, ReadWriteTransaction)
        self._done = False
        self._thread = threading.get_ident()
        self._cpu = time.thread_time()
        self._started = time.perf_counter()

    def record_failure(self) -> None:
        """The statement gave an error."""
        self._record(0, None, failed=True)

    def record_when_read(self, outcome: StatementOutcome, *, counted: bool) -> StatementOutcome:
        """The outcome; the execution ends when its rows are closed."""
        rows = outcome.rows
        close = rows.close

        def close_and_record() -> None:
            close()
            count = outcome.row_count
            count = rows.stats.rows_returned if count is None else count
            self._record(count, rows.stats.rows_scanned if counted else None)

        rows.close = close_and_record
        return outcome

    def _record(self, rows: int, rows_scanned: int | None, *, failed: bool = False) -> None:
        if self._done:
            return
        self._done = True
        same = threading.get_ident() == self._thread
        self._stats.record(
            Execution(
                self._statement.compiled.text,
                self._tag,
                self._statement.part is not None,
                time.perf_counter() - self._started,
                time.thread_time() - self._cpu if same else 0.0,
                rows,
                rows_scanned,
                failed,
                self._writing,
            )
        )


def should_count_rows(stats: QueryStats, request: Message) -> bool:
    """Whether this execution counts the rows that it scans: on request, or as a sample.

    A resumed stream must read its rows in the same order as before: it is never a sample.
    """
    if request.query_mode in MEASURED:
        return True
    return not request.resume_token and stats.should_count(request.sql)
