"""How the tables of a shared consumer are divided, and the first positions of its parts: rules 10
and 11 of docs/protocol.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, KeyRange, KeySet
from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.places import check_ended, read_places, remove_consumer
from watcher.consumers.positions import Positions, Registration, SpannerPositions
from watcher.consumers.positions.spanner import select_of_consumer
from watcher.consumers.positions.tables import divisions_table
from watcher.consumers.positions.values import Registered
from watcher.errors import ConfigurationError, DivisionChangedError
from watcher.spanner.transactions import run_optimistically
from watcher.tables.parts import Part, list_parts

COLUMNS = ("Consumer", "WatchedTable", "Division", "UpdatedAt")


@dataclass(frozen=True, slots=True)
class Start:
    """Where tables begin that a shared consumer has not watched before, in microseconds since 1970.
    ``now``: just now, or where something later was cleared already, there."""

    micros: int
    now: bool


class Divisions:
    """The table ``...Divisions`` beside those of positions."""

    def __init__(self, positions: SpannerPositions, shared: str, of: int) -> None:
        self._positions = positions
        self._table = divisions_table(positions.table)
        self._shared = shared
        self._parts = list_parts(of)
        self._known: dict[str, str] = {}

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts of the consumer."""
        return self._parts

    def settle(
        self, divisions: Mapping[str, str], choose_start: Callable[[frozenset[str]], Start]
    ) -> Registered | None:
        """From now on tables are divided so, and every part has a position in each of them; both
        are written in one transaction, so that no part can begin later than another.

        ``choose_start`` is told which tables the consumer has watched before. The registration of
        the first part stands for all; None where nothing was new. Raises DivisionChangedError for
        a table that is divided in another way.
        """
        if divisions.items() <= self._known.items():
            return None
        known = self.read()
        self._check(divisions, known)
        start = choose_start(frozenset(known)) if divisions.keys() - known.keys() else None

        def write(transaction: Transaction) -> Registered | None:
            stored = self._read_in(transaction)
            self._check(divisions, stored)
            new = divisions.keys() - stored.keys()
            if not new or start is None:
                return None
            return self._divide(transaction, {name: divisions[name] for name in sorted(new)}, start)

        registered = run_optimistically(self._positions.database, write)
        self._known |= divisions
        return registered

    def _divide(self, transaction: Transaction, new: Mapping[str, str], start: Start) -> Registered:
        """Writes how tables are divided, and where each part begins in them: at the position that
        the consumer has itself, from a time when it was not shared, or at the start."""
        sql, table = self._positions.sql, self._positions.table
        own = read_places(transaction, table, self._shared, sql)
        check_ended(transaction, table, self._shared, sql)
        rows = [(self._shared, name, new[name], COMMIT_TIMESTAMP) for name in new]
        transaction.insert(self._table, COLUMNS, rows)
        starts = {name: own[name].position if name in own else start.micros for name in new}
        now = frozenset(new.keys() - own.keys()) if start.now else frozenset()
        names = [part.name_consumer(self._shared) for part in self._parts]
        registered = [
            self._positions.register_in(transaction, Registration(name, starts, now))
            for name in names
        ]
        taken = {name: place for name, place in own.items() if name in new}
        for name in names:
            self._positions.plan_ends_in(
                transaction, name, {name: place.reached for name, place in taken.items()}
            )
        remove_consumer(transaction, table, self._shared, tuple(taken), sql)
        return registered[0]

    def forget(self, tables: Sequence[str] | None = None) -> None:
        """Tables (None: all) are not divided any more: all parts have been unregistered from
        them."""
        if tables is None:
            whole = KeyRange(start_closed=[self._shared], end_closed=[self._shared])
            keys = KeySet(ranges=[whole])
        else:
            keys = KeySet(keys=[[self._shared, name] for name in tables])
        with self._positions.database.batch() as batch:
            batch.delete(self._table, keys)

    def read(self) -> dict[str, str]:
        """The divisions of the consumer's tables, as they are stored."""
        with self._positions.database.snapshot() as snapshot:
            return self._read_in(snapshot)

    def _read_in(self, transaction: Transaction) -> dict[str, str]:
        columns = ("WatchedTable", "Division")
        query = select_of_consumer(self._positions.sql, self._table, columns, self._shared)
        return {row[0]: row[1] for row in transaction.execute_sql(*query)}

    def _check(self, divisions: Mapping[str, str], stored: Mapping[str, str]) -> None:
        for name, division in divisions.items():
            if stored.get(name, division) != division:
                raise DivisionChangedError(
                    f"the shards of table {name}, or the number of parts, are not those that"
                    f" consumer '{self._shared}' began with: stop all its instances, run"
                    f" 'spanner-watcher ctl merge {self._shared}', and start them again"
                )


def check_undivided(positions: Positions, consumer: str) -> None:
    """Raises ConfigurationError for a consumer that is divided into parts: who runs as the whole
    would deliver everything again."""
    if not isinstance(positions, SpannerPositions):
        return
    if Divisions(positions, consumer, 1).read():
        raise ConfigurationError(
            f"consumer '{consumer}' is divided into parts: start it with 'parts' as before, or stop"
            f" all its instances and run: spanner-watcher ctl merge {consumer}"
        )
