"""Changes as rows of tables in another database: what is alike whichever it is.

A window is one transaction there. It begins by moving the position of the consumer, in a small
table beside the others, and only if the epoch is still that of this instance: who opens the sink
raises it, and the instance before is refused from then on. Each row has the commit timestamp of its
version, and a statement never puts an older one over a newer one. So a window that comes again,
because its answer was lost or the process was killed, changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.names import split_name
from watcher.captures import TableRows
from watcher.model.change import Change
from watcher.model.errors import DeliveryError, LeaseLostError, SinkUnavailableError
from watcher.process.failpoints import failpoint
from watcher.replica.copies import STAMP_COLUMN
from watcher.settings.destinations import TableDestination
from watcher.settings.watcher import WatchConfig
from watcher.sinks.refusals import Refusal, RefusedChangesError
from watcher.sinks.table_rows import HeldWindow, NewestRows
from watcher.sinks.table_store import Columns, TableStore, Target
from watcher.spanner.outages import Outages

STATE_TABLE = "spanner_watcher_consumers"
"""In the schema of the tables: the epoch and the position of each consumer."""
TIMESTAMP = Type(TypeCode.TIMESTAMP)


class TableSink:
    """A ``HeldSink`` and a ``TableBatchSink`` over the tables of a database."""

    def __init__(
        self, destination: TableDestination, store: TableStore, config: WatchConfig
    ) -> None:
        """Connects to nobody yet."""
        assert config.consumer is not None, "the settings demand one"
        self._destination = destination
        self.store = store
        self._source = config.address.path
        self._consumer = config.consumer
        self._state = (destination.schema, STATE_TABLE)
        self._takes_unnamed = any("." not in each for each in config.tables)
        """Tables of no named schema are watched, or may be."""
        self._nanoseconds = config.nanoseconds
        self._held = HeldWindow(config.nanoseconds)
        self._resolved: int | None = None
        self._epoch = 0
        self._known: dict[Target, dict[str, str]] = {}
        """The columns of each table and their types, until something fails."""
        self._outages = Outages(str(destination))

    # As ``HeldSink``.

    def open(self) -> None:
        """As ``HeldSink.open``: from now on the instance before is refused."""
        with self._watch_outage(), self.store.transaction():
            self._epoch = self.store.claim(self._state, self._source, self._consumer)

    def close(self) -> None:
        """As ``HeldSink.close``."""
        self.discard()
        self.store.close()

    # As ``TableBatchSink``.

    def write_rows(self, rows: TableRows) -> bool:
        """As ``TableBatchSink.write_rows``."""
        if not self.store.takes(rows):
            return False
        self._held.add_rows(rows)
        return True

    def write_change(self, change: Change) -> None:
        """As ``ChangeSink.write_change``. Raises RefusedChangesError for one that the database
        cannot store."""
        reason = self.store.refuse(change)
        if reason is not None:
            raise RefusedChangesError(str(self._destination), [Refusal(change, reason)])
        self._held.add_change(change)

    def resolved(self, micros: int) -> None:
        """As ``ChangeSink.resolved``: the position beside the tables moves with the window."""
        self._resolved = micros

    def flush(self) -> None:
        """As ``ChangeSink.flush``: one transaction. Raises LeaseLostError where another instance
        has opened its sink since."""
        if not self._held and self._resolved is None:
            return
        newest = list(self._held.take())
        with self._watch_outage(), self.store.transaction():
            self._advance()
            for each in newest:
                self._write(each)
            failpoint("before-tables-commit")
        failpoint("after-tables-commit")
        self._forget()

    def discard(self) -> None:
        """As ``ChangeSink.discard``: nothing of the window is in the tables."""
        self._forget()
        self._known.clear()

    def _forget(self) -> None:
        self._held, self._resolved = HeldWindow(self._nanoseconds), None

    # Writing.

    @contextmanager
    def _watch_outage(self) -> Iterator[None]:
        try:
            yield
        except SinkUnavailableError as error:
            self._outages.record_failure(error)
            raise
        self._outages.record_answer()

    def _advance(self) -> None:
        moved = self.store.advance(
            self._state, self._source, self._consumer, self._epoch, self._resolved
        )
        if not moved:
            raise LeaseLostError(
                f"another instance of consumer '{self._consumer}' writes to {self._destination}"
                " now: this one ends, and has written nothing since"
            )

    def _write(self, newest: NewestRows) -> None:
        columns = self._describe(newest)
        self._prepare(columns)
        self.store.merge(columns, newest.rows)

    def _describe(self, newest: NewestRows) -> Columns:
        """The columns of a table that these rows need."""
        types = {
            name: self.store.name_type(type_, newest.rows.schema.field(name).type)
            for name, type_ in newest.types.items()
        }
        stamp = self.store.name_type(TIMESTAMP, newest.rows.schema.field(STAMP_COLUMN).type)
        target = self._find_target(newest.table)
        for name in types:
            if len(name.encode()) > self._destination.name_bytes_max:
                raise DeliveryError(
                    f"column {name} of {newest.table} has a longer name than"
                    f" {self._destination.service} allows ({self._destination.name_bytes_max}"
                    " bytes): leave it out, with exclude_columns"
                )
        return Columns(target, newest.key, types | {STAMP_COLUMN: stamp})

    def _find_target(self, table: str) -> Target:
        """The table that has the rows of one of Spanner's. Raises DeliveryError where it could be
        that of others."""
        target, fold = self._destination.name_target(table), self.store.fold
        named, _ = split_name(table)
        shared = named != "" and fold(named) == fold(self._destination.schema)
        if shared and self._takes_unnamed:
            raise DeliveryError(
                f"the rows of {table} would be in one table with those of the table of this name in"
                f" no named schema: let delivery.to have another schema than '{target[0]}' for"
                " those (?schema=NAME)"
            )
        if tuple(map(fold, target)) == tuple(map(fold, self._state)):
            raise DeliveryError(
                f"{'.'.join(target)} is where the positions of consumers are: let delivery.to have"
                " another schema or name for the table (?schema=NAME, ?table=copy_{table})"
            )
        return target

    def _prepare(self, columns: Columns) -> None:
        """Creates the table where there is none, and adds the columns that it lacks."""
        target, fold = columns.target, self.store.fold
        known = self._known.get(target)
        if known is None:
            there = self.store.read_columns(target)
            if there is None:
                self.store.create(columns)
                there = columns.types
            known = self._known[target] = {fold(name): type_ for name, type_ in there.items()}
        missing = {n: type_ for n, type_ in columns.types.items() if fold(n) not in known}
        if missing:
            self.store.add_columns(target, missing)
            known |= {fold(name): type_ for name, type_ in missing.items()}
        for name, type_ in columns.types.items():
            if (type_ in self.store.binary) != (known[fold(name)] in self.store.binary):
                raise DeliveryError(
                    f"column {name} of {'.'.join(target)} has the type {known[fold(name)]}, and its"
                    f" values are {type_} now: drop the column there, or change its type"
                )
