"""Background work: removes old versions, and rows that have passed their deletion policy."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import timedelta

import apsw

from emulator.engine.writer import DatabaseWriter
from emulator.errors import SpannerError
from emulator.storage.archives import drop_archive
from emulator.storage.history import CLEAR_ROWS_MAX, clear_sql
from emulator.storage.horizon import save_horizon
from emulator.storage.sqlite import current_table
from emulator.values.forms import timestamp_from_micros
from emulator.values.requests import TransactionOrigin
from emulator.values.sqlite_text import quote_name
from spanner_schema.model.schema import Table

LOG = logging.getLogger("emulator")

INTERVAL_SECONDS = 20.0
DELETE_ROWS_MAX = 5_000
LOCK_WAIT_SECONDS = 5.0
EXPIRY = TransactionOrigin(tag="RowDeletionPolicy", expiry=True)
"""How change streams show the deletes of a row deletion policy."""


class Maintenance:
    """One thread for each database; ``sweep`` runs one round, also for tests."""

    def __init__(self, writer: DatabaseWriter, oldest_readable: Callable[[], int]) -> None:
        self._writer = writer
        self._oldest_readable = oldest_readable
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="maintenance", daemon=True)

    def start(self) -> None:
        """Begins to sweep at intervals."""
        self._thread.start()

    def stop(self) -> None:
        """Returns when the thread is done."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL_SECONDS):
            try:
                self.sweep()
            except (SpannerError, apsw.Error) as error:
                # Mostly a long transaction that holds the turn: the next round retries.
                LOG.info("Maintenance is postponed to the next round: %s", error)

    def sweep(self) -> int:
        """Runs one round; returns the number of rows removed."""
        removed = self.clear_history() + self.clear_archives()
        return removed + self.delete_expired() + self.clear_records()

    def clear_history(self) -> int:
        """Removes versions that no read may need any longer, a bounded number at a time."""
        removed = 0
        horizon = self._oldest_readable()
        for table in self._writer.state.schema.tables:
            while not self._stop.is_set():
                count = self._clear_some(table, horizon)
                removed += count
                if count < CLEAR_ROWS_MAX:
                    break
        return removed

    def clear_archives(self) -> int:
        """Drops archives that no read may need any longer; returns how many."""
        writer, horizon = self._writer, self._oldest_readable()
        archives = writer.versions.expired_archives(horizon)

        def work() -> None:
            save_horizon(writer.connection, horizon)
            for archive in archives:
                drop_archive(writer.connection, archive)

        if archives:
            self._run_in_turn(work)
        writer.versions.forget(horizon, archives)
        return len(archives)

    def delete_expired(self) -> int:
        """Executes the row deletion policies; each part is a commit like any other."""
        deleted = 0
        for table in self._writer.state.schema.tables:
            while table.row_deletion_policy is not None and not self._stop.is_set():
                count = self._delete_some(table)
                deleted += count
                if count < DELETE_ROWS_MAX:
                    break
        return deleted

    def clear_records(self) -> int:
        """Removes the records that change streams need not keep any longer."""
        writer, removed = self._writer, 0
        if not writer.state.schema.change_streams:
            return 0

        def work(_micros: int) -> None:
            nonlocal removed
            removed = writer.capture.clear(writer.state.schema, writer.clock.wall())

        writer.turn.acquire(LOCK_WAIT_SECONDS)
        try:
            writer.commit_alone(work)
        finally:
            writer.turn.release()
        return removed

    def _clear_some(self, table: Table, horizon: int) -> int:
        """Removes some of a table's history; returns the number of rows."""
        writer, count = self._writer, 0

        def work() -> None:
            nonlocal count
            if writer.state.schema.table(table.name) is table:
                writer.connection.execute(clear_sql(table.name), (horizon,))
                count = writer.connection.changes()
            if count:
                save_horizon(writer.connection, horizon)

        self._run_in_turn(work)
        return count

    def _run_in_turn(self, work: Callable[[], None]) -> None:
        """One transaction that changes nothing that a read can see."""
        writer = self._writer
        writer.turn.acquire(LOCK_WAIT_SECONDS)
        try:
            writer.begin()
            work()
            writer.connection.execute("COMMIT")
        finally:
            writer.abandon()
            writer.turn.release()

    def _delete_some(self, table: Table) -> int:
        """One commit that deletes rows past the policy."""
        writer, policy = self._writer, table.row_deletion_policy
        if policy is None:
            return 0
        age = timedelta(days=policy.days) // timedelta(microseconds=1)
        column, name = quote_name(policy.column), current_table(table.name)
        count = 0

        def work(micros: int) -> None:
            nonlocal count
            if writer.state.schema.table(table.name) is not table:
                return
            for affected in writer.state.tables_changed_by_delete(table.name):
                writer.timeline.note_change(affected, micros)
            writer.connection.execute(
                f"DELETE FROM {name} WHERE _rowid_ IN (SELECT _rowid_ FROM {name} "
                f"WHERE {column} < ? LIMIT {DELETE_ROWS_MAX})",
                (timestamp_from_micros(writer.clock.wall() - age),),
            )
            count = writer.connection.changes()
            writer.finish(micros, EXPIRY)

        tables = writer.state.with_parents(writer.state.tables_changed_by_delete(table.name))
        writer.commit_rows(tables, work, writer.locks.next_age(), LOCK_WAIT_SECONDS)
        return count
